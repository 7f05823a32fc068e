"""The transactional producer against a fake client: which calls, with which arguments, in which order, and what surfaces."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.unit.worker.fakes import Clock, FakeCluster, FakeProducer, failure, kafka_error, message
from worker.doubt import QUICK_END_S, SLOW_END_S, UNSURE_S
from worker.errand import Errands, HungError
from worker.errors import BrokerUnreachableError, CommitUnknownError, Outcome, TransactionError, UndeliverableError
from worker.transaction import INIT_WAIT_S, OFFSETS_PATIENCE_S, PATIENCE_S, QUICK_FLUSH_S, TransactionalProducer

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.lineage import Message

OFFSETS = [TopicPartition("in", 0, 7)]
METADATA = b"metadata"
COMMIT = ["send_offsets_to_transaction", "commit_transaction"]
CONFIG = {"transactional.id": "orders-a", "bootstrap.servers": "127.0.0.1:1"}


LONG_ENOUGH_S = 0.08
"""A commit that may have been sent twice."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster()
    cluster.install(monkeypatch)
    return cluster


@pytest.fixture
def clock(cluster: FakeCluster) -> Clock:
    return cluster.clock


def opened(cluster: FakeCluster) -> TransactionalProducer:
    """A producer inside a transaction, with the calls so far forgotten."""
    producer = TransactionalProducer(CONFIG, cluster.watchdog)
    producer.open()
    producer.begin()
    cluster.calls.clear()
    cluster.guards.clear()
    return producer


def record(value: bytes = b"v", topic: str = "out") -> Message:
    return (topic, value, b"k", -1, None, None, 5, None)


def queue(cluster: FakeCluster) -> FakeProducer:
    return cluster.producers[-1]


def test_t6_open_fences_the_predecessor_with_the_same_id_each_time(cluster: FakeCluster) -> None:
    """Every open makes a client with our transactional.id and initialises it before anything else is done with it."""
    producer = TransactionalProducer(CONFIG, cluster.watchdog)

    producer.open()
    producer.open()

    made = [("Producer", "orders-a"), ("init_transactions", INIT_WAIT_S), ("poll", 0)]
    assert [*made, ("purge",), ("flush", 5.0), *made] == cluster.calls
    assert producer.transactional_id == "orders-a"


def test_a_transaction_in_order(cluster: FakeCluster) -> None:
    """Records, which are delivered if that is quick, then offsets, then the commit; only then are outputs and offsets visible."""
    producer = opened(cluster)

    refused = producer.produce([record(b"1"), record(b"2")])
    assert (refused, cluster.visible, cluster.offsets) == ({}, {}, {})
    producer.commit(OFFSETS, METADATA)

    assert cluster.calls == [
        ("produce", "out", b"1"),
        ("produce", "out", b"2"),
        ("poll", 0),
        ("flush", QUICK_FLUSH_S),
        ("send_offsets_to_transaction", {("in", 0): 7}, METADATA, -1),
        ("commit_transaction", -1),
        ("poll", 0),
    ]
    assert cluster.visible == {"out": [(b"1", b"k", 5, None), (b"2", b"k", 5, None)]}
    assert cluster.offsets == {("in", 0): 7}


def test_a_slow_delivery_is_awaited_after_the_offsets(cluster: FakeCluster) -> None:
    """A transaction that failed would keep its records back: the offsets are refused then, and nothing waits for a delivery timeout."""
    producer = opened(cluster)
    producer.produce([record()])
    queue(cluster).stuck = 2
    cluster.calls.clear()

    producer.commit(OFFSETS, METADATA)

    assert cluster.names("poll") == ["flush", "send_offsets_to_transaction", "flush", "flush", "commit_transaction"]
    assert cluster.calls[0] == ("flush", QUICK_FLUSH_S)


RUNS: dict[str, Callable[[TransactionalProducer], object]] = {
    "init_transactions": lambda producer: producer.open(),
    "begin_transaction": lambda producer: producer.begin(),
    "send_offsets_to_transaction": lambda producer: producer.commit(OFFSETS, METADATA),
    "commit_transaction": lambda producer: producer.commit(OFFSETS, METADATA),
    "abort_transaction": lambda producer: producer.abort(),
}


@pytest.mark.parametrize("operation", RUNS)
def test_e1_a_retriable_error_means_the_same_call_again(cluster: FakeCluster, operation: str) -> None:
    """Twice retriable, then done: three calls with identical arguments, each -1 where there is a timeout (E4, E5; not init), no other."""
    producer = opened(cluster)
    cluster.failures[operation].extend([failure(KafkaError._TIMED_OUT, "retriable")] * 2)

    RUNS[operation](producer)

    calls = [call for call in cluster.calls if call[0] == operation]
    assert [calls[0]] * 3 == calls
    if operation != "begin_transaction":
        assert calls[0][-1] == (INIT_WAIT_S if operation == "init_transactions" else -1)
    assert ("abort_transaction" in cluster.names()) is (operation == "abort_transaction")


