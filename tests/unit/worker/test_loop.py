"""The loop over a fake cluster. What counts is what became visible by a commit: outputs, dead letters, receipts, offsets."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import structlog
from confluent_kafka import KafkaError

from tests.unit.worker.fakes import FakeCluster, failure, kafka_error, message, metadata_bytes, settings
from transforms.records import Failure, Output, Result
from worker.dead_letter import DeadLetterLimit
from worker.drain import Drain, Drained
from worker.errors import DeadLetterLimitError, ExitCode, FencedByTwinError, StoppedError, WorkerError
from worker.loop import PASS_MARKERS_S, TransactionalLoop
from worker.receipt import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tests.unit.worker.fakes import Flag
    from transforms.records import SourceRecord
    from worker.offsets import Offsets, Partition
    from worker.settings import Settings
    from worker.topics import Topics

# A loop that never ends is what some of these would show.
pytestmark = pytest.mark.timeout(120)

A: Partition = ("in", 0)
B: Partition = ("in", 1)


def transform(records: Sequence[SourceRecord]) -> Result:
    """`skip` is filtered, `fail` fails, `two...` yields two outputs, all else one: its value with an index."""
    outputs: list[Output] = []
    failures: list[Failure] = []
    filtered = 0
    for record in records:
        value = record.value() or b""
        if value == b"skip":
            filtered += 1
        elif value == b"fail":
            failures.append(Failure(record, "CelError", "no such key", "steps[0] set", 4))
        else:
            outputs += [
                ("out", value + b"/%d" % index, record.key(), None, record.timestamp()[1], record, index)
                for index in range(2 if value.startswith(b"two") else 1)
            ]
    return Result(outputs, failures, filtered)


class World:
    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.limit = DeadLetterLimit(1.0, 1000, None)
        self.told: list[Receipt] = []
        self.pauses: list[float] = []
        self.wrong: list[str] = []
        self.now = 1000.0

    def log(self, *values: bytes, partition: int = 0) -> None:
        self.cluster.log["in", partition] = [message(n, value, partition=partition) for n, value in enumerate(values)]

    def loop(self, settings: Settings, transform: Callable[[Sequence[SourceRecord]], Result]) -> TransactionalLoop:
        topics = cast(
            "Topics",
            SimpleNamespace(unassigned=lambda _: frozenset(), ids=lambda _: {}, what_is_wrong=lambda: self.wrong),
        )
        return TransactionalLoop(
            settings, transform, "sha256:00", self.limit, self.cluster.watchdog, self.told.append, topics
        )

    def run(
        self, given: Settings | None = None, transform: Callable[[Sequence[SourceRecord]], Result] = transform
    ) -> None:
        """Until all of the log is consumed."""
        ends = {p: len(records) for p, records in self.cluster.log.items()}
        self.loop(given or settings(), transform).run(Drain(ends, lambda _: {}))

    @property
    def out(self) -> list[bytes]:
        return [value for value, *_ in self.cluster.visible["out"]]

    @property
    def dead(self) -> list[tuple[bytes, str]]:
        """(value, error class) of the dead letters."""
        return [
            (value, dict(headers)["reckon.error.class"]) for value, _, _, headers in self.cluster.visible["orders.dead"]
        ]

    @property
    def receipts(self) -> list[Receipt]:
        return [Receipt.decode(value) for value, *_ in self.cluster.visible["orders.receipts"]]

    def sent(self) -> list[dict[Partition, int]]:
        """Offsets of every send_offsets_to_transaction, committed or not."""
        return [call[1] for call in self.cluster.calls if call[0] == "send_offsets_to_transaction"]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    cluster = FakeCluster()
    cluster.install(monkeypatch)
    world = World(cluster)
    world.log()
    clock = SimpleNamespace(
        monotonic=lambda: world.now, sleep=world.pauses.append, time_ns=lambda: 1_700_000_000_123_000_000
    )
    monkeypatch.setattr("worker.loop.time", clock)
    monkeypatch.setattr("worker.fencings.time", SimpleNamespace(monotonic=clock.monotonic, sleep=lambda _: None))
    return world


def spans(receipt: Receipt) -> dict[Partition, tuple[int, int]]:
    return {(part.topic, part.partition): (part.from_, part.to) for part in receipt.partitions}


def test_one_transaction_holds_everything(world: World) -> None:
    """Outputs with lineage, the dead letter, the receipt and the offsets become visible together, by one commit."""
    world.log(b"a", b"two", b"fail", b"skip")
    world.log(b"b", partition=1)

    world.run()

    assert world.cluster.visible["out"] == [
        (b"a/0", b"k", 1000, [("reckon.source", "in/0/0/0")]),
        (b"two/0", b"k", 1001, [("reckon.source", "in/0/1/0")]),
        (b"two/1", b"k", 1001, [("reckon.source", "in/0/1/1")]),
        (b"b/0", b"k", 1000, [("reckon.source", "in/1/0/0")]),
    ]
    assert world.dead == [(b"fail", "CelError")]
    assert world.cluster.offsets == {A: 4, B: 1}
    (receipt,) = world.receipts
    assert world.told == [receipt]
    assert (receipt.pipeline, receipt.transactional_id, receipt.sequence) == ("orders", "orders-a", 1)
    assert (receipt.transform, receipt.time_ms) == ("sha256:00", 1_700_000_000_123)
    assert [
        (part.topic, part.partition, part.from_, part.to, part.read, part.filtered, part.dead_lettered, part.written)
        for part in receipt.partitions
    ] == [("in", 0, 0, 4, 4, 1, 1, {"out": 3}), ("in", 1, 0, 1, 1, 0, 0, {"out": 1})]
    assert world.cluster.visible["orders.receipts"][0][1:] == (b"orders-a", 1_700_000_000_123, None)
    assert world.cluster.names().count("commit_transaction") == 1


def test_lineage_can_be_turned_off(world: World) -> None:
    """Then the outputs have no header of ours."""
    world.log(b"a")

    world.run(settings(lineage=False))

    assert world.cluster.visible["out"] == [(b"a/0", b"k", 1000, None)]


def test_t4_filtered_input_still_moves_offsets(world: World) -> None:
    """A partition whose records yield no output at all is not read again for ever, and its receipt says so."""
    world.log(b"skip", b"skip", b"skip")

    world.run()

    assert (world.out, world.cluster.offsets) == ([], {A: 3})
    (part,) = world.receipts[0].partitions
    assert (part.from_, part.to, part.read, part.filtered, part.written) == (0, 3, 3, 3, {})


def test_t4_without_records_no_transaction_begins(world: World) -> None:
    """Not before the first record, and not after the last one."""
    world.run()
    assert "begin_transaction" not in world.cluster.names()

    world.log(b"a")
    world.run()

    assert world.cluster.names().count("begin_transaction") == 1


def test_t5_outputs_of_one_input_stand_or_fall_together(world: World) -> None:
    """The second of two outputs is refused: the first one is not visible either, the input is a dead letter as it was."""
    world.log(b"a", b"two", b"b")
    world.cluster.client_refuses = lambda _, value: (
        kafka_error(KafkaError.MSG_SIZE_TOO_LARGE) if value == b"two/1" else None
    )

    world.run()

    assert (world.out, world.dead) == ([b"a/0", b"b/0"], [(b"two", "UndeliverableOutput")])


FAILS: dict[str, tuple[int, tuple[Flag, ...]]] = {
    "abortable": (KafkaError.UNKNOWN, ("txn_requires_abort",)),
    "fatal": (KafkaError.INVALID_TXN_STATE, ("fatal",)),
    "fenced": (KafkaError._FENCED, ("fatal",)),
    "retriable": (KafkaError._TIMED_OUT, ("retriable",)),
}
OPERATIONS = ["begin_transaction", "send_offsets_to_transaction", "commit_transaction"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", FAILS)
def test_e1_e2_whatever_fails_every_record_comes_out_once_and_in_order(world: World, kind: str, operation: str) -> None:
    """Each operation fails in the first and in the third of its calls; nothing is lost, doubled or reordered."""
    world.log(*[b"%d" % n for n in range(6)])
    code, flags = FAILS[kind]
    world.cluster.failures[operation].extend([failure(code, *flags), None, failure(code, *flags)])

    world.run(settings(records=2))

    assert not world.cluster.failures[operation], "a fault did not take place"
    assert world.out == [b"%d/0" % n for n in range(6)]
    assert [spans(receipt) for receipt in world.receipts] == [{A: (0, 2)}, {A: (2, 4)}, {A: (4, 6)}]
    assert [receipt.sequence for receipt in world.receipts] == [1, 2, 3]
    assert world.told == world.receipts


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        (
            "abortable",
            ["begin_transaction", "flush", "flush", "flush", "abort_transaction", "flush", "seek", "begin_transaction"],
        ),
        (
            "fatal",
            [
                "begin_transaction",
                "flush",
                "purge",
                "flush",
                "Producer",
                "init_transactions",
                "seek",
                "begin_transaction",
            ],
        ),
        (
            "fenced",
            [
                "begin_transaction",
                "flush",
                "seek",
                "purge",
                "flush",
                "Producer",
                "init_transactions",
                "begin_transaction",
            ],
        ),
    ],
)
def test_e1_e2_what_follows_a_failure(world: World, kind: str, calls: list[str]) -> None:
    """Abortable: the same producer aborts. Fatal and fenced: a new one, without an abort. In each case we seek before we go on (T2).

    Fenced: not before the group has been polled again, so that a zombie learns that its place is taken and does not fence its successor.
    """
    world.log(b"a")
    code, flags = FAILS[kind]
    world.cluster.failures["send_offsets_to_transaction"].append(failure(code, *flags))

    world.run()

    but = (
        "produce",
        "poll",
        "send_offsets_to_transaction",
        "consume",
        "get_watermark_offsets",
        "consumer_group_metadata",
    )
    names = world.cluster.names(*but)
    start = names.index("begin_transaction")
    assert names[start : start + len(calls)] == calls
    assert ("seek", A, 0) in world.cluster.calls


def test_e2_an_abort_that_fails_is_answered_by_a_fresh_producer(world: World) -> None:
    """And the batch is replayed with it."""
    world.log(b"a", b"b")
    world.cluster.failures["send_offsets_to_transaction"].append(failure(KafkaError.UNKNOWN, "txn_requires_abort"))
    world.cluster.failures["abort_transaction"].append(failure(KafkaError.INVALID_TXN_STATE, "fatal"))

    world.run()

    assert (world.out, len(world.cluster.producers)) == ([b"a/0", b"b/0"], 2)


def test_e10_nothing_behind_an_aborted_batch_is_committed_before_it(world: World) -> None:
    """The offsets sent after the abort are those of the same batch again."""
    world.log(*[b"%d" % n for n in range(4)])
    world.cluster.failures["send_offsets_to_transaction"].append(failure(KafkaError._FENCED, "fatal"))

    world.run(settings(records=2))

    assert world.sent() == [{A: 2}, {A: 2}, {A: 4}]


def test_e2_a_twin_is_told_by_being_fenced_again_and_again(world: World) -> None:
    """The third fencing in short time stops the worker with its own exit code and what to do about it."""
    world.log(b"a")
    world.cluster.failures["send_offsets_to_transaction"].extend([failure(KafkaError._FENCED, "fatal")] * 3)

    with pytest.raises(
        FencedByTwinError,
        match=r"^fenced 3 times within 60 s: another live worker uses transactional\.id orders-a\. "
        r"Give each its own RECKON_INSTANCE_ID$",
    ) as raised:
        world.run()

    assert raised.value.exit_code is ExitCode.FENCED
    assert (world.out, world.cluster.offsets) == ([], {})
    assert len(world.cluster.producers) == 3


@pytest.mark.parametrize(
    ("seconds", "kinds"), [(30.0, ["fenced"] * 3), (0.0, ["fenced", "fatal", "fenced"]), (0.0, ["fenced"] * 2)]
)
def test_e2_our_own_timeouts_are_not_taken_for_a_twin(world: World, seconds: float, kinds: list[str]) -> None:
    """Fenced once per transaction timeout, or fewer than three times: go on with a fresh producer."""
    world.log(b"a")

    def fails(kind: str) -> Callable[[], None]:
        def call() -> None:
            world.now += seconds
            code, flags = FAILS[kind]
            raise failure(code, *flags)

        return call

    world.cluster.failures["send_offsets_to_transaction"].extend(map(fails, kinds))

    world.run()

    assert world.out == [b"a/0"]


def test_e2_fencing_of_a_fresh_producer_counts_too(world: World) -> None:
    """A twin may fence us inside init_transactions."""
    world.log(b"a")
    world.cluster.failures["begin_transaction"].append(failure(KafkaError._FENCED, "fatal"))
    world.cluster.failures["init_transactions"].extend([None, *[failure(KafkaError._FENCED, "fatal")] * 2])

    with pytest.raises(FencedByTwinError):
        world.run()


def test_e2_a_fencing_at_the_start_is_not_the_end(world: World) -> None:
    """Our predecessor may have been in its own init_transactions just then."""
    world.log(b"a")
    world.cluster.failures["init_transactions"].append(failure(KafkaError._FENCED, "fatal"))

    world.run()

    assert (world.out, len(world.cluster.producers)) == ([b"a/0"], 2)


def test_a_fatal_error_aborts_before_the_worker_stops(world: World) -> None:
    """Readers need not wait for the transaction's timeout."""
    world.log(b"a")
    world.cluster.failures["send_offsets_to_transaction"].append(failure(KafkaError.GROUP_AUTHORIZATION_FAILED))

    with pytest.raises(WorkerError, match=r"^send_offsets_to_transaction: GROUP_AUTHORIZATION_FAILED: made by a test$"):
        world.run()

    assert world.cluster.names("flush", "purge", "poll")[-2:] == ["abort_transaction", "close"]


