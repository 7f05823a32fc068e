"""The error rules (transactions: retry, abort, recreate, stop) against injected broker replies.

The worker's loop runs in the test's main thread, with the configuration that is shipped, against librdkafka's mock cluster. Each test
names its rule, pushes the replies, and proves that they were used up: a fault that did not take place tests nothing. Whether a record was
committed exactly once is read from the log by its commit markers.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition

import worker.doubt
import worker.fill
import worker.transaction
from tests.support.mock_cluster import Api, MockCluster, Reply
from tests.support.waiting import PATIENCE_S, await_true
from transforms.records import Result
from worker.dead_letter import DeadLetterLimit
from worker.errors import CommitUnknownError, ExitCode, FencedByTwinError, Outcome, TransactionError, WorkerError
from worker.loop import TransactionalLoop
from worker.pinned import CONSUMER_PINNED, PRODUCER_PINNED
from worker.settings import (
    _CLASSIC_DEFAULTS,
    _CONSUMER_DEFAULTS,
    _PRODUCER_DEFAULTS,
    Settings,
    TransactionLimits,
    WorkerSettings,
)
from worker.transaction import TransactionalProducer
from worker.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from transforms.records import SourceRecord
    from worker.receipt import Receipt

IN, OUT, DEAD, RECEIPTS = "in", "out", "dead", "receipts"
ENDS = (Api.INIT_PRODUCER_ID, Api.END_TXN)
"""A worker that has not committed all by then is stopped, and its test fails."""

# The codes under the names that librdkafka's protocol gives them. UNKNOWN is UNKNOWN_SERVER_ERROR.
E = KafkaError


def _name(value: object) -> str | None:
    if isinstance(value, Api):
        return value.name.lower()
    return E(value).name() if isinstance(value, int) else None


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster({IN: 1, OUT: 1, DEAD: 1, RECEIPTS: 1}) as mock:
        yield mock


def _settings(cluster: MockCluster, **producer: object) -> Settings:
    common = {"bootstrap.servers": cluster.bootstrap, "client.id": "test"}
    return Settings(
        pipeline="p",
        instance_id="i",
        group_id="g",
        topics=(IN,),
        pattern=None,
        start="earliest",
        sinks=(OUT,),
        dead_letter_topic=DEAD,
        receipt_topic=RECEIPTS,
        lineage=True,
        transaction=TransactionLimits(records=1000, bytes=1_000_000, interval_ms=500),
        worker=WorkerSettings(),
        consumer={**common, **_CONSUMER_DEFAULTS, **_CLASSIC_DEFAULTS, **CONSUMER_PINNED, "group.id": "g"},
        producer={
            **common,
            **_PRODUCER_DEFAULTS,
            "compression.type": "none",
            "transactional.id": "p-i",
            **producer,
            **PRODUCER_PINNED,
        },
        origins={},
    )


class RecordingWatchdog(Watchdog):
    """Remembers what the worker called."""

    def __init__(self) -> None:
        super().__init__(grace_s=60, call_limit_s=60)
        self.calls: list[str] = []

    @contextmanager
    def guard(self, operation: str) -> Iterator[None]:
        self.calls.append(operation)
        with super().guard(operation):
            yield

    def count(self, operation: str) -> int:
        return self.calls.count(operation)


@dataclass
class Run:
    """The worker at work on the mock cluster."""

    cluster: MockCluster
    settings: Settings
    transforms: int = 0
    """How many records were given to the transform: replays count."""
    offsets: list[int] = field(default_factory=list)
    """Their offsets, in the order in which they were given."""
    receipts: list[Receipt] = field(default_factory=list)
    ends: list[list[Api]] = field(default_factory=list)
    """Requests that begin or end an epoch or a transaction, up to each commit."""

    def __post_init__(self) -> None:
        self.watchdog = RecordingWatchdog()
        self.loop = TransactionalLoop(
            self.settings, self.transform, "sha256:0", DeadLetterLimit(1.0, 10_000, None), self.watchdog, self.committed
        )
        self.on_transform: Callable[[], None] = lambda: None
        self.on_commit: Callable[[], None] = lambda: None
        self.route: Callable[[bytes], str] = lambda _: OUT
        self._wanted = 0

    def transform(self, records: Sequence[SourceRecord]) -> Result:
        self.transforms += len(records)
        self.offsets += [record.offset() or 0 for record in records]
        self.on_transform()
        return Result([(self.route(r.value() or b""), r.value(), r.key(), None, 0, r, 0) for r in records], [], 0)

    def committed(self, receipt: Receipt) -> None:
        self.receipts.append(receipt)
        self.ends.append(self.cluster.requests(*ENDS))
        self.on_commit()
        if self.read >= self._wanted:
            self.watchdog.stopping = True

    @property
    def read(self) -> int:
        """Source records in committed transactions, by the receipts that the worker reported."""
        return sum(part.read for receipt in self.receipts for part in receipt.partitions)

    def replayed(self, records: int) -> bool:
        """Whether all records were given once, and before that a first part of them, or all: the transaction that failed. How many were in
        that one is the fetcher's affair: on a busy machine the last of them may come too late for it.
        """
        first = len(self.offsets) - records
        return 0 < first <= records and self.offsets == [*range(first), *range(records)]

    def tiled(self) -> tuple[int, int]:
        """The offsets that the receipts cover; they must be numbered from 1 and tile. How many there are is the fetcher's affair: after a
        seek the records may come back in two fetches, and a transaction takes what has come.
        """
        assert [receipt.sequence for receipt in self.receipts] == list(range(1, len(self.receipts) + 1))
        parts = [part for receipt in self.receipts for part in receipt.partitions]
        assert [part.from_ for part in parts[1:]] == [part.to for part in parts[:-1]]
        return parts[0].from_, parts[-1].to

    def work(self, wanted: int) -> None:
        """Until that many source records are committed, by what the worker says."""
        self._wanted = wanted
        timer = threading.Timer(PATIENCE_S, setattr, (self.watchdog, "stopping", True))
        timer.start()
        try:
            self.loop.run()
        finally:
            timer.cancel()


def _put(cluster: MockCluster, values: Sequence[bytes], partition: int = 0) -> None:
    # All in one batch, so that the worker reads them at once: the mock answers a Fetch with one batch. It leaves with the flush, when all
    # records wait at their partition, which is known before the first of them: those that wait for it would leave as they are moved there.
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "compression.type": "none", "linger.ms": 60_000})
    producer.list_topics(IN, PATIENCE_S)
    before = cluster.batches(IN, partition)
    for value in values:
        producer.produce(IN, value, b"key", partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    assert cluster.batches(IN, partition) == before + 1


def _values(count: int, name: str = "r") -> list[bytes]:
    return [f"{name}{n:03}".encode() for n in range(count)]


def _two_waves(run: Run) -> list[bytes]:
    """Ten records, and ten more once those are committed: the second transaction shows what the first left behind. Returns all values."""
    first, second = _values(10, "a"), _values(10, "b")
    _put(run.cluster, first)

    def next_wave() -> None:
        if len(run.receipts) == 1:
            _put(run.cluster, second)

    run.on_commit = next_wave
    run.work(20)
    return first + second


def _direct(cluster: MockCluster, **producer: object) -> tuple[TransactionalProducer, RecordingWatchdog]:
    """The transactional producer alone, opened."""
    watchdog = RecordingWatchdog()
    transactional = TransactionalProducer(_settings(cluster, **producer).producer, watchdog)
    transactional.open()
    return transactional, watchdog


def _message(value: bytes) -> tuple[str, bytes, None, int, None, None, int, None]:
    return (OUT, value, None, -1, None, None, 0, None)


RETRIABLE = [
    (Api.INIT_PRODUCER_ID, E.COORDINATOR_LOAD_IN_PROGRESS),
    (Api.INIT_PRODUCER_ID, E._TRANSPORT),
    (Api.ADD_PARTITIONS, E.CONCURRENT_TRANSACTIONS),
    (Api.ADD_PARTITIONS, E._TRANSPORT),
    (Api.ADD_OFFSETS, E.CONCURRENT_TRANSACTIONS),
    (Api.ADD_OFFSETS, E._TRANSPORT),
    (Api.TXN_OFFSET_COMMIT, E.NOT_COORDINATOR),
    (Api.TXN_OFFSET_COMMIT, E._TRANSPORT),
    (Api.END_TXN, E.NOT_COORDINATOR),
    (Api.PRODUCE, E.NOT_ENOUGH_REPLICAS),
    (Api.PRODUCE, E._TRANSPORT),
]


@pytest.mark.parametrize(("api", "error"), RETRIABLE, ids=_name)
def test_e1_retriable_error_means_the_same_request_again(cluster: MockCluster, api: Api, error: int) -> None:
    """No abort, no replay, no other producer; the request that failed is sent once more."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster))
    cluster.inject(api, error)

    run.work(10)

    assert cluster.unused(api) == 0, "the test did not exercise the injection"
    assert run.transforms == 10
    assert run.watchdog.count("abort_transaction") == 0
    assert cluster.committed_values(OUT) == values
    assert cluster.written_values(OUT) == values
    assert len(cluster.requests(Api.INIT_PRODUCER_ID)) == (2 if api is Api.INIT_PRODUCER_ID else 1)