@pytest.mark.parametrize("operation", RUNS)
def test_e5_the_watchdog_guards_every_call(cluster: FakeCluster, operation: str) -> None:
    """A call without a timeout of its own is guarded under its own name, and not after it came back."""
    producer = opened(cluster)

    RUNS[operation](producer)

    assert [operation] == [guard for name, guard in cluster.guards if name == operation]
    assert cluster.watchdog.guarding is None
    assert cluster.watchdog._call is None


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (failure(KafkaError._TIMED_OUT, "txn_requires_abort"), Outcome.ABORT),
        (failure(KafkaError.INVALID_TXN_STATE, "fatal"), Outcome.RECREATE),
        (failure(KafkaError._FENCED, "fatal"), Outcome.FENCED),
        (failure(KafkaError.UNKNOWN), Outcome.FATAL),
    ],
    ids=lambda value: value.name if isinstance(value, Outcome) else "",
)
def test_e1_other_errors_surface_at_once_with_what_to_do(
    cluster: FakeCluster, error: BaseException, outcome: Outcome
) -> None:
    """send_offsets_to_transaction is not called again and commit_transaction is not called at all."""
    producer = opened(cluster)
    cluster.failures["send_offsets_to_transaction"].append(error)

    with pytest.raises(TransactionError) as raised:
        producer.commit(OFFSETS, METADATA)

    assert (outcome, "send_offsets_to_transaction") == (raised.value.outcome, raised.value.operation)
    assert cluster.names("flush") == ["send_offsets_to_transaction"]


def test_e4_commit_timeout_is_called_again(cluster: FakeCluster) -> None:
    """A commit that timed out is resumed by the same call until it is done, and never turned into an abort."""
    producer = opened(cluster)
    cluster.failures["commit_transaction"].extend([failure(KafkaError._TIMED_OUT, "retriable")] * 3)

    producer.commit(OFFSETS, METADATA)

    assert cluster.names("poll", "flush") == [COMMIT[0], *[COMMIT[1]] * 4]
    assert cluster.offsets == {("in", 0): 7}


def test_e4_send_offsets_is_retried_with_identical_arguments(cluster: FakeCluster) -> None:
    """Not resumable: the very same offsets and group metadata again, once per failure."""
    producer = opened(cluster)
    cluster.failures[COMMIT[0]].append(failure(KafkaError._TIMED_OUT, "retriable"))

    producer.commit(OFFSETS, METADATA)

    sent = (COMMIT[0], {("in", 0): 7}, METADATA, -1)
    assert [call for call in cluster.calls if call[0] == COMMIT[0]] == [sent, sent]


@pytest.mark.parametrize(
    "error",
    [
        failure(KafkaError.UNKNOWN),
        failure(9999),
        failure(KafkaError.UNKNOWN, "fatal"),
        failure(KafkaError._FENCED, "fatal"),
        failure(KafkaError.INVALID_TXN_STATE, "txn_requires_abort"),
    ],
    ids=["unknown", "unheard of", "fatal", "fenced", "abortable"],
)
def test_e6_an_error_of_the_commit_is_never_taken_for_success(cluster: FakeCluster, error: BaseException) -> None:
    """Whatever is not retriable leaves the outcome unknown, with the cause; nothing is aborted or sent again."""
    producer = opened(cluster)
    cluster.failures[COMMIT[1]].append(error)

    with pytest.raises(CommitUnknownError) as raised:
        producer.commit(OFFSETS, METADATA)

    assert raised.value.cause.error is error.args[0]
    assert cluster.names("flush") == COMMIT


def test_e7_a_full_queue_is_polled_and_the_same_record_produced_again(cluster: FakeCluster) -> None:
    """BufferError twice for the second record: it is neither skipped nor overtaken by the third."""
    producer = opened(cluster)
    cluster.failures["produce"].extend([None, BufferError(), BufferError()])

    assert producer.produce([record(b"1"), record(b"2"), record(b"3")]) == {}

    assert cluster.calls == [
        ("produce", "out", b"1"),
        ("produce", "out", b"2"),
        ("poll", 0.05),
        ("produce", "out", b"2"),
        ("poll", 0.05),
        ("produce", "out", b"2"),
        ("produce", "out", b"3"),
        ("poll", 0),
    ]
    assert [value for _, value, *_ in queue(cluster).queue] == [b"1", b"2", b"3"]


def test_e7_a_transaction_that_fails_while_the_queue_is_full_aborts(cluster: FakeCluster) -> None:
    """The client's refusal after a BufferError is treated as any other: no raw exception of the client escapes."""
    producer = opened(cluster)
    cluster.failures["produce"].extend([BufferError(), failure(KafkaError._FATAL)])

    with pytest.raises(TransactionError) as raised:
        producer.produce([record()])

    assert (raised.value.outcome, raised.value.operation) == (Outcome.ABORT, "produce to out")


def test_e8_a_record_refused_after_the_queue_was_full_is_named(cluster: FakeCluster) -> None:
    """The index is that of the record that waited for room, and the rest is produced."""
    producer = opened(cluster)
    cluster.failures["produce"].extend([None, BufferError(), failure(KafkaError.MSG_SIZE_TOO_LARGE)])

    assert producer.produce([record(b"1"), record(b"2"), record(b"3")]) == {
        1: "MSG_SIZE_TOO_LARGE: made by a test (topic out)"
    }
    assert [value for _, value, *_ in queue(cluster).queue] == [b"1", b"3"]


