"""The source with real Message objects and a fake consumer: what gets into a batch, what an event does, what a rebalance leaves."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from tests.unit.worker.fakes import (
    FakeCluster,
    FakeConsumer,
    event,
    failure,
    kafka_error,
    message,
    metadata_bytes,
    settings,
)
from worker.errors import FencedByTwinError, WorkerError
from worker.membership import NotAMemberError, parse_group_metadata
from worker.offsets import Offsets, Partition
from worker.orphans import GRACE_S
from worker.source import SPACING_S, Source

if TYPE_CHECKING:
    from collections.abc import Mapping

A: Partition = ("in", 0)
B: Partition = ("in", 1)
ORPHAN: Partition = ("in", 2)
SESSION_S = 10


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster()
    cluster.log = {A: [], B: []}
    cluster.install(monkeypatch)
    return cluster


class World:
    """A source that owns both partitions from offset 0 on."""

    def __init__(
        self,
        cluster: FakeCluster,
        topics: tuple[str, ...] = ("in",),
        records: int = 1000,
        orphans: frozenset[Partition] = frozenset(),
        consumer: Mapping[str, Any] | None = None,
    ) -> None:
        self.cluster = cluster
        self.offsets = Offsets()
        self.without_id: set[str] = set()
        """Topics whose ids the broker does not tell."""
        given = settings(topics=topics, records=records)
        self.source = Source(
            replace(given, consumer={**given.consumer, **(consumer or {})}),
            self.offsets,
            cluster.watchdog,
            lambda names: {name: f"id of {name}" for name in names if name not in self.without_id},
            lambda _: orphans,
        )
        self.consumer = cast("FakeConsumer", self.source.consumer)
        self.source.subscribe()
        self.source.collect()
        cluster.calls.clear()

    def taken(self, *messages: Message) -> dict[Partition, list[int | None]]:
        """What the batch holds after these messages were handed over."""
        self.source._take(list(messages))
        return {p: [m.offset() for m in run] for p, run in self.source._batch.runs.items()}


def test_records_are_taken_by_partition_in_order(cluster: FakeCluster) -> None:
    """Interleaved runs of partitions and gaps of offsets; the positions follow."""
    world = World(cluster)

    taken = world.taken(message(0), message(3), message(1, partition=1), message(4), message(9, partition=1))

    assert taken == {A: [0, 3, 4], B: [1, 9]}
    assert world.offsets.ranges() == {A: (0, 5), B: (0, 10)}


def test_records_of_several_topics_are_told_apart(cluster: FakeCluster) -> None:
    """The same partition number of two topics is two partitions."""
    cluster.log[("other", 0)] = []
    world = World(cluster, topics=("in", "other"))

    assert world.taken(message(0), message(2, topic="other"), message(1)) == {A: [0, 1], ("other", 0): [2]}
    assert world.offsets.ranges() == {A: (0, 2), ("other", 0): (0, 3)}


def test_t2_records_read_before_are_not_taken_again(cluster: FakeCluster) -> None:
    """A late fetch of an earlier assignment: all old, or old and new in one run."""
    world = World(cluster)
    world.taken(message(0), message(1))

    assert world.taken(message(0), message(1)) == {A: [0, 1]}
    assert world.taken(message(1), message(2)) == {A: [0, 1, 2]}
    assert world.offsets.ranges() == {A: (0, 3)}


def test_r1_records_of_partitions_that_are_gone_are_not_taken(cluster: FakeCluster) -> None:
    """Returned by the very call inside which the partition was revoked."""
    world = World(cluster)
    world.consumer.rebalance("on_revoke", A)

    assert world.taken(message(0), message(0, partition=1)) == {B: [0]}


@pytest.mark.parametrize("kind", ["on_revoke", "on_lost"])
def test_r1_r2_a_partition_that_is_gone_leaves_nothing(
    cluster: FakeCluster, kind: Literal["on_revoke", "on_lost"]
) -> None:
    """Its collected records, its range, its pin and its end are dropped, the other partition's stay; unassigned incrementally (R3)."""
    world = World(cluster)
    world.taken(message(0), message(5, partition=1), event(KafkaError._PARTITION_EOF, offset=1))
    world.source.pins |= {A: 0, B: 0}

    world.consumer.rebalance(kind, A)

    assert world.taken() == {B: [5]}
    assert (world.offsets.owned, world.offsets.ranges()) == (frozenset({B}), {B: (0, 6)})
    assert (world.source.pins, world.source.ends_reached) == ({B: 0}, {})
    assert cluster.calls == [("incremental_unassign", [A])]