def test_fresh_producers_are_taken_for_as_long_as_it_lasts(world: World) -> None:
    """Brokers may be away for hours: no number of failures ends the worker, and the pauses between them grow to 5 s and no more."""
    world.log(b"a")
    world.cluster.failures["init_transactions"].extend([None, *[failure(KafkaError.INVALID_TXN_STATE, "fatal")] * 1500])
    world.cluster.failures["begin_transaction"].append(failure(KafkaError.INVALID_TXN_STATE, "fatal"))

    world.run()

    assert world.out == [b"a/0"]
    assert len(world.cluster.producers) == 1 + 1501
    assert world.pauses[:7] == [0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 5.0]
    assert max(world.pauses) == 5.0


def test_a_worker_that_waits_for_brokers_can_be_stopped(world: World) -> None:
    """Its exit code is that of a stop: it holds nothing that is not committed or rewound."""
    world.log(b"a")
    world.cluster.failures["begin_transaction"].append(failure(KafkaError.INVALID_TXN_STATE, "fatal"))

    def stop() -> None:
        world.cluster.watchdog.stopping = True
        raise failure(KafkaError._TIMED_OUT, "fatal")

    world.cluster.failures["init_transactions"].extend([None, stop])

    with pytest.raises(StoppedError) as raised:
        world.run()

    assert raised.value.exit_code is ExitCode.DRAINED
    assert world.out == []