def test_e7_a_failed_delivery_surfaces_at_commit(cluster: FakeCluster) -> None:
    """The batch is to be aborted, and commit_transaction is not called."""
    producer = opened(cluster)
    cluster.refuses = lambda _topic, _value: kafka_error(KafkaError._MSG_TIMED_OUT)
    producer.produce([record()])

    with pytest.raises(TransactionError) as raised:
        producer.commit(OFFSETS, METADATA)

    assert (raised.value.outcome, raised.value.operation) == (Outcome.ABORT, "deliver to out")
    assert "commit_transaction" not in cluster.names()
    assert (cluster.visible, cluster.offsets) == ({}, {})


def test_e7_a_delivery_that_failed_before_the_commit_surfaces_at_commit(cluster: FakeCluster) -> None:
    """A report served by a poll between the records counts as well, though the queue is empty by then."""
    producer = opened(cluster)
    queue(cluster).on_delivery(kafka_error(KafkaError._MSG_TIMED_OUT), message(0, topic="out"))

    with pytest.raises(TransactionError) as raised:
        producer.commit(OFFSETS, METADATA)

    assert raised.value.outcome is Outcome.ABORT
    assert cluster.names("flush") == ["send_offsets_to_transaction"]


def test_e7_commit_waits_until_everything_is_delivered(cluster: FakeCluster) -> None:
    """Flush is called as often as it takes, under the watchdog's guard."""
    producer = opened(cluster)
    producer.produce([record()])
    queue(cluster).stuck = 3

    producer.commit(OFFSETS, METADATA)

    assert [guard for name, guard in cluster.guards if name == "flush"] == ["flush"] * 4
    assert cluster.names("produce", "poll")[-1] == "commit_transaction"


def test_e7_the_failures_of_an_aborted_batch_are_forgotten(cluster: FakeCluster) -> None:
    """After the abort the next transaction commits."""
    producer = opened(cluster)
    queue(cluster).on_delivery(kafka_error(KafkaError._MSG_TIMED_OUT), message(0, topic="out"))

    producer.abort()
    producer.begin()
    producer.commit(OFFSETS, METADATA)

    assert cluster.offsets == {("in", 0): 7}


def wrapped(error: KafkaException) -> SystemError:
    """What confluent-kafka raises when one callback raised and the next one returned."""
    exception = SystemError("returned a result with an exception set")
    exception.__cause__ = error
    return exception


@pytest.mark.parametrize("wrap", [lambda error: error, wrapped], ids=["as it is", "in a SystemError"])
@pytest.mark.parametrize(
    ("code", "outcome"), [(KafkaError.INVALID_TXN_STATE, Outcome.RECREATE), (KafkaError._FENCED, Outcome.FENCED)]
)
def test_e2_a_fatal_error_out_of_flush_surfaces_at_commit(
    cluster: FakeCluster, code: int, outcome: Outcome, wrap: Callable[[KafkaException], BaseException]
) -> None:
    """Not as a raw exception of the client, and commit_transaction is not called."""
    producer = opened(cluster)
    producer.produce([record()])
    cluster.failures["flush"].append(wrap(failure(code, "fatal")))

    with pytest.raises(TransactionError) as raised:
        producer.commit(OFFSETS, METADATA)

    assert (outcome, "deliver") == (raised.value.outcome, raised.value.operation)
    assert "commit_transaction" not in cluster.names()


@pytest.mark.parametrize("wrap", [lambda error: error, wrapped], ids=["as it is", "in a SystemError"])
def test_e6_a_fatal_error_met_after_a_successful_commit_does_not_deny_it(
    cluster: FakeCluster, wrap: Callable[[KafkaException], BaseException]
) -> None:
    """The commit is reported as done: replaying its records would double them."""
    producer = opened(cluster)
    cluster.failures["poll"].append(wrap(failure(KafkaError._FENCED, "fatal")))

    producer.commit(OFFSETS, METADATA)

    assert cluster.offsets == {("in", 0): 7}


def test_e1_an_error_inside_a_system_error_is_an_error_like_any_other(cluster: FakeCluster) -> None:
    """Retriable means the same call again; a SystemError without a KafkaException is none of Kafka's and passes."""
    producer = opened(cluster)
    cluster.failures["abort_transaction"].extend(
        [wrapped(failure(KafkaError._TIMED_OUT, "retriable")), SystemError("something else")]
    )

    with pytest.raises(SystemError, match=r"^something else$"):
        producer.abort()

    assert cluster.names("poll", "flush") == ["abort_transaction"] * 2