def test_r2_lost_partitions_have_a_callback_of_their_own(cluster: FakeCluster) -> None:
    """Without on_lost, losses would arrive as revokes."""
    world = World(cluster)

    assert set(world.consumer._callbacks) == {"on_assign", "on_revoke", "on_lost"}


def test_r3_new_partitions_are_assigned_incrementally_at_their_start(cluster: FakeCluster) -> None:
    """At the group's offset; the partitions owned before are not touched."""
    world = World(cluster)
    world.taken(message(0))
    cluster.log[("in", 2)] = [message(3, partition=2)]
    cluster.offsets = {("in", 2): 17}

    world.consumer.rebalance("on_assign", ("in", 2))

    assert [call for call in cluster.calls if call[0] == "incremental_assign"] == [
        ("incremental_assign", {("in", 2): 17})
    ]
    assert (world.offsets.wanted(A), world.offsets.wanted(("in", 2))) == (1, 17)


def test_events_among_records_do_not_hide_records(cluster: FakeCluster) -> None:
    """Passing errors are logged, ends of partitions are noted, the records around them are taken."""
    world = World(cluster)

    taken = world.taken(
        message(0),
        event(KafkaError._TRANSPORT),
        event(KafkaError.NOT_LEADER_FOR_PARTITION, "retriable"),
        event(KafkaError._MAX_POLL_EXCEEDED),
        message(1),
        event(KafkaError._PARTITION_EOF, offset=4, partition=1),
    )

    assert taken == {A: [0, 1]}
    assert world.source.ends_reached == {B: 4}


def test_r1_the_end_of_a_partition_that_was_just_taken_away_is_forgotten(cluster: FakeCluster) -> None:
    """It may come out of the very call that served the revocation. Should it come back, unread records would pass for markers."""
    world = World(cluster)
    world.consumer.rebalance("on_revoke", A)
    world.taken(event(KafkaError._PARTITION_EOF, offset=10))
    world.consumer.rebalance("on_assign", A)
    world.source.pass_markers()

    assert (world.source.ends_reached, world.offsets.ranges()) == ({}, {})


@pytest.mark.parametrize("code", [KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE])
def test_a_lost_position_stops_the_worker(cluster: FakeCluster, code: int) -> None:
    """Records expired before they were read: no reset to the beginning or the end hides it."""
    with pytest.raises(WorkerError, match=r"^in partition 1: offset 7 of group orders is not in the log any more"):
        World(cluster).taken(event(code, offset=7, partition=1))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (KafkaError.FENCED_INSTANCE_ID, KafkaError(KafkaError.FENCED_INSTANCE_ID).str() + "|made by a test"),
        (
            KafkaError.UNRELEASED_INSTANCE_ID,
            r"^another live consumer uses our group\.instance\.id, or our predecessor did not leave and its session",
        ),
    ],
)
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_fencing_by_the_group_is_told_as_one(cluster: FakeCluster, code: int, message: str, *, wrapped: bool) -> None:
    """Two members with one group.instance.id: exit code of a twin; also when librdkafka tells it as a fatal error, by its text alone."""
    found = event(code, "fatal")
    if wrapped:
        reason = f"Fatal error: {KafkaError(code).str()}: Fatal consumer error: {KafkaError(code).str()}"
        found = Message(topic=None, partition=-1, offset=-1001, error=KafkaError(KafkaError._FATAL, reason))
    with pytest.raises(FencedByTwinError, match=message):
        World(cluster).taken(found)


@pytest.mark.parametrize(
    "error",
    [event(KafkaError.TOPIC_AUTHORIZATION_FAILED), event(KafkaError._TRANSPORT, "fatal"), event(9999)],
    ids=["not allowed", "passing by code but fatal", "unknown"],
)
def test_other_errors_of_the_source_stop_the_worker(cluster: FakeCluster, error: Message) -> None:
    """With name, reason and place."""
    with pytest.raises(WorkerError, match=r"^cannot read the source: in\[0\]: .*: made by a test$"):
        World(cluster).taken(error)


