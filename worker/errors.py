"""The one place where an error of librdkafka is turned into what the worker does about it.

Source of the rules: librdkafka's INTRODUCTION.md, "Transactional producer, error handling", and the cases that it leaves to
the application (issues #3297, #3928: fatal is not the same as fenced by a twin).
"""

from __future__ import annotations

from enum import Enum

from confluent_kafka import KafkaError, KafkaException


class ExitCode(Enum):
    """The worker's documented exit codes."""

    DRAINED = 0
    FATAL = 1
    BAD_CONFIG = 2
    FENCED = 3
    DEAD_LETTER_LIMIT = 4
    UNREACHABLE = 5


class Outcome(Enum):
    """What to do about an error of a transactional call."""

    RETRY = "call again with the same arguments"
    ABORT = "abort the transaction, rewind, replay"
    RECREATE = "the producer is done: a new one with the same transactional.id, rewind"
    FENCED = "as RECREATE, and counted: a twin fences again and again"
    FATAL = "stop the worker"


class WorkerError(Exception):
    """Ends the worker with a message for its operator and a documented exit code."""

    exit_code = ExitCode.FATAL


class BadConfigError(WorkerError):
    exit_code = ExitCode.BAD_CONFIG


class FencedByTwinError(WorkerError):
    exit_code = ExitCode.FENCED


class ConsumerFencedError(FencedByTwinError):
    """Our consumer was fenced as a static member: by a twin, or by a request of its own that came late (#3437)."""


class DeadLetterLimitError(WorkerError):
    exit_code = ExitCode.DEAD_LETTER_LIMIT


class BrokerUnreachableError(WorkerError):
    exit_code = ExitCode.UNREACHABLE


class StoppedError(WorkerError):
    """A stop signal came while the worker was waiting for a broker, with nothing in its hands."""

    exit_code = ExitCode.DRAINED


class TransactionError(Exception):
    """A transaction that did not commit, and what to do next."""

    def __init__(self, outcome: Outcome, operation: str, error: KafkaError) -> None:
        super().__init__(f"{operation}: {error.name()}: {error.str()}")
        self.outcome = outcome
        self.operation = operation
        self.error = error


class CommitUnknownError(Exception):
    """A commit that may or may not have taken place: only the broker's committed offsets can tell (E3, E4, E6)."""

    def __init__(self, cause: TransactionError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class UndeliverableError(Exception):
    """Outputs that can never be delivered (E8): their inputs go to the dead letters when the batch is replayed.

    ``reasons`` maps (topic, partition, offset) of each input that is known to be at fault to the broker's or client's reason.
    Empty where the broker refused a whole batch of records and the one at fault is still to be found.
    """

    def __init__(self, reasons: dict[tuple[str, int, int], str], detail: str) -> None:
        super().__init__(detail)
        self.reasons = reasons


# A newer producer with our transactional.id exists, or the coordinator gave up on ours: both raise the epoch. LRD has no KIP-588
# and cannot tell them apart.
_FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})  # noqa: SLF001 - librdkafka's own codes are public, whatever their spelling

# No new producer would fare better: the cluster's or the deployment's configuration has to change.
_HOPELESS = frozenset(
    {
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError._AUTHENTICATION,  # noqa: SLF001
        KafkaError._NOT_CONFIGURED,  # noqa: SLF001
        KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001
        KafkaError._CRIT_SYS_RESOURCE,  # noqa: SLF001
    },
)

# The record itself is at fault: no retry delivers it (E8). A topic that is not there is no fault of a record's: all sinks were
# there at the start, and one that is deleted while the worker runs would otherwise pour good records into the dead letters.
_UNDELIVERABLE = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.POLICY_VIOLATION,
        KafkaError._INVALID_ARG,  # noqa: SLF001
    },
)

_TOO_LARGE = "raise the topic's max.message.bytes and the producer's message.max.bytes"
_REMEDIES = {
    "MSG_SIZE_TOO_LARGE": _TOO_LARGE,
    "RECORD_LIST_TOO_LARGE": _TOO_LARGE,
    "INVALID_TIMESTAMP": "the topic takes no such time: raise its message.timestamp.after.max.ms, or set its message.timestamp.type to "
    "LogAppendTime. A dead letter has its source record's time, a receipt that of the clock here: is it right?",
}

# Reports of messages that we threw away ourselves, and of innocents in a batch in which another record was refused (KIP-467).
_EXPECTED_AFTER_ABORT = frozenset(
    {
        KafkaError._PURGE_QUEUE,  # noqa: SLF001
        KafkaError._PURGE_INFLIGHT,  # noqa: SLF001
        KafkaError._INVALID_DIFFERENT_RECORD,  # noqa: SLF001
    },
)