def test_e7_a_delivery_that_no_producer_can_make_stops_the_worker(cluster: FakeCluster) -> None:
    """Not allowed to write: an abort and a replay would go on for ever."""
    producer = opened(cluster)
    cluster.refuses = lambda _topic, _value: kafka_error(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    producer.produce([record()])

    with pytest.raises(TransactionError) as raised:
        producer.commit(OFFSETS, METADATA)

    assert (raised.value.outcome, raised.value.operation) == (Outcome.FATAL, "deliver to out")


MEETS_A_FAILURE: dict[str, Callable[[TransactionalProducer], object]] = {
    "send_offsets_to_transaction": lambda producer: producer.commit(OFFSETS, METADATA),
    "produce": lambda producer: producer.produce([record()]),
}


@pytest.mark.parametrize("operation", MEETS_A_FAILURE)
def test_e8_a_refused_record_is_told_whichever_call_meets_the_failed_transaction(
    cluster: FakeCluster, operation: str
) -> None:
    """The broker refuses a record; the next call only says that the transaction has failed. The refusal is what counts."""
    producer = opened(cluster)
    cluster.refuses = lambda _topic, _value: kafka_error(KafkaError.INVALID_RECORD, reason="no key")
    producer.produce([record()])
    cluster.failures[operation].append(failure(KafkaError._STATE, "txn_requires_abort"))

    with pytest.raises(UndeliverableError, match=r"^INVALID_RECORD: no key \(topic out\)$"):
        MEETS_A_FAILURE[operation](producer)


@pytest.mark.parametrize(
    "code", [KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._INVALID_DIFFERENT_RECORD]
)
def test_e7_purge_reports_are_ignored(cluster: FakeCluster, code: int) -> None:
    """They say that we threw a record away ourselves, or that another record is at fault, which reports for itself."""
    producer = opened(cluster)
    queue(cluster).on_delivery(kafka_error(code), message(0, topic="out"))

    producer.commit(OFFSETS, METADATA)

    assert cluster.offsets == {("in", 0): 7}


def test_e8_the_client_refuses_records_by_index(cluster: FakeCluster) -> None:
    """Each refused record is named by its index with the reason; the others are produced."""
    producer = opened(cluster)
    cluster.failures["produce"].extend(
        [failure(KafkaError.MSG_SIZE_TOO_LARGE), None, failure(KafkaError.INVALID_RECORD), None]
    )

    refused = producer.produce([record(b"%d" % n) for n in range(4)])

    assert refused == {
        0: "MSG_SIZE_TOO_LARGE: made by a test (topic out)",
        2: "INVALID_RECORD: made by a test (topic out)",
    }
    assert [value for _, value, *_ in queue(cluster).queue] == [b"1", b"3"]


def test_e8_another_refusal_of_the_client_aborts(cluster: FakeCluster) -> None:
    """When the transaction has failed already, no record is at fault."""
    producer = opened(cluster)
    cluster.failures["produce"].append(failure(KafkaError._STATE))

    with pytest.raises(TransactionError) as raised:
        producer.produce([record()])

    assert (raised.value.outcome, raised.value.operation) == (Outcome.ABORT, "produce to out")


def test_e8_a_batch_refused_by_the_broker_names_no_record(cluster: FakeCluster) -> None:
    """Among several delivery failures the one that no retry mends decides; commit_transaction is not called."""
    producer = opened(cluster)
    queue(cluster).on_delivery(kafka_error(KafkaError._MSG_TIMED_OUT), message(0, topic="out"))
    queue(cluster).on_delivery(kafka_error(KafkaError.INVALID_RECORD, reason="no key"), message(0, topic="out"))

    with pytest.raises(UndeliverableError, match=r"^INVALID_RECORD: no key \(topic out\)$") as raised:
        producer.commit(OFFSETS, METADATA)

    assert raised.value.reasons == {}
    assert cluster.names("flush") == ["send_offsets_to_transaction"]


def test_e8_one_by_one_finds_the_record_at_fault(cluster: FakeCluster) -> None:
    """Every record is delivered by itself; the first refused one is named and nothing is produced after it."""
    producer = opened(cluster)
    cluster.refuses = lambda _topic, value: kafka_error(KafkaError.INVALID_RECORD) if value == b"bad" else None

    refused = producer.produce_one_by_one([record(b"1"), record(b"bad"), record(b"3")])

    assert refused == {1: "INVALID_RECORD: made by a test (topic out)"}
    assert [call[2] for call in cluster.calls if call[0] == "produce"] == [b"1", b"bad"]
    assert cluster.names("poll")[:3] == ["produce", "flush", "produce"]


def test_e8_one_by_one_also_names_what_the_client_refuses(cluster: FakeCluster) -> None:
    """The index counts within all records, not within the single one at hand."""
    producer = opened(cluster)
    cluster.failures["produce"].extend([None, failure(KafkaError.MSG_SIZE_TOO_LARGE)])

    refused = producer.produce_one_by_one([record(b"1"), record(b"2"), record(b"3")])

    assert refused == {1: "MSG_SIZE_TOO_LARGE: made by a test (topic out)"}
    assert producer.produce_one_by_one([record(b"4")]) == {}


def test_e11_flush_comes_before_the_abort(cluster: FakeCluster) -> None:
    """Nothing is on its way when abort_transaction is called, and nothing is purged where the flush was enough."""
    producer = opened(cluster)
    producer.produce([record()])
    cluster.calls.clear()

    producer.abort()

    calls = [call for call in cluster.calls if call[0] != "poll"]
    assert calls == [("flush", 5.0), ("abort_transaction", -1), ("flush", 5.0)]
    assert cluster.visible == {}


def test_e11_what_cannot_be_delivered_in_time_is_purged_before_the_abort(cluster: FakeCluster) -> None:
    """Purge only when the flush left something, and its reports are awaited; they do not fail the next transaction."""
    producer = opened(cluster)
    producer.produce([record()])
    queue(cluster).stuck = 1
    cluster.calls.clear()

    producer.abort()
    producer.begin()
    producer.commit(OFFSETS, METADATA)

    assert cluster.names("poll") == [
        "flush",
        "purge",
        "flush",
        "abort_transaction",
        "flush",
        "begin_transaction",
        *COMMIT,
    ]
    assert cluster.visible == {}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (failure(KafkaError._TIMED_OUT, "txn_requires_abort"), Outcome.RECREATE),
        (failure(KafkaError.INVALID_TXN_STATE, "fatal"), Outcome.RECREATE),
        (failure(KafkaError._FENCED, "fatal"), Outcome.FENCED),
        (failure(KafkaError.UNKNOWN), Outcome.FATAL),
    ],
    ids=["abortable", "fatal", "fenced", "unknown"],
)
def test_e2_an_abort_that_fails_asks_for_another_producer(
    cluster: FakeCluster, error: BaseException, outcome: Outcome
) -> None:
    """An abort cannot be answered by an abort: that would go on for ever."""
    producer = opened(cluster)
    cluster.failures["abort_transaction"].append(error)

    with pytest.raises(TransactionError) as raised:
        producer.abort()

    assert (outcome, "abort_transaction") == (raised.value.outcome, raised.value.operation)