def test_collect_ends_at_once_when_nothing_more_is_waiting(cluster: FakeCluster) -> None:
    """Low latency at low load: two records, one question whether the broker has more, no waiting."""
    world = World(cluster)
    cluster.log[A] = [message(0), message(1)]

    batch = world.source.collect()

    assert [m.offset() for m in batch.runs[A]] == [0, 1]
    assert [call[1:] for call in cluster.calls if call[0] == "consume"] == [(1, 0.2), (999, 0), (998, 0)]


def test_collect_stops_at_the_limit_of_records(cluster: FakeCluster) -> None:
    """The pipeline's limit, or the lower one that is asked for; the next batch goes on behind it."""
    world = World(cluster, records=3)
    cluster.log[A] = [message(n) for n in range(6)]

    assert [m.offset() for m in world.source.collect().runs[A]] == [0, 1, 2]
    world.offsets.committed()
    assert [m.offset() for m in world.source.collect(most=2).runs[A]] == [3, 4]


def test_an_idle_collect_is_empty(cluster: FakeCluster) -> None:
    """After one wait, without a batch and without a transaction (T4)."""
    world = World(cluster)

    assert not world.source.collect()
    assert cluster.calls == [("consume", 1, 0.2)]


@pytest.mark.parametrize(("high", "waits"), [(5, True), (4, True), (3, False), (2, False), (-1001, False)])
def test_a_commit_marker_behind_the_last_record_is_not_waited_for(
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    high: int,
    waits: bool,  # noqa: FBT001 - a table
) -> None:
    """One offset beyond what was read may be a marker (KAFKA-10683), two are records or more; no watermark is nothing."""
    world = World(cluster)
    world.taken(message(1))
    monkeypatch.setattr(
        FakeConsumer, "get_watermark_offsets", lambda _, p, *, cached: (0, high if p.partition == 0 and cached else 0)
    )

    assert world.source._more_is_waiting() is waits


def test_t2_seek_goes_to_each_partition(cluster: FakeCluster) -> None:
    """And the partitions are not at their ends any more: --until-drained must not stop before the replay."""
    world = World(cluster)
    world.source.ends_reached |= {A: 9, B: 9}

    world.source.seek({A: 5})

    assert cluster.calls == [("seek", A, 5)]
    assert world.source.ends_reached == {B: 9}


def test_t2_a_seek_that_fails_assigns_anew(cluster: FakeCluster) -> None:
    """A partition whose fetcher does not run cannot be sought in: going on would skip the aborted records."""
    world = World(cluster)
    cluster.failures["seek"].append(failure(KafkaError._STATE))

    world.source.seek({A: 5, B: 6})

    assert cluster.calls == [
        ("seek", A, 5),
        ("incremental_unassign", [A]),
        ("incremental_assign", {A: 5}),
        ("seek", B, 6),
    ]


def test_t3_group_metadata_is_fetched_each_time(cluster: FakeCluster) -> None:
    """Never cached: a commit with an old generation is to be fenced."""
    world = World(cluster)
    first = world.source.group_metadata()
    cluster.metadata = metadata_bytes(4, "member-1")
    world.consumer.rebalance("on_assign")

    assert (first, world.source.group_metadata()) == (metadata_bytes(3, "member-1"), metadata_bytes(4, "member-1"))


def test_t3_a_generation_that_brought_no_assignment_yet_is_refused(cluster: FakeCluster) -> None:
    """librdkafka joins in the background: a commit with the new generation would not be fenced, though the partition may be another's."""
    world = World(cluster)
    cluster.metadata = metadata_bytes(4, "member-1")

    with pytest.raises(NotAMemberError, match="moved on to generation 4"):
        world.source.group_metadata()

    world.consumer.rebalance("on_assign")
    assert world.source.group_metadata() == metadata_bytes(4, "member-1")


def test_r2_a_new_member_id_has_owned_nothing_before(cluster: FakeCluster) -> None:
    """What is left of an old id begins anew where the group has got to; the batch at hand has nothing of it."""
    world = World(cluster)
    world.taken(message(0), message(1))
    world.consumer.rebalance("on_revoke", B)
    cluster.metadata = metadata_bytes(4, "member-2")
    cluster.offsets = {A: 7, B: 9}
    cluster.calls.clear()
    world.consumer.rebalance("on_assign", B)

    assert world.offsets.owned == {A, B}
    assert world.offsets.ranges() == {}
    assert world.source._batch.runs == {}
    assert ("seek", A, 7) in cluster.calls
    assert world.consumer.positions == {A: 7, B: 9}