def test_what_is_missing_is_told_every_eighth_time(world: World) -> None:
    """A sink that was deleted while the worker runs: it goes on trying, and says what it waits for."""
    world.log(b"a")
    world.wrong = ["sink topic out does not exist"]
    world.cluster.failures["send_offsets_to_transaction"].extend(
        [failure(KafkaError.UNKNOWN, "txn_requires_abort")] * 17
    )

    with structlog.testing.capture_logs() as logs:
        world.run()

    assert [line for line in logs if line["event"] == "nothing committed"] == [
        {"event": "nothing committed", "log_level": "error", "attempts": n, "wrong": world.wrong} for n in (8, 16)
    ]
    assert world.out == [b"a/0"]


def test_fencings_that_a_missing_topic_explains_are_no_twin(world: World) -> None:
    """Outputs for a topic that is gone time out, and the transactions with them: the broker fences us then, again and again."""
    world.log(b"a")
    world.wrong = ["sink topic out does not exist"]
    world.cluster.failures["send_offsets_to_transaction"].extend([failure(KafkaError._FENCED, "fatal")] * 5)

    world.run()

    assert world.out == [b"a/0"]


def test_a_refused_commit_is_aborted_before_the_worker_stops(world: World) -> None:
    """An authorization error at the commit: readers need not wait for the transaction's timeout."""
    world.log(b"a")
    error = failure(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    world.cluster.failures["commit_transaction"].append(error)

    with pytest.raises(WorkerError, match=r"^commit_transaction: TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "):
        world.run()

    names = world.cluster.names("flush", "purge", "poll")
    assert names[-3:] == ["commit_transaction", "abort_transaction", "close"]


def test_a_consumer_fenced_while_a_commit_is_resolved_is_replaced(world: World) -> None:
    """The fresh one asks for what is committed; it took place, so nothing comes again."""
    world.log(b"a")

    def took_place() -> None:
        world.cluster.commit()
        raise failure(KafkaError.UNKNOWN, "fatal")

    world.cluster.failures["commit_transaction"].append(took_place)
    world.cluster.failures["committed"].extend([None, failure(KafkaError.FENCED_INSTANCE_ID, "fatal")])

    world.run()

    assert world.out == [b"a/0"]
    assert world.cluster.names().count("subscribe") == 2
    assert [receipt.sequence for receipt in world.told] == [1]


def test_a_commit_forgives_the_fresh_producers_before_it(world: World) -> None:
    """Eight in a row are too many, eight over a long life are not."""
    world.log(*[b"%d" % n for n in range(20)])
    world.cluster.failures["begin_transaction"].extend([failure(KafkaError.INVALID_TXN_STATE, "fatal"), None] * 20)

    world.run(settings(records=1))

    assert world.out == [b"%d/0" % n for n in range(20)]
    assert len(world.cluster.producers) == 21


def test_pauses_grow_while_replays_fail_and_start_anew_after_a_commit(world: World) -> None:
    """The first replay comes at once; no pause is longer than 5 s."""
    world.log(b"a", b"b")
    abort = failure(KafkaError.UNKNOWN, "txn_requires_abort")
    world.cluster.failures["send_offsets_to_transaction"].extend([*[abort] * 7, None, abort])

    world.run(settings(records=1))

    assert world.pauses == [0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 5.0, 0.0]


@pytest.mark.parametrize("kind", ["abortable", "fatal", "fenced"])
@pytest.mark.parametrize("took_place", [True, False])
def test_e4_e6_an_unknown_commit_is_resolved_by_the_brokers_offsets(
    world: World,
    kind: str,
    took_place: bool,  # noqa: FBT001 - a table
) -> None:
    """EndTxn's answer is an error, the transaction is committed or it is not: either way each record comes out once."""
    world.log(*[b"%d" % n for n in range(4)])
    world.log(b"x", partition=1)

    def answer_lost() -> None:
        if took_place:
            world.cluster.commit()
        code, flags = FAILS[kind]
        raise failure(code, *flags)

    world.cluster.failures["commit_transaction"].append(answer_lost)

    world.run(settings(records=3))

    assert sorted(world.out) == [b"0/0", b"1/0", b"2/0", b"3/0", b"x/0"]
    assert world.cluster.offsets == {A: 4, B: 1}
    # A new numbering where somebody moved the offsets: it need not have been us.
    assert [receipt.sequence for receipt in world.receipts] == ([1, 1] if took_place else [1, 2])
    assert len({receipt.incarnation for receipt in world.receipts}) == (2 if took_place else 1)
    assert world.told == world.receipts
    assert world.sent() == [{A: 3}, *([] if took_place else [{A: 3}]), {A: 4, B: 1}]
    assert len(world.cluster.producers) == 2, "E3: never the same producer after an unknown outcome"
    assert "abort_transaction" not in world.cluster.names()


def test_e6_an_error_that_nobody_knows_stops_the_worker_and_claims_nothing(world: World) -> None:
    """The receipt is not told of; the successor will find out what was committed."""
    world.log(b"a")
    world.cluster.failures["commit_transaction"].append(failure(9999))

    with pytest.raises(WorkerError, match=r"^commit_transaction: .*made by a test$"):
        world.run()

    assert world.told == []


@pytest.mark.parametrize("who", ["client_refuses", "refuses"])
@pytest.mark.parametrize("records", [1000, 2])
def test_e8_an_undeliverable_output_diverts_its_input(world: World, who: str, records: int) -> None:
    """Refused by the client or by the broker, alone or with its neighbours: its input is a dead letter, the others come out once."""
    world.log(b"a", b"bad", b"b", b"c", b"bad", b"d")
    error = kafka_error(KafkaError.MSG_SIZE_TOO_LARGE if who == "client_refuses" else KafkaError.INVALID_RECORD)
    setattr(world.cluster, who, lambda topic, value: error if (topic, value) == ("out", b"bad/0") else None)

    world.run(settings(records=records))

    assert world.out == [b"a/0", b"b/0", b"c/0", b"d/0"]
    assert world.dead == [(b"bad", "UndeliverableOutput")] * 2
    headers = dict(world.cluster.visible["orders.dead"][0][3])
    assert headers["reckon.error.message"] == f"{error.name()}: made by a test (topic out)"
    assert (headers["reckon.step"], headers["reckon.source.offset"]) == ("sink", "1")
    assert sum(part.dead_lettered for receipt in world.receipts for part in receipt.partitions) == 2
    assert world.cluster.offsets == {A: 6}


def test_e8_the_search_ends_with_the_batch_that_needed_it(world: World) -> None:
    """Behind the records among which one was refused, records go out together again."""
    world.log(b"bad", b"a", b"b", b"c", b"d", b"e")
    world.cluster.refuses = lambda _, value: kafka_error(KafkaError.INVALID_RECORD) if value == b"bad/0" else None

    world.run(settings(records=3))

    calls = [call for call in world.cluster.calls if call[0] in ("produce", "flush")]
    tail = calls[calls.index(("produce", "out", b"c/0")) :][:4]
    assert [call[:2] for call in tail] == [("produce", "out")] * 3 + [("produce", "orders.receipts")]


@pytest.mark.parametrize("who", ["client_refuses", "refuses"])
def test_e8_an_undeliverable_dead_letter_stops_the_worker(world: World, who: str) -> None:
    """It cannot be diverted any further; the message names the record, the topic and what to change."""
    world.log(b"a", b"fail")
    error = kafka_error(KafkaError.MSG_SIZE_TOO_LARGE)
    setattr(world.cluster, who, lambda topic, _: error if topic == "orders.dead" else None)

    with pytest.raises(
        WorkerError,
        match=r"^the dead letter of in\[0\] offset 1 cannot be delivered to orders\.dead: "
        r"MSG_SIZE_TOO_LARGE: made by a test \(topic orders\.dead\); raise",
    ):
        world.run()

    assert (world.out, world.cluster.offsets) == ([], {})


@pytest.mark.parametrize("who", ["client_refuses", "refuses"])
def test_an_undeliverable_receipt_stops_the_worker(world: World, who: str) -> None:
    """No transaction commits without its receipt, and a refused one is not looked for among the outputs for ever."""
    world.log(b"a")
    error = kafka_error(KafkaError.POLICY_VIOLATION)
    setattr(world.cluster, who, lambda topic, _: error if topic == "orders.receipts" else None)

    with pytest.raises(
        WorkerError,
        match=r"^the receipt cannot be delivered to orders\.receipts: POLICY_VIOLATION: made by a test \(topic orders\.receipts\)$",
    ):
        world.run()

    assert (world.out, world.cluster.offsets) == ([], {})


def test_e7_a_failed_delivery_aborts_the_batch(world: World) -> None:
    """The first delivery of a record fails, its replay does not."""
    world.log(b"a", b"b")
    errors = [kafka_error(KafkaError._MSG_TIMED_OUT)]
    world.cluster.refuses = lambda _, value: errors.pop() if value == b"b/0" and errors else None

    world.run()

    assert world.out == [b"a/0", b"b/0"]
    assert world.cluster.names().count("abort_transaction") == 1
    assert world.cluster.names().count("commit_transaction") == 1


def test_the_dead_letter_limit_aborts_and_stops(world: World) -> None:
    """Nothing of the batch that would pass the limit is committed; what was committed before stays."""
    world.log(b"a", b"fail", b"b", b"fail")
    world.limit = DeadLetterLimit(1.0, 1000, 1)

    with pytest.raises(DeadLetterLimitError, match=r"^2 dead letters since the start, the limit is 1 "):
        world.run(settings(records=2))

    assert (world.out, world.dead, world.cluster.offsets) == ([b"a/0"], [(b"fail", "CelError")], {A: 2})
    assert world.cluster.names("flush", "purge", "poll", "consume")[-2:] == ["abort_transaction", "close"]


def test_diverted_inputs_count_for_the_dead_letter_limit(world: World) -> None:
    """A sink that refuses everything is a bad deploy too."""
    world.log(b"bad")
    world.limit = DeadLetterLimit(1.0, 1000, 0)
    world.cluster.client_refuses = lambda topic, _: (
        kafka_error(KafkaError.MSG_SIZE_TOO_LARGE) if topic == "out" else None
    )

    with pytest.raises(DeadLetterLimitError):
        world.run()


def test_t3_without_a_member_id_nothing_is_committed(world: World) -> None:
    """The commit is refused by us, the batch aborted and replayed until the group knows us again."""
    world.log(b"a")
    world.cluster.metadata = metadata_bytes(-1, "")

    def joined() -> None:
        if world.cluster.names().count("abort_transaction") == 2:
            world.cluster.metadata = metadata_bytes(5, "member-1")

    world.cluster.failures["begin_transaction"].extend([joined] * 9)

    world.run()

    assert world.out == [b"a/0"]
    assert [call[2] for call in world.cluster.calls if call[0] == "send_offsets_to_transaction"] == [
        metadata_bytes(5, "member-1")
    ]


def test_r5_a_pinned_start_is_committed_before_any_record_comes(world: World) -> None:
    """With `start: latest` the end of a new group's partition is committed at once, once, without a receipt."""
    world.log(b"old", b"old")

    world.run(settings(start="latest"))

    assert (world.sent(), world.cluster.offsets) == ([{A: 2}], {A: 2})
    assert (world.out, world.receipts, world.told) == ([], [], [])


def test_a_stop_signal_lets_the_batch_commit_and_leaves(world: World) -> None:
    """The batch at hand is committed, no further one is begun, then the group is left and the producer closed."""
    world.log(b"a", b"b", b"c")

    def stopping(records: Sequence[SourceRecord]) -> Result:
        world.cluster.watchdog.stopping = True
        return transform(records)

    world.run(settings(records=2), stopping)

    assert (world.out, world.cluster.offsets) == ([b"a/0", b"b/0"], {A: 2})
    assert world.cluster.names("poll")[-4:] == ["commit_transaction", "close", "purge", "flush"]


@pytest.mark.parametrize("fails", [True, False])
def test_the_garbage_collector_is_given_back(world: World, fails: bool) -> None:  # noqa: FBT001 - a table
    """Off while the loop works, on again afterwards, also after an error."""
    world.log(b"a")
    during: list[bool] = []

    def watching(records: Sequence[SourceRecord]) -> Result:
        during.append(gc.isenabled())
        if fails:
            raise WorkerError
        return transform(records)

    def run() -> Any:
        return world.run(transform=watching)

    if fails:
        with pytest.raises(WorkerError):
            run()
    else:
        run()

    assert (during, gc.isenabled(), gc.get_freeze_count()) == ([False], True, 0)


def run_quietly(world: World, quiet_s: float, meanwhile: Drained = Drained.NO) -> None:
    """Consume the log, then be quiet for so long, with an end of partition behind the records that the log shows."""
    loop = world.loop(settings(), transform)
    waited = iter([meanwhile, meanwhile, Drained.ALL])

    def drained(_offsets: Offsets, _ends: dict[Partition, int]) -> Drained:
        loop.source.ends_reached[A] = 5
        world.now += quiet_s
        return next(waited)

    loop.run(drained)


def test_markers_behind_the_last_record_are_committed_when_the_source_is_quiet(world: World) -> None:
    """Otherwise they expire with the records, and a partition that was fully processed looks like one that lost some."""
    world.log(b"a", b"b")

    run_quietly(world, 31)

    assert world.cluster.offsets == {A: 5}
    assert [spans(receipt) for receipt in world.receipts] == [{A: (0, 2)}, {A: (2, 5)}]
    (part,) = world.receipts[1].partitions
    assert (part.read, part.filtered, part.dead_lettered, part.written) == (0, 0, 0, {})
    assert [receipt.sequence for receipt in world.receipts] == [1, 2]


def test_markers_are_not_committed_at_once(world: World) -> None:
    """That would be one more transaction for every burst of a transactional source."""
    world.log(b"a", b"b")

    run_quietly(world, 9)

    assert world.cluster.offsets == {A: 2}


def test_markers_of_one_partition_are_committed_while_another_is_never_quiet(world: World) -> None:
    """A worker with much to do elsewhere is no reason for them to expire."""
    world.log()
    world.log(b"b", partition=1)
    grows(world)
    slowly = takes(world, 2.0)

    def shows_the_end(records: Sequence[SourceRecord]) -> Result:
        loop.source.ends_reached[B] = 2
        if world.now - began > PASS_MARKERS_S + 10:
            world.cluster.watchdog.stopping = True
        return slowly(records)

    loop = world.loop(settings(records=3), shows_the_end)
    began = world.now
    loop.run()

    assert world.cluster.offsets[B] == 2
    assert [spans(receipt)[B] for receipt in world.receipts if B in spans(receipt)] == [(0, 1), (1, 2)]


def test_markers_are_committed_where_others_wait_to_see_that_ours_are_drained(world: World) -> None:
    world.log(b"a", b"b")

    run_quietly(world, 0, Drained.OURS)

    assert world.cluster.offsets == {A: 5}


def takes(world: World, seconds: float) -> Callable[[Sequence[SourceRecord]], Result]:
    """A transform that takes so long for each partition's records."""

    def slowly(records: Sequence[SourceRecord]) -> Result:
        world.now += seconds
        return transform(records)

    return slowly


def grows(world: World) -> None:
    """Each of the next 400 polls finds a further record in A: far more than any of these runs needs."""

    def grow() -> None:
        records = world.cluster.log[A]
        records.append(message(len(records), b"%d" % len(records)))

    world.cluster.failures["consume"].extend([grow] * 400)


@pytest.mark.parametrize(
    ("records", "seconds", "consumed"),
    [
        pytest.param(4, 1.0, 4, id="at the end exactly"),
        pytest.param(5, 1.0, 6, id="past the end"),
        pytest.param(9, 1.0, 10, id="asked five times, four times too soon"),
        pytest.param(3, 0.4, 6, id="not asked before a second is over"),
        pytest.param(7, 0.4, 12, id="asked once a second, the first time too soon"),
    ],
)
def test_until_drained_ends_on_a_source_that_is_still_written_to(
    world: World, records: int, seconds: float, consumed: int
) -> None:
    """Where no poll is ever in vain it is asked between transactions, at most once a second; all that was there at the start is done."""
    world.log(*[b"%d" % n for n in range(records)])
    grows(world)

    world.run(settings(records=2), takes(world, seconds))

    assert world.cluster.offsets == {A: consumed}
    assert world.out == [b"%d/0" % n for n in range(consumed)]


def test_until_drained_goes_on_while_others_have_to_commit_and_the_source_grows(world: World) -> None:
    """The other's partition is at 0, at 2, then at its end. It is not asked about before ours are at theirs."""
    world.log(b"0", b"1", b"2", b"3")
    grows(world)
    asked: list[int] = []

    def look(partitions: Collection[Partition]) -> dict[Partition, int]:
        assert list(partitions) == [B]
        asked.append(world.cluster.offsets[A])
        return [{}, {B: 2}, {B: 3}][len(asked) - 1]

    world.loop(settings(records=2), takes(world, 1.0)).run(Drain({A: 4, B: 3}, look))

    assert asked == [4, 6, 8]
    assert world.cluster.offsets == {A: 8}


def test_markers_that_others_wait_for_are_committed_while_another_partition_grows(world: World) -> None:
    """B has a marker behind its one record, and A is never quiet: B's end goes into the next transaction, which others wait for."""
    world.log()
    world.log(b"b", partition=1)
    grows(world)
    other: Partition = ("in", 2)
    slowly = takes(world, 0.5)

    def shows_the_end(records: Sequence[SourceRecord]) -> Result:
        loop.source.ends_reached[B] = 2
        return slowly(records)

    def look(_: Collection[Partition]) -> dict[Partition, int]:
        return {other: 1} if world.cluster.offsets[B] == 2 else {}

    loop = world.loop(settings(records=3), shows_the_end)
    loop.run(Drain({A: 0, B: 2, other: 1}, look))

    assert [spans(receipt) for receipt in world.receipts[:2]] == [{A: (0, 2), B: (0, 1)}, {A: (2, 5), B: (1, 2)}]
    assert world.cluster.offsets == {A: 8, B: 2}


def test_until_drained_does_not_end_with_a_batch_that_was_aborted(world: World) -> None:
    """B's end was seen, but its record is to come again, with a fresh consumer: the seek that forgets the end was refused at A."""
    world.log(b"0", b"1")
    world.log(b"b", partition=1)
    fenced = failure(KafkaError.FENCED_INSTANCE_ID, "fatal")
    world.cluster.failures["send_offsets_to_transaction"].append(failure(KafkaError.UNKNOWN, "txn_requires_abort"))
    world.cluster.failures["seek"].append(fenced)
    world.cluster.failures["incremental_unassign"].append(fenced)

    def shows_the_end(records: Sequence[SourceRecord]) -> Result:
        loop.source.ends_reached[B] = 1
        return slowly(records)

    slowly = takes(world, 1.0)
    loop = world.loop(settings(records=3), shows_the_end)
    loop.run(Drain({A: 0, B: 1}, lambda _: {}))

    assert not world.cluster.failures["incremental_unassign"], "the fault did not take place"
    assert world.out == [b"0/0", b"1/0", b"b/0"]
    assert world.cluster.offsets == {A: 2, B: 1}


def test_a_slow_transform_gets_smaller_transactions(world: World) -> None:
    """A full batch that needs more than half of the timeout is halved; once it is quick again, it grows back to the limit."""
    world.log(*[b"%d" % n for n in range(40)])

    def slowly(records: Sequence[SourceRecord]) -> Result:
        quick = (records[0].offset() or 0) >= 12
        world.now += 0 if quick else 2 * len(records)
        return transform(records)

    world.run(settings(records=8), slowly)

    assert [spans(receipt)[A] for receipt in world.receipts] == [
        (0, 8),
        (8, 12),
        (12, 16),
        (16, 24),
        (24, 32),
        (32, 40),
    ]
    assert world.out == [b"%d/0" % n for n in range(40)]


def test_a_slow_commit_does_not_make_transactions_smaller(world: World) -> None:
    """What brokers take does not depend on the number of records."""
    world.log(*[b"%d" % n for n in range(24)])

    def pass_by() -> None:
        world.now += 20

    world.cluster.failures["commit_transaction"].extend([pass_by] * 3)
    world.run(settings(records=8))

    assert [spans(receipt)[A] for receipt in world.receipts] == [(0, 8), (8, 16), (16, 24)]