FRESH = ["purge", "flush", "Producer", "init_transactions", "begin_transaction"]


def begun_after(cluster: FakeCluster, producer: TransactionalProducer) -> list[str]:
    cluster.calls.clear()
    producer.begin()
    return cluster.names("poll")


def test_e3_a_smooth_commit_keeps_the_producer(cluster: FakeCluster, clock: Clock) -> None:
    """A commit that took no longer than usual is followed by the same producer, again and again."""
    producer = opened(cluster)
    cluster.failures[COMMIT[1]].extend([lambda: clock.passes(SLOW_END_S)] * 2)

    producer.commit(OFFSETS, METADATA)
    assert begun_after(cluster, producer) == ["begin_transaction"]
    producer.commit(OFFSETS, METADATA)
    assert begun_after(cluster, producer) == ["begin_transaction"]


def test_e3_a_slow_commit_is_followed_by_a_fresh_producer(cluster: FakeCluster, clock: Clock) -> None:
    """Its EndTxn may be in the network twice: the next transaction gets a new epoch. Only the next one."""
    producer = opened(cluster)
    cluster.failures[COMMIT[1]].append(lambda: clock.passes(SLOW_END_S + 0.01))

    producer.commit(OFFSETS, METADATA)

    assert begun_after(cluster, producer) == FRESH
    producer.commit(OFFSETS, METADATA)
    assert begun_after(cluster, producer) == ["begin_transaction"]


def test_e3_a_commit_called_twice_is_followed_by_a_fresh_producer(cluster: FakeCluster, clock: Clock) -> None:
    """However quick it was."""
    assert clock.now == 1000
    producer = opened(cluster)
    cluster.failures[COMMIT[1]].append(failure(KafkaError._TIMED_OUT, "retriable"))

    producer.commit(OFFSETS, METADATA)

    assert begun_after(cluster, producer) == FRESH


@pytest.mark.parametrize(("age", "calls"), [(UNSURE_S - 0.1, FRESH), (UNSURE_S, FRESH[-1:])], ids=["recent", "old"])
def test_e3_a_broken_connection_is_followed_by_a_fresh_producer(
    cluster: FakeCluster, clock: Clock, age: float, calls: list[str]
) -> None:
    """librdkafka tells of a broker's error once in 30 s: within that time the connection is not trusted, afterwards it is."""
    producer = opened(cluster)
    queue(cluster).error_cb(kafka_error(KafkaError._TRANSPORT))
    clock.passes(age - LONG_ENOUGH_S)
    cluster.failures["commit_transaction"].append(lambda: clock.passes(LONG_ENOUGH_S))

    producer.commit(OFFSETS, METADATA)

    assert begun_after(cluster, producer) == calls


def test_e3_a_connection_that_broke_during_the_start_is_not_trusted_either(cluster: FakeCluster, clock: Clock) -> None:
    """librdkafka may not tell when it breaks again within 30 s."""
    assert clock.now == 1000
    cluster.failures["init_transactions"].append(lambda: queue(cluster).error_cb(kafka_error(KafkaError._TRANSPORT)))
    producer = opened(cluster)
    cluster.failures["commit_transaction"].append(lambda: clock.passes(LONG_ENOUGH_S))

    producer.commit(OFFSETS, METADATA)

    assert begun_after(cluster, producer) == FRESH


