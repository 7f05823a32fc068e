"""The source with real Message objects and a fake consumer: what gets into a batch, what an event does, what a rebalance leaves."""

from __future__ import annotations

from typing import Literal, cast

import pytest
from confluent_kafka import Consumer, KafkaError, Message

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
from worker.source import SPACING_S, Source

A: Partition = ("in", 0)
B: Partition = ("in", 1)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster()
    cluster.log = {A: [], B: []}
    cluster.install(monkeypatch)
    return cluster


class World:
    """A source that owns both partitions from offset 0 on."""

    def __init__(self, cluster: FakeCluster, topics: tuple[str, ...] = ("in",), records: int = 1000) -> None:
        self.cluster = cluster
        self.offsets = Offsets()
        self.source = Source(
            settings(topics=topics, records=records),
            self.offsets,
            cluster.watchdog,
            lambda names: {name: f"id of {name}" for name in names},
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
