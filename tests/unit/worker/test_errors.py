from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.unit.worker.fakes import failure, kafka_error
from worker.errors import (
    BadConfigError,
    BrokerUnreachableError,
    DeadLetterLimitError,
    FencedByTwinError,
    Outcome,
    TransactionError,
    WorkerError,
    classify,
    error_of,
    is_expected_after_abort,
    is_passing,
    is_undeliverable,
    kafka_error_in,
)

if TYPE_CHECKING:
    from tests.unit.worker.fakes import Flag

ORDINARY = (KafkaError._TIMED_OUT, KafkaError.INVALID_TXN_STATE, KafkaError.UNKNOWN, KafkaError.NOT_COORDINATOR)
FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
HOPELESS = (
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.INVALID_TRANSACTION_TIMEOUT,
    KafkaError._AUTHENTICATION,
    KafkaError._NOT_CONFIGURED,
    KafkaError._UNSUPPORTED_FEATURE,
    KafkaError._CRIT_SYS_RESOURCE,
)
FLAGS: tuple[Flag, ...] = ("fatal", "txn_requires_abort", "retriable")
COMBINATIONS = [
    tuple(flag for flag, there in zip(FLAGS, bits, strict=True) if there) for bits in product((False, True), repeat=3)
]


def expected(code: int, flags: tuple[Flag, ...]) -> Outcome:
    """The rules E1 and E2 as a table: the first flag there counts."""
    if code in HOPELESS:
        return Outcome.FATAL
    fenced = code in FENCED
    by_flag = {
        "fatal": Outcome.FENCED if fenced else Outcome.RECREATE,
        "txn_requires_abort": Outcome.ABORT,
        "retriable": Outcome.RETRY,
    }
    return by_flag[flags[0]] if flags else (Outcome.FENCED if fenced else Outcome.FATAL)


@pytest.mark.parametrize("flags", COMBINATIONS, ids=lambda flags: "+".join(flags) or "none")
@pytest.mark.parametrize("code", [*ORDINARY, *FENCED, *HOPELESS])
def test_e1_e2_the_outcome_follows_the_flags_and_the_code(code: int, flags: tuple[Flag, ...]) -> None:
    """Every combination of flags for ordinary, fencing and hopeless codes."""
    assert expected(code, flags) is classify(kafka_error(code, *flags))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (kafka_error(KafkaError._TIMED_OUT, "retriable"), Outcome.RETRY),
        (kafka_error(KafkaError._TIMED_OUT, "txn_requires_abort"), Outcome.ABORT),
        (kafka_error(KafkaError.INVALID_TXN_STATE, "fatal"), Outcome.RECREATE),
        (kafka_error(KafkaError._FENCED, "fatal"), Outcome.FENCED),
        (kafka_error(KafkaError._FENCED), Outcome.FENCED),
        (kafka_error(KafkaError.INVALID_PRODUCER_EPOCH, "fatal"), Outcome.FENCED),
        (kafka_error(KafkaError.PRODUCER_FENCED, "fatal"), Outcome.FENCED),
        (kafka_error(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "fatal"), Outcome.FATAL),
        (kafka_error(KafkaError.UNKNOWN), Outcome.FATAL),
        (kafka_error(KafkaError._STATE), Outcome.FATAL),
    ],
    ids=str,
)
def test_e1_e2_spelt_out(error: KafkaError, outcome: Outcome) -> None:
    """The same without a table: what librdkafka really returns, and what the worker does."""
    assert outcome is classify(error)


def test_e1_an_error_that_nobody_knows_is_fatal() -> None:
    """A code of a later librdkafka, without flags: not understood, so not retried."""
    assert Outcome.FATAL is classify(kafka_error(9999))


def codes() -> set[int]:
    return {
        value
        for name in dir(KafkaError)
        if name.upper() == name and isinstance(value := getattr(KafkaError, name), int)
    }


def test_e7_only_purges_and_innocent_neighbours_are_expected_after_an_abort() -> None:
    """Of all codes exactly three say nothing but that the record was thrown away with its batch."""
    found = {code for code in codes() if is_expected_after_abort(kafka_error(code))}

    assert {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._INVALID_DIFFERENT_RECORD} == found


def test_e8_undeliverable_codes() -> None:
    """Of all codes exactly these say that no retry can deliver the record."""
    found = {code for code in codes() if is_undeliverable(kafka_error(code))}

    assert {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.POLICY_VIOLATION,
        KafkaError._INVALID_ARG,
    } == found


def test_passing_consumer_errors() -> None:
    """Of all codes exactly these need no action of ours; a retriable error of any code passes too."""
    found = {code for code in codes() if is_passing(kafka_error(code))}

    assert {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError._WAIT_COORD,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    } == found
    assert is_passing(kafka_error(KafkaError.TOPIC_AUTHORIZATION_FAILED, "retriable"))


def test_error_of_takes_the_error_out() -> None:
    """A KafkaException's error, and nothing else is taken for one."""
    exception = failure(KafkaError._TIMED_OUT)

    assert exception.args[0] is error_of(exception)
    with pytest.raises(AssertionError):
        error_of(KafkaException("a text"))


def test_kafka_error_in_looks_for_the_cause() -> None:
    """confluent-kafka wraps a KafkaException into a SystemError at times; any other exception is raised as it is."""
    exception = failure(KafkaError._FENCED, "fatal")
    wrapped = SystemError("returned a result with an exception set")
    wrapped.__cause__ = exception

    assert exception.args[0] is kafka_error_in(exception)
    assert exception.args[0] is kafka_error_in(wrapped)
    other = SystemError("something else")
    with pytest.raises(SystemError) as raised:
        kafka_error_in(other)
    assert raised.value is other


def test_a_transaction_error_says_what_where_and_why() -> None:
    """The text that operators read in the log."""
    error = TransactionError(
        Outcome.ABORT, "commit_transaction", kafka_error(KafkaError._TIMED_OUT, reason="no answer")
    )

    assert str(error) == "commit_transaction: _TIMED_OUT: no answer"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WorkerError, 1),
        (BadConfigError, 2),
        (FencedByTwinError, 3),
        (DeadLetterLimitError, 4),
        (BrokerUnreachableError, 5),
    ],
)
def test_exit_codes_are_as_documented(error: type[WorkerError], code: int) -> None:
    """Scripts and operators rely on these numbers."""
    assert code == error.exit_code.value