def test_e3_a_commit_too_quick_to_have_been_sent_twice_keeps_the_producer(cluster: FakeCluster, clock: Clock) -> None:
    """librdkafka waits 80 ms at the least before it sends a request again: a broken connection elsewhere is no matter."""
    producer = opened(cluster)
    queue(cluster).error_cb(kafka_error(KafkaError._TRANSPORT))
    cluster.failures["commit_transaction"].append(lambda: clock.passes(QUICK_END_S))

    producer.commit(OFFSETS, METADATA)

    assert begun_after(cluster, producer) == ["begin_transaction"]


def test_e3_an_error_of_the_connection_during_the_commit_counts(cluster: FakeCluster, clock: Clock) -> None:
    """Its callback is served by the poll after the commit."""
    assert clock.now == 1000
    producer = opened(cluster)
    cluster.failures["poll"].append(lambda: queue(cluster).error_cb(kafka_error(KafkaError._TRANSPORT)))
    cluster.failures["commit_transaction"].append(lambda: clock.passes(LONG_ENOUGH_S))

    producer.commit(OFFSETS, METADATA)

    assert begun_after(cluster, producer) == FRESH


def test_e3_errors_of_the_old_producer_do_not_count_for_the_fresh_one(cluster: FakeCluster, clock: Clock) -> None:
    """The new epoch is what protects: one disturbance makes one fresh producer, not one per transaction for 30 s."""
    assert clock.now == 1000
    producer = opened(cluster)
    queue(cluster).error_cb(kafka_error(KafkaError._TRANSPORT))
    cluster.failures["commit_transaction"].extend([lambda: clock.passes(LONG_ENOUGH_S)] * 2)
    producer.commit(OFFSETS, METADATA)
    assert begun_after(cluster, producer) == FRESH

    producer.commit(OFFSETS, METADATA)

    assert begun_after(cluster, producer) == ["begin_transaction"]


@pytest.mark.parametrize(
    ("action", "calls"),
    [
        (lambda clock: clock.passes(SLOW_END_S), ["begin_transaction"]),
        (lambda clock: clock.passes(SLOW_END_S + 0.01), FRESH),
        (failure(KafkaError._TIMED_OUT, "retriable"), FRESH),
    ],
    ids=["smooth", "slow", "called twice"],
)
def test_e3_an_abort_is_an_end_of_a_transaction_too(
    cluster: FakeCluster, clock: Clock, action: Any, calls: list[str]
) -> None:
    """Its EndTxn, sent twice, could abort a part of the next transaction."""
    producer = opened(cluster)
    cluster.failures["abort_transaction"].append((lambda: action(clock)) if callable(action) else action)

    producer.abort()

    assert begun_after(cluster, producer) == calls


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize(
    ("broken", "action", "calls"),
    [
        (True, lambda clock: clock.passes(QUICK_END_S), FRESH[-1:]),
        (True, lambda clock: clock.passes(LONG_ENOUGH_S), FRESH),
        (False, lambda clock: clock.passes(LONG_ENOUGH_S), FRESH[-1:]),
        (False, lambda clock: clock.passes(SLOW_END_S + 0.01), FRESH),
        (False, failure(KafkaError._TIMED_OUT, "retriable"), FRESH),
    ],
    ids=["quick", "broken", "smooth", "slow", "called twice"],
)
def test_e3_offsets_that_may_come_twice_are_followed_by_a_fresh_producer(
    cluster: FakeCluster, clock: Clock, *, end: str, broken: bool, action: Any, calls: list[str]
) -> None:
    """A late TxnOffsetCommit would set the offsets of a later transaction of the same epoch back. Whatever becomes of this one."""
    producer = opened(cluster)
    if broken:
        queue(cluster).error_cb(kafka_error(KafkaError._TRANSPORT))
    failures = cluster.failures["send_offsets_to_transaction"]
    failures.append((lambda: action(clock)) if callable(action) else action)
    if end == "commit":
        producer.commit(OFFSETS, METADATA)
    else:
        failures.append(failure(KafkaError.ILLEGAL_GENERATION, "txn_requires_abort"))
        if callable(action):
            failures.popleft()
            failures[0] = lambda: _then_fails(action, clock)
        with pytest.raises(TransactionError):
            producer.commit(OFFSETS, METADATA)
        producer.abort()

    assert begun_after(cluster, producer) == calls
    producer.commit(OFFSETS, METADATA)
    assert begun_after(cluster, producer) == FRESH[-1:]


def _then_fails(action: Any, clock: Clock) -> None:
    action(clock)
    raise failure(KafkaError.ILLEGAL_GENERATION, "txn_requires_abort")


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        (("%s [%s] %s", "FAIL", "rdkafka#producer-1", "Disconnected (after 61 ms)"), FRESH),
        (("%s [%s] %s", "GETPID", "rdkafka#producer-1", "FAIL"), ["begin_transaction"]),
    ],
    ids=["broken", "another line"],
)
def test_e3_a_connection_whose_end_is_only_logged_counts(
    cluster: FakeCluster, clock: Clock, line: tuple[str, ...], calls: list[str]
) -> None:
    """librdkafka logs every broken connection but calls error_cb for some only."""
    assert clock.now == 1000
    producer = opened(cluster)
    queue(cluster).logger.log(logging.INFO, *line)
    cluster.failures["commit_transaction"].append(lambda: clock.passes(LONG_ENOUGH_S))

    producer.commit(OFFSETS, METADATA)

    assert begun_after(cluster, producer) == calls