ABORTABLE = [
    (Api.ADD_OFFSETS, E.UNKNOWN),
    (Api.TXN_OFFSET_COMMIT, E.UNKNOWN),
    (Api.TXN_OFFSET_COMMIT, E.ILLEGAL_GENERATION),
    (Api.TXN_OFFSET_COMMIT, E.UNKNOWN_MEMBER_ID),
    (Api.TXN_OFFSET_COMMIT, E.FENCED_INSTANCE_ID),
    (Api.TXN_OFFSET_COMMIT, E.STALE_MEMBER_EPOCH),
    (Api.TXN_OFFSET_COMMIT, E.REBALANCE_IN_PROGRESS),
    (Api.TXN_OFFSET_COMMIT, E.UNSTABLE_OFFSET_COMMIT),
]


@pytest.mark.parametrize(("api", "error"), ABORTABLE, ids=_name)
def test_e1_abortable_error_means_abort_rewind_replay(cluster: MockCluster, api: Api, error: int) -> None:
    """The same producer aborts; every record comes once more (T2) and is committed once."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster))
    cluster.inject(api, error)

    run.work(10)

    assert cluster.unused(api) == 0, "the test did not exercise the injection"
    assert run.replayed(10)
    assert run.watchdog.count("abort_transaction") == 1
    assert cluster.committed_values(OUT) == values
    assert len(cluster.requests(Api.INIT_PRODUCER_ID)) == 1
    assert run.tiled() == (0, 10)


@pytest.mark.parametrize("error", [E.UNKNOWN, E.INVALID_PRODUCER_ID_MAPPING], ids=_name)
def test_e1_partition_that_cannot_be_added_means_replay(cluster: MockCluster, error: int) -> None:
    """librdkafka adds partitions in the background: send_offsets or commit meets the error, whichever is called next."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster))
    cluster.inject(Api.ADD_PARTITIONS, error)

    run.work(10)

    assert cluster.unused(Api.ADD_PARTITIONS) == 0, "the test did not exercise the injection"
    assert run.replayed(10)
    assert cluster.committed_values(OUT) == values


