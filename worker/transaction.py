"""The only file that calls the transactional producer. One object, three verbs: begin, produce, end by commit or abort.

Every call ends in one of three ways: it returns, it raises TransactionError with what to do next (errors.classify), or it raises
UndeliverableError for records that no retry can deliver. Learnt from: Kafka Streams' StreamsProducer (one file owns the producer and
translates its errors), franz-go's GroupTransactSession (commit or abort is all a caller sees).
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import structlog
from confluent_kafka import KafkaError, KafkaException, Producer

from worker.deliveries import Deliveries
from worker.doubt import Doubt
from worker.errand import Errands, HungError
from worker.errors import (
    BrokerUnreachableError,
    CommitUnknownError,
    Outcome,
    TransactionError,
    UndeliverableError,
    classify,
    error_of,
    is_undeliverable,
    kafka_error_in,
)
from worker.logs import LibrdkafkaLog, Limiter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from confluent_kafka import TopicPartition

    from worker.lineage import Message
    from worker.watchdog import Watchdog

LOG_INFO = 6
"""The level (syslog's) at which librdkafka logs broken connections."""

QUICK_FLUSH_S = 0.1
RETRY_PAUSE_S = 0.1
SETTLE_S = 5.0

PATIENCE_S = 10.0
"""What has not moved for so long, a call or a delivery, is given up with its producer; a fresh one is sooner back than a client that has
lost its way, and where no broker is there it waits in its place. Less where the broker gives the transaction up sooner."""

OFFSETS_PATIENCE_S = 3.0
"""The same for the offsets while connections break: the group's coordinator has gone, and librdkafka may wait for it for ever. Twice as
long each time in a row, lest who is merely slow never gets there."""

INIT_WAIT_S = 2.0
"""One attempt of init_transactions, which is resumable."""

_log = structlog.get_logger("reckon.transaction")


class TransactionalProducer:
    """A transactional producer that can be made anew: the same ``transactional.id`` each time (T6).

    ``config``: the complete librdkafka configuration, without callbacks.
    """

    def __init__(self, config: Mapping[str, Any], watchdog: Watchdog) -> None:
        # Without these lines a broken connection goes unnoticed: librdkafka gives error_cb only what it logs at level 3 and below.
        level = max(LOG_INFO, int(config.get("log_level", LOG_INFO)))
        self._config = {**config, "log.connection.close": True, "log_level": level}
        self._watchdog = watchdog
        self._producer: Producer | None = None
        self._deliveries = Deliveries()
        self._fatal: KafkaError | None = None
        self._doubt = Doubt()
        self._renew = False
        self._calls = 0
        self._offsets_patience_s = OFFSETS_PATIENCE_S
        """More than that after calls that were given up, until a transaction ends."""
        self._answers: list[tuple[str, float, int]] = []
        """Of this transaction: the call, how long its answer took, in how many calls."""
        self._errands = Errands()
        self._limiter = Limiter()
        self._patience_s = min(PATIENCE_S, int(config.get("transaction.timeout.ms", 60_000)) / 1000 + SETTLE_S)

    @property
    def transactional_id(self) -> str:
        return str(self._config["transactional.id"])

    @property
    def producer(self) -> Producer:
        assert self._producer is not None, "open() comes first"
        return self._producer

    def open(self, *, timeout_s: float | None = None) -> None:
        """A fresh producer. Fences every predecessor with our id and ends its open transaction before this returns (T6).

        ``timeout_s``: BrokerUnreachableError after so many seconds. TransactionError as of ``classify``, and RECREATE where it does not get
        there: the next one may.
        """
        self.close()
        self._deliveries = Deliveries()
        self._fatal = None
        self._renew = False
        self._answers = []
        # Forgotten before init_transactions, not after it: what breaks during it hides what breaks in the same way later.
        self._doubt = Doubt()
        self._producer = Producer(
            self._config,
            on_delivery=self._deliveries.note,
            error_cb=self._on_error,
            logger=LibrdkafkaLog({"FAIL ": self._doubt.note_broken_connection}, self._limiter),
        )
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._call("init_transactions", INIT_WAIT_S, deadline=deadline)
        self._serve("poll", lambda: self.producer.poll(0))
        self._doubt.lost_coordinator = False  # found again

    def renew(self) -> None:
        """The next ``begin`` takes a fresh producer."""
        self._renew = True

    def begin(self) -> None:
        """Begin a transaction; with a fresh producer where the one before ended in doubt, or a coordinator may have gone since.

        librdkafka lacks KIP-890's client part: an EndTxn that was delayed and sent again could end a *later* transaction of the same epoch
        (E3, #5423), a TxnOffsetCommit could set its offsets back. A fresh producer has a new epoch, which the old request cannot touch.
        """
        if not self._renew:
            self._serve("poll", lambda: self.producer.poll(0))  # what was told while there was nothing to do
        if self._renew or self._doubt.lost_coordinator:
            self.open()
        self._call("begin_transaction")

    def produce(self, messages: Sequence[Message]) -> dict[int, str]:
        """Queue the messages. Returns those that the client itself refuses for ever: index -> reason (E8)."""
        refused: dict[int, str] = {}
        produce = self.producer.produce
        rest = iter(messages)
        for message in rest:
            try:
                try:
                    produce(*message)
                except BufferError:
                    self._produce_when_there_is_room(message)
            except KafkaException as exception:
                # The iterator knows where we are: an index counted along would cost every record.
                index = len(messages) - rest.__length_hint__() - 1  # type: ignore[attr-defined]
                refused[index] = self._refusal(exception, message[0])
        self._serve("poll", lambda: self.producer.poll(0))
        return refused

    def produce_one_by_one(self, messages: Sequence[Message]) -> dict[int, str]:
        """Deliver each message by itself, so that a refusal names its message: index -> reason, for the first refused one (E8).

        The broker refuses whole batches of records; this is how the one at fault is told from its neighbours. A round trip per message.
        """
        for index, message in enumerate(messages):
            refused = self.produce([message])
            if refused:
                return {index: refused[0]}
            try:
                self._flush()
            except UndeliverableError as error:
                return {index: str(error)}
        return {}

    def commit(self, offsets: Sequence[TopicPartition], group_metadata: object) -> None:
        """Send the source offsets and commit. Raises CommitUnknownError when EndTxn may have been sent and its outcome is not known.

        Where a flush is quick, the offsets go after it: by then the broker has let the partitions in, which it puts off while it writes the
        markers of the transaction before (CONCURRENT_TRANSACTIONS). librdkafka asks again for them after 20 ms, but for the offsets after
        retry.backoff.ms. Not later, as a transaction that has failed already says so when it is given the offsets.
        """
        if len(self.producer):
            self._serve("flush", lambda: self.producer.flush(QUICK_FLUSH_S))
        try:
            self._timed("send_offsets_to_transaction", list(offsets), group_metadata, -1)
        except TransactionError as error:
            raise self._cause(error) from error
        self._flush()
        try:
            self._timed("commit_transaction", -1)
        except TransactionError as error:
            raise CommitUnknownError(error) from error
        self._ended()

    def abort(self) -> None:
        """Abort the transaction. TransactionError (RECREATE, FENCED, FATAL) when this producer cannot."""
        self._settle()
        try:
            self._timed("abort_transaction", -1)
        except TransactionError as error:
            outcome = Outcome.RECREATE if error.outcome is Outcome.ABORT else error.outcome
            raise TransactionError(outcome, error.operation, error.error) from error
        self._ended()
        self._settle()
        self._deliveries.clear()

    def close(self) -> None:
        """Let go of the producer; what it has not delivered is thrown away. One that does not end in time is left to end by itself."""
        if self._producer is None:
            return
        held = [self._producer]
        self._producer = None

        def let_go() -> None:
            producer = held.pop()
            producer.purge()
            with contextlib.suppress(KafkaException, SystemError):  # a fatal error, which was told before
                producer.flush(SETTLE_S)

        with contextlib.suppress(HungError), self._watchdog.guard("close producer"):
            self._errands.run(let_go, SETTLE_S + PATIENCE_S)

    def _timed(self, operation: str, *args: object) -> None:
        """`_call`, for `_ended`: of requests that may not come a second time, in a later transaction."""
        started, before = time.monotonic(), self._calls
        try:
            self._call(operation, *args)
        finally:
            self._answers.append((operation, time.monotonic() - started, self._calls - before))

    def _ended(self) -> None:
        """Note whether a request of the transaction that has just ended may be on its way once more."""
        self._serve("poll", lambda: self.producer.poll(0))  # the log lines and errors that came meanwhile
        for operation, took_s, calls in self._answers:
            if self._doubt.sent_twice(took_s, calls):
                self._renew = True
                _log.warning("fresh producer next", why=f"{operation} was slow, or a connection broke", took_s=took_s)
        self._answers.clear()
        self._offsets_patience_s = OFFSETS_PATIENCE_S

    def _patience(self, operation: str) -> float:
        """Seconds until a call is given up."""
        hung_before = self._offsets_patience_s > OFFSETS_PATIENCE_S
        if operation == "send_offsets_to_transaction" and (hung_before or self._doubt.troubled()):
            return min(self._patience_s, self._offsets_patience_s)
        return self._patience_s

    def _call(self, operation: str, *args: object, deadline: float | None = None) -> None:
        """Call the producer until it is done (E1, E4: a retriable error means the same call again).

        Not for ever: after PATIENCE_S without a result the outcome is RECREATE. A call that is still not back is left behind with its
        producer; whatever it does yet, it does with an epoch that the fresh one's init has ended (E3).
        """
        calls = 0
        patience_s = self._patience(operation)
        gives_up = time.monotonic() + patience_s
        while True:
            calls += 1
            self._calls += 1
            try:
                with self._watchdog.guard(operation):
                    return self._run(operation, args, patience_s)
            except HungError as hung:
                self._producer = None
                self._offsets_patience_s = min(
                    2 * self._offsets_patience_s, PATIENCE_S
                )  # bounded: it may hang for days
                error = KafkaError(KafkaError._TIMED_OUT, f"no answer within {patience_s:g} s")  # noqa: SLF001
                raise TransactionError(Outcome.RECREATE, operation, error) from hung
            except (KafkaException, SystemError) as exception:
                error = kafka_error_in(exception)
                outcome = classify(error)
                if outcome is not Outcome.RETRY:
                    raise TransactionError(outcome, operation, error) from exception
                if deadline is not None and time.monotonic() > deadline:
                    raise BrokerUnreachableError(
                        f"no answer from {self._config['bootstrap.servers']} to {operation}: {error.str()}"
                    ) from exception
                if deadline is None and time.monotonic() > gives_up:
                    raise TransactionError(Outcome.RECREATE, operation, error) from exception
                if (more := self._limiter.passes(f"{operation} {error.name()} {error.str()}")) is not None:
                    _log.warning(
                        "retrying", operation=operation, error=error.name(), reason=error.str(), calls=calls, **more
                    )
                self._serve("poll", lambda: self.producer.poll(RETRY_PAUSE_S))

    def _run(self, operation: str, args: tuple[object, ...], patience_s: float) -> None:
        """The call, in a thread that may come to it late, when another producer is in this one's place: so it is given this one.

        In a list that it empties: a plain name would live on in an error's frames, and the client with it. One that was given up before it
        began is not made any more: a late init_transactions would fence the producer that has taken this one's place.
        """
        held = [self.producer]
        try:
            self._errands.run(lambda: getattr(held.pop(), operation)(*args), patience_s)
        except HungError:
            held.clear()
            raise

    def _serve(self, operation: str, call: Callable[[], object]) -> None:
        """Serve callbacks by a poll or a flush.

        confluent-kafka raises a fatal error out of whichever of them meets it first, be it the one after a successful commit. It is kept
        here instead; every transactional call reports it again.
        """
        try:
            with self._watchdog.guard(operation):
                call()
        except (KafkaException, SystemError) as exception:
            self._fatal = kafka_error_in(exception)

    def _produce_when_there_is_room(self, message: Message) -> None:
        """The local queue is full: serve it and produce the same record again (E7)."""
        while True:
            self._serve("poll", lambda: self.producer.poll(0.05))
            try:
                return self.producer.produce(*message)
            except BufferError:
                continue

    def _refusal(self, exception: KafkaException, topic: str) -> str:
        error = error_of(exception)
        if is_undeliverable(error):
            return f"{error.name()}: {error.str()} (topic {topic})"
        # The transaction has failed already; abort_transaction will tell a fatal error from an abortable one.
        raise self._cause(TransactionError(Outcome.ABORT, f"produce to {topic}", error)) from exception

    def _flush(self) -> None:
        """Wait until all is delivered; a failed delivery fails the transaction (E7), and so does one that does not get on."""
        left, moved = len(self.producer), time.monotonic()
        while not self._deliveries and not self._fatal and len(self.producer):
            self._serve("flush", lambda: self.producer.flush(1.0))
            if len(self.producer) < left:
                left, moved = len(self.producer), time.monotonic()
            elif time.monotonic() - moved > self._patience_s:
                error = KafkaError(KafkaError._TIMED_OUT, f"nothing was delivered for {self._patience_s:g} s")  # noqa: SLF001
                raise TransactionError(Outcome.RECREATE, "deliver", error)
        if self._fatal:
            raise TransactionError(classify(self._fatal), "deliver", self._fatal)
        if self._deliveries:
            raise self._cause(self._deliveries.first())

    def _cause(self, error: TransactionError) -> TransactionError | UndeliverableError:
        """Why a transaction is to be aborted: the call that notices it first need not be the one that waits for deliveries (E8)."""
        if error.outcome is Outcome.ABORT:
            self._serve("flush", lambda: self.producer.flush(SETTLE_S))
            return self._deliveries.undeliverable() or error
        return error

    def _settle(self) -> None:
        """Nothing may be on its way when abort_transaction is called.

        With unsent messages it now and then gave a fatal INVALID_TXN_STATE (E11). Not purged at once: purging what is in flight costs
        an epoch; only what cannot be delivered in time is thrown away.
        """
        self._serve("flush", lambda: self.producer.flush(SETTLE_S))
        if len(self.producer):
            self.producer.purge()
            self._serve("flush", lambda: self.producer.flush(SETTLE_S))

    def _on_error(self, error: KafkaError) -> None:
        self._doubt.note_broken_connection()
        if (more := self._limiter.passes(f"producer error {error.str()}")) is not None:
            _log.warning("producer error", error=error.name(), reason=error.str(), **more)