def broken(connection: str) -> tuple[str, ...]:
    """librdkafka's line for a connection that broke, or could not be made."""
    return "%s [%s] %s", "FAIL", "orders-a#producer-1", f"[thrd:{connection}"


COORDINATOR_LOST = broken("TxnCoordinator]: TxnCoordinator: 127.0.0.1:1: Disconnected")
BROKER_LOST = broken("127.0.0.1:1/2]: 127.0.0.1:1/2: Disconnected: receive 0 after POLLIN (after 408ms in state UP)")
BROKER_AWAY = broken("127.0.0.1:1/2]: 127.0.0.1:1/2: Connect to ipv4#127.0.0.1:1 failed (after 0ms in state CONNECT)")


@pytest.mark.parametrize(
    ("line", "calls"), [(COORDINATOR_LOST, FRESH), (BROKER_LOST, FRESH), (BROKER_AWAY, FRESH[-1:])]
)
def test_a_coordinator_that_went_while_nothing_was_to_do_is_looked_for_by_a_fresh_producer(
    cluster: FakeCluster, line: tuple[str, ...], calls: list[str]
) -> None:
    """librdkafka does not always look for it: the transaction would hang until it is given up. Told by the poll before the next one.

    Any broker may be the group's coordinator. One that is away is tried again and again, and lost but once.
    """
    producer = opened(cluster)
    producer.commit(OFFSETS, METADATA)
    cluster.failures["poll"].append(lambda: queue(cluster).logger.log(logging.INFO, *line))

    assert begun_after(cluster, producer) == calls
    producer.commit(OFFSETS, METADATA)
    assert begun_after(cluster, producer) == FRESH[-1:]


def test_a_coordinator_that_went_while_it_was_looked_for_is_found(cluster: FakeCluster) -> None:
    """Else each attempt at a start amid trouble would make a further producer."""
    cluster.failures["init_transactions"].append(lambda: queue(cluster).logger.log(logging.INFO, *COORDINATOR_LOST))
    producer = opened(cluster)
    producer.commit(OFFSETS, METADATA)

    assert begun_after(cluster, producer) == FRESH[-1:]


@pytest.mark.parametrize(("given", "used"), [({}, 6), ({"log_level": 3}, 6), ({"log_level": "7"}, 7)])
def test_e3_the_client_is_told_to_log_broken_connections(
    cluster: FakeCluster, given: dict[str, object], used: int
) -> None:
    """Whatever the pipeline says; the rest of its configuration is passed on as it is."""
    TransactionalProducer({**CONFIG, **given}, cluster.watchdog).open()

    assert cluster.configs == [{**CONFIG, "log.connection.close": True, "log_level": used}]


def test_a_broker_that_does_not_answer_at_the_start_is_named(cluster: FakeCluster, clock: Clock) -> None:
    """With a timeout each attempt takes 2 s at most, and the error names the address and the reason."""
    producer = TransactionalProducer(CONFIG, cluster.watchdog)

    def times_out() -> None:
        clock.passes(2)
        raise failure(KafkaError._TIMED_OUT, "retriable")

    cluster.failures["init_transactions"].extend([times_out] * 9)

    with pytest.raises(
        BrokerUnreachableError, match=r"^no answer from 127\.0\.0\.1:1 to init_transactions: made by a test$"
    ):
        producer.open(timeout_s=5)

    assert [call for call in cluster.calls if call[0] == "init_transactions"] == [("init_transactions", 2.0)] * 3


def test_close_throws_away_what_is_not_delivered(cluster: FakeCluster) -> None:
    """Nothing of an open transaction is delivered by closing; closing again does nothing."""
    producer = opened(cluster)
    producer.produce([record()])
    cluster.calls.clear()

    producer.close()
    producer.close()

    assert cluster.names() == ["purge", "flush"]
    assert cluster.pending == []


def hang(cluster: FakeCluster, operation: str) -> tuple[threading.Event, threading.Event]:
    """The next such call sets the first event, and comes back when the second is set: to hear that another producer has its id."""
    begun, release = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        release.wait(60)
        raise failure(KafkaError._FENCED, "fatal")

    cluster.failures[operation].append(wait)
    return begun, release


class PatientElsewhere(Errands):
    """Only the call that hangs is waited for as briefly as it says, so that no other one is given up on a slow machine."""

    def __init__(self, cluster: FakeCluster, operation: str, begun: threading.Event) -> None:
        super().__init__()
        self._cluster = cluster
        self._operation = operation
        self._begun = begun

    def run(self, call: Callable[[], object], limit_s: float) -> None:
        hangs = self._cluster.watchdog.guarding == self._operation and not self._begun.is_set()
        super().run(call, limit_s if hangs else 60)