FATAL = [
    (Api.ADD_PARTITIONS, E.PRODUCER_FENCED),
    (Api.ADD_PARTITIONS, E.INVALID_TXN_STATE),
    (Api.ADD_OFFSETS, E.INVALID_PRODUCER_EPOCH),
    (Api.TXN_OFFSET_COMMIT, E.INVALID_PRODUCER_EPOCH),
    (Api.TXN_OFFSET_COMMIT, E.INVALID_TXN_STATE),
    (Api.END_TXN, E.PRODUCER_FENCED),
    (Api.END_TXN, E.INVALID_PRODUCER_EPOCH),
    (Api.END_TXN, E.INVALID_TXN_STATE),
    (Api.PRODUCE, E.INVALID_PRODUCER_EPOCH),
    (Api.PRODUCE, E.OUT_OF_ORDER_SEQUENCE_NUMBER),
]


@pytest.mark.parametrize(("api", "error"), FATAL, ids=_name)
def test_e2_fatal_error_means_a_fresh_producer_and_replay(cluster: MockCluster, api: Api, error: int) -> None:
    """Fenced or not: a new producer with the same id, and the records once more. One fencing is not yet a twin."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster))
    cluster.inject(api, error)

    run.work(10)

    assert cluster.unused(api) == 0, "the test did not exercise the injection"
    assert run.replayed(10)
    assert cluster.committed_values(OUT) == values
    assert len(cluster.requests(Api.INIT_PRODUCER_ID)) == 2
    assert run.tiled() == (0, 10)


def test_e2_fenced_while_starting_means_once_more(cluster: MockCluster) -> None:
    """The predecessor may be ending its transaction at this very moment."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster))
    cluster.inject(Api.INIT_PRODUCER_ID, E.PRODUCER_FENCED)

    run.work(10)

    assert cluster.unused(Api.INIT_PRODUCER_ID) == 0, "the test did not exercise the injection"
    assert cluster.committed_values(OUT) == values