# The source can be read again later without our doing anything: librdkafka goes on trying.
_PASSING_CONSUMER = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._MAX_POLL_EXCEEDED,  # noqa: SLF001 - the group gave our partitions away; on_lost follows, then we rejoin
        KafkaError._WAIT_COORD,  # noqa: SLF001
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    },
)


def error_of(exception: KafkaException) -> KafkaError:
    """The KafkaError inside a KafkaException."""
    error = exception.args[0]
    assert isinstance(error, KafkaError)
    return error


def kafka_error_in(exception: BaseException) -> KafkaError:
    """The KafkaError of an exception that came out of a call which serves callbacks; another exception is raised again.

    A fatal error is raised by confluent-kafka inside poll and flush. If a callback of ours is served after it, it comes as the cause of a
    SystemError ("returned a result with an exception set").
    """
    cause: BaseException | None = exception
    while cause is not None and not isinstance(cause, KafkaException):
        cause = cause.__cause__
    if cause is None:
        raise exception
    return error_of(cause)


def classify(error: KafkaError) -> Outcome:
    """What to do about an error of a transactional call (E1, E2).

    The flags decide, in librdkafka's order: a fatal error before an abortable one before a retriable one. An error with none of
    them is treated as fatal for the worker: what we do not understand we do not retry.
    """
    if is_hopeless(error):
        return Outcome.FATAL
    if error.fatal():
        return Outcome.FENCED if error.code() in _FENCED else Outcome.RECREATE
    if error.txn_requires_abort():
        return Outcome.ABORT
    if error.retriable():
        return Outcome.RETRY
    if error.code() in _FENCED:
        return Outcome.FENCED
    return Outcome.FATAL


def is_hopeless(error: KafkaError) -> bool:
    """Whether the cluster's or the deployment's configuration has to change before this can succeed."""
    return error.code() in _HOPELESS


def is_undeliverable(error: KafkaError) -> bool:
    """Whether a delivery can never succeed, because of the record or its topic (E8)."""
    return error.code() in _UNDELIVERABLE


def remedy(reason: str) -> str:
    """What to do where a dead letter or a receipt is refused for a reason that begins with the error's name; "" where that is not known."""
    return next((f"; {words}" for name, words in _REMEDIES.items() if reason.startswith(name)), "")


def is_expected_after_abort(error: KafkaError) -> bool:
    """Whether a delivery report only says that the record was thrown away with its batch (E7)."""
    return error.code() in _EXPECTED_AFTER_ABORT


def is_or_wraps(error: KafkaError, code: int) -> bool:
    """Whether an error has this code, or is a consumer's fatal error because of it.

    librdkafka hands a consumer's fatal error over as _FATAL, without its flag; what it was tells the text alone.
    """
    return error.code() == code or (error.code() == KafkaError._FATAL and KafkaError(code).str() in error.str())  # noqa: SLF001


def is_passing(error: KafkaError) -> bool:
    """Whether a consumer's error needs no action of ours."""
    return error.retriable() or error.code() in _PASSING_CONSUMER


def unreadable(error: KafkaError, where: str = "") -> WorkerError:
    """What a consumer's error means for the worker, where it does not pass by itself; ``where`` ends with a colon."""
    fenced = fencing_in(error)
    if fenced is not None:
        return fenced
    if is_or_wraps(error, KafkaError.UNRELEASED_INSTANCE_ID):
        return FencedByTwinError(
            "another live consumer uses our group.instance.id, or our predecessor did not leave and its session (the broker's "
            f"group.consumer.session.timeout.ms) lasts on: {error.str()}"
        )
    if error.code() == KafkaError.INVALID_SESSION_TIMEOUT:
        return BadConfigError(
            f"the broker refuses session.timeout.ms (group.min/max.session.timeout.ms): {error.str()}"
        )
    return WorkerError(f"cannot read the source: {where}{error.name()}: {error.str()}")


def out_of_range(error: KafkaError, where: str) -> WorkerError:
    """What it means that the log does not hold an offset that the group wants; ``where`` names topic, partition, offset and group."""
    return WorkerError(
        f"{where} is not in the log any more (expired before it was read, or the topic was created anew): records may be lost "
        f"that no retry brings back. Set the group's offsets by hand to go on: {error.str()}"
    )


def fencing_in(error: KafkaError) -> ConsumerFencedError | None:
    """The error as a fencing of our static membership, if it is one."""
    return ConsumerFencedError(error.str()) if is_or_wraps(error, KafkaError.FENCED_INSTANCE_ID) else None