@pytest.mark.parametrize(("generation", "member"), [(-1, "member-1"), (3, ""), (-1, "")])
def test_t3_metadata_without_member_or_generation_is_refused(
    cluster: FakeCluster, generation: int, member: str
) -> None:
    """Brokers would take such a commit unfenced."""
    world = World(cluster)
    cluster.metadata = metadata_bytes(generation, member)

    with pytest.raises(NotAMemberError, match=rf"\(member id '{member}', generation {generation}\)$"):
        world.source.group_metadata()


@pytest.mark.parametrize(
    ("generation", "member", "group"), [(0, "m", "g"), (2**31 - 1, "Ünder-1", "group"), (-1, "", "g"), (7, "m", "")]
)
def test_t3_group_metadata_is_parsed(generation: int, member: str, group: str) -> None:
    """Generation and member id from librdkafka's bytes, whatever the group is called."""
    assert parse_group_metadata(metadata_bytes(generation, member, group)) == (member, generation)


def test_t3_group_metadata_of_the_real_client_is_understood() -> None:
    """A consumer that never joined has no member id and no generation: the very case that must be refused."""
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "orders", "log_level": 0})
    try:
        assert parse_group_metadata(consumer.consumer_group_metadata()) == ("", -1)
    finally:
        consumer.close()


def test_t3_group_metadata_in_another_form_is_refused() -> None:
    """A later librdkafka may change it: then the worker stops instead of committing unfenced."""
    with pytest.raises(WorkerError, match=r"^group metadata in an unknown form: b'CGMDv3:'$"):
        parse_group_metadata(b"CGMDv3:" + metadata_bytes(1, "m")[7:])


@pytest.mark.parametrize(
    ("code", "kind"),
    [(KafkaError.UNRELEASED_INSTANCE_ID, FencedByTwinError), (KafkaError.INCONSISTENT_GROUP_PROTOCOL, WorkerError)],
)
def test_a_fatal_error_out_of_the_poll_itself_stops_the_worker(
    cluster: FakeCluster, code: int, kind: type[WorkerError]
) -> None:
    """confluent-kafka raises a consumer's fatal error from consume() instead of returning it as an event."""
    world = World(cluster)
    cluster.failures["consume"].append(failure(code, "fatal"))

    with pytest.raises(WorkerError, match="made by a test") as raised:
        world.source.collect()

    assert type(raised.value) is kind


def test_partitions_that_come_while_it_closes_are_not_looked_up(cluster: FakeCluster) -> None:
    """A join was under way when the worker had to stop: no question to a broker that may be the reason for it."""
    world = World(cluster)
    world.consumer.rebalance("on_revoke", A, B)
    world.source.close()
    cluster.calls.clear()

    world.consumer.rebalance("on_assign", A)

    assert cluster.names() == ["incremental_assign"]
    assert world.offsets.owned == frozenset()


@pytest.mark.parametrize(("pause_s", "expected"), [(SPACING_S / 2, [1, 2]), (SPACING_S, [1])], ids=["trickle", "pause"])
def test_batches_in_a_row_are_spaced(cluster: FakeCluster, pause_s: float, expected: list[int]) -> None:
    """A record that follows a batch closely waits for its neighbours; one that comes after a pause is handed over at once."""
    world = World(cluster)
    cluster.log[A] = [message(0)]
    world.source.collect()
    cluster.clock.passes(pause_s)
    cluster.log[A].append(message(1))

    def neighbour() -> None:
        cluster.log[A].append(message(2))
        cluster.clock.passes(SPACING_S)

    # The first record, whatever is there already, and then a wait.
    cluster.failures["consume"].extend([None, None, neighbour])

    batch = world.source.collect()

    assert [m.offset() for m in batch.runs[A]] == expected


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.fencings.REJOIN_PAUSE_S", 0)