@pytest.mark.parametrize("api", [Api.INIT_PRODUCER_ID, Api.END_TXN], ids=_name)
def test_e2_fenced_again_and_again_is_a_twin(cluster: MockCluster, api: Api) -> None:
    """Three fencings in a row stop the worker with its own exit code and a message that names the shared id."""
    _put(cluster, _values(10))
    run = Run(cluster, _settings(cluster))
    cluster.inject(api, *[E.PRODUCER_FENCED] * 3)

    with pytest.raises(FencedByTwinError, match=r"another live worker uses transactional\.id p-i") as caught:
        run.work(10)

    assert caught.value.exit_code is ExitCode.FENCED
    assert cluster.unused(api) == 0, "the test did not exercise the injection"
    assert cluster.committed_values(OUT) == []
    assert run.receipts == []


HOPELESS = [
    (Api.INIT_PRODUCER_ID, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, {0}),
    # librdkafka sends no EndTxn while no partition has been added; that happens beside these two requests.
    (Api.ADD_PARTITIONS, E.TOPIC_AUTHORIZATION_FAILED, {0, 1}),
    (Api.ADD_OFFSETS, E.GROUP_AUTHORIZATION_FAILED, {0, 1}),
    (Api.TXN_OFFSET_COMMIT, E.GROUP_AUTHORIZATION_FAILED, {1}),
    (Api.TXN_OFFSET_COMMIT, E.TOPIC_AUTHORIZATION_FAILED, {1}),
    (Api.END_TXN, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, {1}),
    (Api.PRODUCE, E.TOPIC_AUTHORIZATION_FAILED, {1}),
]


@pytest.mark.parametrize(("api", "error", "ends"), HOPELESS, ids=_name)
def test_e1_missing_permission_stops_the_worker(cluster: MockCluster, api: Api, error: int, ends: set[int]) -> None:
    """Exit code 1 and the error by name; the open transaction is aborted, so that readers do not wait for its timeout."""
    _put(cluster, _values(10))
    run = Run(cluster, _settings(cluster))
    cluster.inject(api, *[error] * 5)

    with pytest.raises(WorkerError, match=E(error).name()) as caught:
        run.work(10)

    assert caught.value.exit_code is ExitCode.FATAL
    assert cluster.unused(api) < 5, "the test did not exercise the injection"
    assert len(cluster.requests(Api.END_TXN)) in ends
    assert cluster.committed_values(OUT) == []