@pytest.mark.parametrize("operation", RUNS)
def test_a_call_that_hangs_is_given_up_with_its_producer(cluster: FakeCluster, operation: str) -> None:
    """The outcome is a fresh producer, for a commit an unknown one; the old one is not touched again, and the fresh one works."""
    producer = opened(cluster)
    begun, release = hang(cluster, operation)
    producer._patience_s = 0.05
    producer._errands = PatientElsewhere(cluster, operation, begun)
    is_commit = operation == "commit_transaction"

    with pytest.raises(CommitUnknownError if is_commit else TransactionError) as raised:
        RUNS[operation](producer)

    error = raised.value.cause if isinstance(raised.value, CommitUnknownError) else raised.value
    assert isinstance(error, TransactionError)
    assert (error.outcome, error.operation) == (Outcome.RECREATE, operation)
    assert str(error) == f"{operation}: _TIMED_OUT: no answer within 0.05 s"
    assert begun.wait(60)
    cluster.calls.clear()
    producer.open()
    assert cluster.calls == [("Producer", "orders-a"), ("init_transactions", INIT_WAIT_S), ("poll", 0)]
    release.set()
    producer.begin()
    producer.commit(OFFSETS, METADATA)
    assert cluster.offsets == {("in", 0): 7}


class Late(Errands):
    """Makes no call before it is told to: its thread comes to its turn when the wait for it is over."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Callable[[], object]] = []

    def run(self, call: Callable[[], object], limit_s: float) -> None:
        self.calls.append(call)
        raise HungError


def test_offsets_are_given_up_soon_while_connections_break_and_later_each_time(cluster: FakeCluster) -> None:
    """Their coordinator has gone, and librdkafka may wait for it for ever; a cluster that is merely slow gets its time, in the end."""
    producer = opened(cluster)

    def patience(operation: str = COMMIT[0]) -> float:
        return producer._patience(operation)

    assert patience() == PATIENCE_S
    queue(cluster).logger.log(logging.INFO, *BROKER_AWAY)
    assert (patience(), patience(COMMIT[1])) == (OFFSETS_PATIENCE_S, PATIENCE_S)
    errands, late = producer._errands, Late()
    for wanted in (2 * OFFSETS_PATIENCE_S, *[PATIENCE_S] * 1100):  # 2**1024 would be no float
        producer._errands = late
        with pytest.raises(TransactionError, match=f"no answer within {patience():g} s"):
            producer.commit(OFFSETS, METADATA)
        producer._errands = errands
        producer.open()
        producer.begin()
        assert patience() == wanted
    producer.commit(OFFSETS, METADATA)
    assert patience() == PATIENCE_S


def test_a_call_that_was_given_up_before_it_began_is_not_made(cluster: FakeCluster) -> None:
    """A process that stood still: neither may it end the transaction of the fresh producer, nor an old init fence that one."""
    producer = opened(cluster)
    errands, late = producer._errands, Late()
    producer._errands = late
    with pytest.raises(TransactionError):
        producer.commit(OFFSETS, METADATA)
    producer._errands = errands
    producer.open()
    cluster.calls.clear()

    with pytest.raises(IndexError):  # in a thread whose results nobody takes any more
        late.calls.pop()()

    assert cluster.calls == []


@pytest.mark.parametrize("operation", RUNS)
def test_retriable_errors_without_end_are_given_up(cluster: FakeCluster, clock: Clock, operation: str) -> None:
    """A client that has lost its way says for ever that it is retriable."""
    producer = opened(cluster)

    def fail() -> None:
        clock.passes(PATIENCE_S / 4)
        raise failure(KafkaError._TIMED_OUT, "retriable")

    cluster.failures[operation].extend([fail] * 99)

    with pytest.raises((TransactionError, CommitUnknownError)) as raised:
        RUNS[operation](producer)

    error = raised.value.cause if isinstance(raised.value, CommitUnknownError) else raised.value
    assert isinstance(error, TransactionError)
    assert error.outcome is Outcome.RECREATE
    assert cluster.names().count(operation) == 5


def test_deliveries_that_do_not_get_on_are_given_up(cluster: FakeCluster, clock: Clock) -> None:
    """Not as long as any of them is made."""
    producer = opened(cluster)
    producer.produce([record()])
    queue(cluster).stuck = 10**6
    cluster.failures["flush"].extend([lambda: clock.passes(1.0)] * 99)

    with pytest.raises(TransactionError) as raised:
        producer.commit(OFFSETS, METADATA)

    assert raised.value.outcome is Outcome.RECREATE
    assert str(raised.value) == "deliver: _TIMED_OUT: nothing was delivered for 10 s"


def test_failed_deliveries_of_a_producer_that_was_left_behind_do_not_count(cluster: FakeCluster) -> None:
    """They may come at any time, in its thread."""
    producer = opened(cluster)
    old = queue(cluster)
    producer.open()
    producer.begin()

    old.on_delivery(kafka_error(KafkaError._MSG_TIMED_OUT), message(0, topic="out"))

    producer.commit(OFFSETS, METADATA)
    assert cluster.offsets == {("in", 0): 7}