@pytest.mark.usefixtures("unhurried")
def test_a_fenced_consumer_is_replaced_and_begins_at_the_committed_offsets(cluster: FakeCluster) -> None:
    """What was collected is dropped; the old one is closed before the new one joins, and its callbacks count no more (#3437)."""
    world = World(cluster)
    cluster.log[A] = [message(n) for n in range(8)]
    cluster.offsets = {A: 5}
    fenced = failure(KafkaError.FENCED_INSTANCE_ID, "fatal")
    cluster.failures["consume"].extend([None, fenced])

    assert not world.source.collect()

    assert cluster.names("consume", "get_watermark_offsets") == ["close", "subscribe"]
    assert world.offsets.owned == frozenset()
    batch = world.source.collect()
    assert {p: [m.offset() for m in run] for p, run in batch.runs.items()} == {A: [5, 6, 7]}
    world.consumer.rebalance("on_lost", A, B)
    assert world.offsets.owned == {A, B}


@pytest.mark.usefixtures("unhurried")
def test_a_consumer_that_is_fenced_again_and_again_has_a_twin(cluster: FakeCluster) -> None:
    """The third time in a minute ends the worker with the exit code of a twin, and says what to do."""
    world = World(cluster)
    cluster.failures["consume"].extend([failure(KafkaError.FENCED_INSTANCE_ID, "fatal")] * 3)
    world.source.collect()
    world.source.collect()

    with pytest.raises(
        FencedByTwinError, match=r"has taken our place in the group\. Give each its own RECKON_INSTANCE_ID"
    ):
        world.source.collect()


@pytest.mark.usefixtures("unhurried")
def test_t2_a_seek_that_meets_the_fencing_loses_nothing(cluster: FakeCluster) -> None:
    """The consumer cannot go back any more: the next poll takes another one, whatever the old one has waiting."""
    world = World(cluster)
    cluster.log[A] = [message(n) for n in range(3)]
    world.source.collect()
    fenced = failure(KafkaError.FENCED_INSTANCE_ID, "fatal")
    cluster.failures["seek"].append(fenced)
    cluster.failures["incremental_unassign"].append(fenced)

    world.source.seek(world.offsets.rewind())

    assert not world.source.collect()
    assert {p: [m.offset() for m in run] for p, run in world.source.collect().runs.items()} == {A: [0, 1, 2]}