def test_e3_a_sound_producer_is_kept(cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the tests below: without a fault one producer makes both transactions, on a machine that may itself be slow."""
    monkeypatch.setattr(worker.doubt, "SLOW_END_S", PATIENCE_S)
    run = Run(cluster, _settings(cluster))
    values = _two_waves(run)
    assert cluster.committed_values(OUT) == values
    assert cluster.requests(*ENDS) == [Api.INIT_PRODUCER_ID, Api.END_TXN, Api.END_TXN]


@pytest.mark.parametrize(
    ("reply", "timeout_ms", "ends"),
    [
        pytest.param(Reply(E._TRANSPORT), 30_000, 2, id="connection cut"),
        pytest.param(Reply(0, delay_ms=1_100), 30_000, 1, id="slow"),
        pytest.param(Reply(0, delay_ms=6_000), 3_000, 2, id="timed out and sent again"),
    ],
)
def test_e3_commit_in_doubt_means_a_fresh_producer_for_the_next(
    cluster: MockCluster, reply: Reply, timeout_ms: int, ends: int
) -> None:
    """An EndTxn that may still be on its way meets an epoch that is gone. On a slow machine requests may be sent more often than told."""
    run = Run(cluster, _settings(cluster, **{"socket.timeout.ms": timeout_ms}))
    cluster.inject(Api.END_TXN, reply)

    values = _two_waves(run)

    assert cluster.unused(Api.END_TXN) == 0, "the test did not exercise the injection"
    turns = [(api, len(list(requests))) for api, requests in groupby(run.ends[0])]
    assert [api for api, _ in turns] == [Api.INIT_PRODUCER_ID, Api.END_TXN]
    assert turns[1][1] >= ends
    after = cluster.requests(*ENDS)[len(run.ends[0]) :]
    assert after[0] is Api.INIT_PRODUCER_ID
    assert Api.END_TXN in after
    assert run.transforms == 20
    assert cluster.committed_values(OUT) == values


def test_e3_abort_in_doubt_means_a_fresh_producer_for_the_next(cluster: MockCluster) -> None:
    """An EndTxn(abort) that comes late would throw away the first half of the next transaction."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster))
    cluster.inject(Api.TXN_OFFSET_COMMIT, E.ILLEGAL_GENERATION)
    cluster.inject(Api.END_TXN, E._TRANSPORT)

    run.work(10)

    assert cluster.unused(Api.END_TXN) == 0, "the test did not exercise the injection"
    turns = [(api, len(list(requests))) for api, requests in groupby(run.ends[0])]
    assert [api for api, _ in turns] == [Api.INIT_PRODUCER_ID, Api.END_TXN, Api.INIT_PRODUCER_ID, Api.END_TXN]
    assert turns[1][1] >= 2
    assert cluster.committed_values(OUT) == values


def test_e4_commit_without_an_answer_is_called_again_and_never_aborted(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call times out (with -1 librdkafka hardly ever does) until the answer is there; one EndTxn was sent."""

    class Impatient(Producer):
        def commit_transaction(self, timeout: float = -1) -> None:
            super().commit_transaction(0.05)

    monkeypatch.setattr(worker.transaction, "Producer", Impatient)
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster))
    cluster.inject(Api.END_TXN, Reply(0, delay_ms=400))

    run.work(10)

    assert cluster.unused(Api.END_TXN) == 0, "the test did not exercise the injection"
    assert run.watchdog.count("commit_transaction") > 1
    assert run.watchdog.count("abort_transaction") == 0
    assert cluster.requests(*ENDS) == [Api.INIT_PRODUCER_ID, Api.END_TXN]
    assert run.transforms == 10
    assert cluster.committed_values(OUT) == values


def test_e4_end_that_is_put_off_is_asked_for_again(cluster: MockCluster) -> None:
    """Eight times "not now": the same commit goes on, nothing is replayed."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster, **{"retry.backoff.ms": 10, "retry.backoff.max.ms": 20}))
    cluster.inject(Api.END_TXN, *[E.CONCURRENT_TRANSACTIONS] * 8)

    run.work(10)

    assert cluster.requests(*ENDS) == [Api.INIT_PRODUCER_ID, *[Api.END_TXN] * 9]
    assert run.watchdog.count("abort_transaction") == 0
    assert run.transforms == 10
    assert cluster.committed_values(OUT) == values


def test_e5_begin_after_a_fatal_error_comes_back(cluster: MockCluster) -> None:
    """It has hung (#4420); it raises by itself, and a fresh producer works."""
    producer, _ = _direct(cluster)
    cluster.inject(Api.ADD_PARTITIONS, E.INVALID_TXN_STATE)
    producer.begin()
    producer.produce([_message(b"lost")])
    with pytest.raises(TransactionError) as failed:
        producer._flush()
    assert failed.value.outcome is Outcome.RECREATE

    with pytest.raises(TransactionError) as again:
        producer.begin()

    # One that hung would have been given up, for want of an answer.
    assert (again.value.outcome, again.value.error.code()) == (Outcome.RECREATE, E.INVALID_TXN_STATE)
    producer.open()
    producer.begin()
    producer.abort()
    producer.close()


def test_e6_unknown_server_error_on_end_is_not_a_commit(cluster: MockCluster) -> None:
    """The group's committed offsets say that nothing took place: the records come again."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster))
    cluster.inject(Api.END_TXN, E.UNKNOWN)

    run.work(10)

    assert cluster.unused(Api.END_TXN) == 0, "the test did not exercise the injection"
    assert run.replayed(10)
    ends = cluster.requests(*ENDS)
    assert ends[:3] == [Api.INIT_PRODUCER_ID, Api.END_TXN, Api.INIT_PRODUCER_ID]
    assert ends[3:] == [Api.END_TXN] * len(run.receipts)
    assert cluster.committed_values(OUT) == values
    assert run.tiled() == (0, 10)


def test_e6_unknown_server_error_on_end_may_be_a_commit(cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The group's committed offsets say that it took place: it is counted once, and nothing comes again.

    The mock forgets transactional offsets, so the test commits them in its stead, while the outcome is not known.
    """
    run = Run(cluster, _settings(cluster))
    cluster.inject(Api.END_TXN, E.UNKNOWN)
    commit = run.loop._producer.commit

    def commit_that_took_place(offsets: Sequence[TopicPartition], metadata: object) -> None:
        try:
            commit(offsets, metadata)
        except CommitUnknownError:
            run.loop.source.consumer.commit(offsets=list(offsets), asynchronous=False)
            raise

    monkeypatch.setattr(run.loop._producer, "commit", commit_that_took_place)

    values = _two_waves(run)

    assert cluster.unused(Api.END_TXN) == 0, "the test did not exercise the injection"
    assert run.transforms == 20
    assert cluster.written_values(OUT) == values
    assert [p.to for receipt in run.receipts for p in receipt.partitions] == [10, 20]
    assert len({(receipt.incarnation, receipt.sequence) for receipt in run.receipts}) == 2
    assert cluster.requests(*ENDS) == [Api.INIT_PRODUCER_ID, Api.END_TXN, Api.INIT_PRODUCER_ID, Api.END_TXN]


def test_e7_failed_delivery_aborts_the_batch(cluster: MockCluster) -> None:
    """The broker refuses the outputs once; offsets and receipt do not commit without them."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster))
    cluster.inject_produce(OUT, 0, E.UNKNOWN)

    run.work(10)

    assert run.transforms >= 20, "the test did not exercise the injection"
    assert cluster.committed_values(OUT) == values
    assert len(cluster.committed_values(RECEIPTS)) == 1


def test_e7_reports_of_purged_messages_do_not_fail_the_next_transaction(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be delivered in time is purged before an abort; its _PURGE reports are ours."""
    monkeypatch.setattr(worker.transaction, "SETTLE_S", 0.2)
    producer, _ = _direct(cluster)
    producer.begin()
    cluster.inject(Api.ADD_PARTITIONS, Reply(0, delay_ms=3_000))
    producer.produce([_message(b"purged")])
    await_true(lambda: cluster.unused(Api.ADD_PARTITIONS) == 0, "the request was taken")

    producer.abort()

    assert cluster.unused(Api.ADD_PARTITIONS) == 0, "the test did not exercise the injection"
    producer.begin()
    producer.produce([_message(b"kept")])
    producer._flush()
    producer.producer.commit_transaction(PATIENCE_S)
    assert cluster.written_values(OUT) == [b"kept"], (
        "the message was sent before it could be purged: the test shows nothing"
    )
    assert cluster.committed_values(OUT) == [b"kept"]
    producer.close()


@pytest.mark.parametrize("error", [E.MSG_SIZE_TOO_LARGE, E.INVALID_RECORD], ids=_name)
def test_e8_output_that_the_broker_refuses_diverts_its_input(cluster: MockCluster, error: int) -> None:
    """The batch is refused, then one record delivered by itself: it goes to the dead letters, its neighbours do not."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster, **{"linger.ms": 20_000}))  # what is sent by the flush goes in one request
    cluster.inject_produce(OUT, 0, error, 0, 0, 0, error)

    run.work(10)

    (dead,) = cluster.committed_values(DEAD)
    assert cluster.committed_values(OUT) == [value for value in values if value != dead]
    # Which one the last refusal met depends on how many attempts there were: the one after the last that was taken before the replay.
    written = cluster.written_values(OUT)
    assert values.index(dead) == values.index(written[-10]) + 1
    assert len(run.receipts) == 1


def test_e8_refusal_that_is_noticed_before_the_commit_counts_too(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal of one piece's outputs comes back while the next is transformed: produce, not the flush, meets the failure."""
    monkeypatch.setattr(worker.fill, "PIECE", 3)
    values = _values(6)
    _put(cluster, values)
    # Sent by themselves, while the next piece is waited with, but so late that all three go in one request.
    run = Run(cluster, _settings(cluster, **{"linger.ms": 500}))
    cluster.inject_produce(OUT, 0, E.MSG_SIZE_TOO_LARGE, E.MSG_SIZE_TOO_LARGE)
    returned: list[int] = []

    def await_the_refusal() -> None:
        if run.transforms == 6 and not returned:
            producer = run.loop._producer
            await_true(lambda: producer.producer.poll(0.05) >= 0 and producer._deliveries, "the refusal is back")
            returned.append(run.watchdog.count("flush"))

    run.on_transform = await_the_refusal

    run.work(6)

    assert returned == [0], "a flush came first: the test did not exercise the refusal"
    assert cluster.committed_values(DEAD) == values[:1]
    assert cluster.committed_values(OUT) == values[1:]


def test_e8_output_for_a_topic_that_does_not_exist_is_no_fault_of_its_input(cluster: MockCluster) -> None:
    """A sink that is deleted while the worker runs: the transaction is tried again until it is there, and nothing becomes a dead letter."""
    values = _values(10)
    _put(cluster, values)
    run = Run(cluster, _settings(cluster, **{"topic.metadata.propagation.max.ms": 300}))
    run.route = lambda value: "nowhere" if value == values[3] and run.transforms <= 20 else OUT

    run.work(10)

    assert run.transforms >= 30, "the topic was not missing"
    assert cluster.committed_values(OUT) == values
    assert cluster.committed_values(DEAD) == []


def test_e8_receipt_that_the_broker_refuses_stops_the_worker(cluster: MockCluster) -> None:
    """No input is at fault: looking for one would never end."""
    _put(cluster, _values(10))
    run = Run(cluster, _settings(cluster))
    cluster.inject_produce(RECEIPTS, 0, *[E.MSG_SIZE_TOO_LARGE] * 50)

    with pytest.raises(WorkerError, match="the receipt cannot be delivered to receipts: MSG_SIZE_TOO_LARGE"):
        run.work(10)

    assert cluster.committed_values(OUT) == []


def test_e10_after_a_fencing_nothing_of_the_next_batch_is_committed_first(cluster: MockCluster) -> None:
    """Two batches; the first is fenced: it comes again before the second, and the receipts tile the partition."""
    values = _values(10)
    _put(cluster, values)
    settings = _settings(cluster)
    run = Run(cluster, replace(settings, transaction=replace(settings.transaction, records=5)))
    cluster.inject(Api.END_TXN, E.PRODUCER_FENCED)

    run.work(10)

    assert cluster.unused(Api.END_TXN) == 0, "the test did not exercise the injection"
    assert cluster.committed_values(OUT) == values
    assert [(p.from_, p.to) for receipt in run.receipts for p in receipt.partitions] == [(0, 5), (5, 10)]
    assert run.transforms == 15


def test_e11_nothing_is_unsent_when_a_transaction_is_aborted(cluster: MockCluster) -> None:
    """The abort comes after the delivery of what was queued, and leaves a producer that works."""
    producer, _ = _direct(cluster, **{"linger.ms": 20_000})
    producer.begin()
    producer.produce([_message(b"aborted")])
    assert len(producer.producer) == 1, "the message was sent already: the test shows nothing"

    producer.abort()

    assert cluster.requests(Api.PRODUCE, Api.END_TXN) == [Api.PRODUCE, Api.END_TXN]
    assert cluster.written_values(OUT) == [b"aborted"]
    assert cluster.committed_values(OUT) == []
    producer.begin()
    producer.abort()
    producer.close()