def test_a_missing_right_on_the_group_names_no_partition(cluster: FakeCluster) -> None:
    """It comes as an event without a topic."""
    error = kafka_error(KafkaError.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(WorkerError, match=r"^cannot read the source: GROUP_AUTHORIZATION_FAILED: made by a test$"):
        World(cluster).taken(Message(topic=None, partition=0, offset=-1001, error=error))


def test_an_id_that_cannot_be_asked_for_is_no_id(cluster: FakeCluster) -> None:
    """The topic may have been created anew since: a receipt with the old id would mislead the audit. Other topics keep theirs."""
    cluster.log[("other", 0)] = []
    world = World(cluster, topics=("in", "other"))
    assert world.source.topic_ids == {"in": "id of in", "other": "id of other"}
    world.without_id = {"in", "other"}

    world.consumer.rebalance("on_revoke", A)
    world.consumer.rebalance("on_assign", A)

    assert world.source.topic_ids == {"other": "id of other"}


@pytest.fixture
def lonely(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> World:
    """A static member that reads on at offset 2 of A and is about to find that the group has given a partition to nobody.

    Unsubscribing has no effect yet, as librdkafka postpones it while the group rebalances.
    """
    for module in ("membership", "orphans"):
        monkeypatch.setattr(f"worker.{module}.time", SimpleNamespace(monotonic=cluster.clock.monotonic))
    monkeypatch.setattr(FakeConsumer, "unsubscribe", lambda _: cluster.called("unsubscribe"), raising=False)
    static = {"group.instance.id": "a", "session.timeout.ms": SESSION_S * 1000}
    world = World(cluster, orphans=frozenset({ORPHAN}), consumer=static)
    cluster.log[A] = [message(0), message(1)]
    world.source.collect()
    world.offsets.committed()
    cluster.offsets = {A: 2}
    cluster.log[A] += [message(2), message(3)]
    cluster.calls.clear()
    cluster.clock.passes(SESSION_S + GRACE_S)
    return world


def collected(world: World) -> dict[Partition, list[int | None]]:
    return {p: [m.offset() for m in run] for p, run in world.source.collect().runs.items()}


def test_who_could_not_leave_reads_on_where_it_was(lonely: World) -> None:
    """No later assignment names partitions that librdkafka kept; what came of them meanwhile was thrown away."""
    assert collected(lonely) == {A: [2, 3]}

    assert lonely.offsets.owned == {A, B}
    found = [call for call in lonely.cluster.calls if call[0] in {"unsubscribe", "subscribe", "seek"}]
    assert found[:2] == [("unsubscribe",), ("subscribe", ("in",))]
    assert sorted(found[2:]) == [("seek", A, 2), ("seek", B, 0)]


def test_who_could_not_leave_tries_again_after_the_next_generation(lonely: World) -> None:
    """The orphans are the same, but nothing was done about them yet."""
    lonely.source.collect()
    lonely.cluster.metadata = metadata_bytes(4, "member-1")
    lonely.source.collect()
    assert lonely.cluster.names().count("unsubscribe") == 1

    lonely.cluster.clock.passes(SESSION_S + GRACE_S)
    lonely.source.collect()

    assert lonely.cluster.names().count("unsubscribe") == 2


def test_who_has_left_begins_at_the_committed_offsets(lonely: World) -> None:
    """The revocation says what is gone, the next assignment what is there; what is nobody's still is left so then."""
    cluster = lonely.cluster

    def left() -> None:
        lonely.consumer.rebalance("on_revoke", A, B)
        cluster.metadata = metadata_bytes(-1, "")

    def joined() -> None:
        assert lonely.offsets.owned == frozenset()
        cluster.metadata = metadata_bytes(4, "member-2")
        cluster.log[ORPHAN] = []
        cluster.offsets = {A: 3}

    cluster.failures["unsubscribe"].append(left)
    cluster.failures["subscribe"].append(joined)

    assert collected(lonely) == {A: [3]}

    assert lonely.offsets.owned == {A, B, ORPHAN}
    assert "seek" not in cluster.names()
    cluster.clock.passes(SESSION_S + GRACE_S)
    lonely.source.collect()
    assert cluster.names().count("unsubscribe") == 1


@pytest.mark.parametrize("kind", ["on_revoke", "on_lost"])
def test_r1_r2_who_could_not_leave_keeps_nothing_that_is_gone(
    lonely: World, kind: Literal["on_revoke", "on_lost"]
) -> None:
    """A callback has the last word: one inside the attempt to leave, and one inside the first poll behind it."""
    cluster = lonely.cluster

    def sought() -> None:
        cluster.failures["consume"].append(lambda: lonely.consumer.rebalance(kind, A))

    cluster.failures["unsubscribe"].append(lambda: lonely.consumer.rebalance(kind, B))
    cluster.failures["seek"].append(sought)

    assert collected(lonely) == {}

    assert lonely.offsets.owned == frozenset()
    assert [call for call in cluster.calls if call[0] == "seek"] == [("seek", A, 2)]


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(
    "refusal",
    [
        failure(KafkaError.FENCED_INSTANCE_ID, "fatal"),
        # As confluent-kafka 2.16 raises it: the reason is told to a poll only, here to one of those that tried to leave.
        KafkaException(KafkaError(KafkaError._FATAL, "Failed to set subscription: Local: Fatal error")),
    ],
    ids=["by its code", "without a reason"],
)
def test_who_is_fenced_while_it_joins_anew_is_replaced(lonely: World, refusal: KafkaException) -> None:
    """As by a poll: a fresh consumer, and the committed offsets say where it begins."""
    cluster = lonely.cluster
    cluster.failures["subscribe"].append(refusal)

    assert not lonely.source.collect()

    assert cluster.names("consume") == ["unsubscribe", "subscribe", "close", "subscribe"]
    assert lonely.offsets.owned == frozenset()
    assert collected(lonely) == {A: [2, 3]}


def test_a_subscription_that_is_refused_stops_the_worker(lonely: World) -> None:
    """With the reason, and without a stack."""
    lonely.cluster.failures["subscribe"].append(failure(KafkaError._INVALID_ARG))

    with pytest.raises(WorkerError, match=r"^cannot read the source: _INVALID_ARG: made by a test$"):
        lonely.source.collect()
