"""The transactional loop: collect a batch, transform it, and commit outputs, dead letters, receipt and source offsets together.

    collect -> transform -> begin, produce -> send offsets, flush, commit
                               |
                               +-- anything goes wrong: abort (or a fresh producer), rewind, and the same records come again

An error never makes the loop skip a record: whatever happens, reading goes on at the first offset that is not committed.
"""

from __future__ import annotations

import gc
import time
import uuid
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import TopicPartition

from worker.dead_letter import WORKER_VERSION, DeadLetterLimit
from worker.diversions import CAREFUL_RECORDS, Diversions
from worker.drain import Drained
from worker.errors import (
    CommitUnknownError,
    Outcome,
    StoppedError,
    TransactionError,
    UndeliverableError,
    WorkerError,
    remedy,
)
from worker.fencings import ProducerFencings
from worker.fill import Filler
from worker.membership import NotAMemberError
from worker.offsets import Offsets, Partition
from worker.receipt import Receipt
from worker.source import Source
from worker.transaction import TransactionalProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transforms.records import Result, SourceRecord
    from worker.batch import Batch
    from worker.settings import Settings
    from worker.topics import Topics
    from worker.watchdog import Watchdog

TELL_EVERY = 8
"""After so many failures without a commit between them it is told what is missing. It is tried on: brokers may be away for hours."""

FENCED_PAUSE_S = 0.5
"""For the group's answer to the heartbeat that a worker sends first when it wakes up."""

PASS_MARKERS_S = 30.0
"""So often commit markers behind the last record of a partition are committed, too, whether or not others have records. Not at once: that
would be a transaction more for every burst of a transactional source."""

ASK_DRAINED_S = 1.0
"""So often it is asked whether all is drained while records keep coming: a source that is still written to need never be quiet."""

COLLECT_GARBAGE_S = 5.0
PAUSES_S = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
"""Before the n-th replay in a row. Short of any group timeout."""

_log = structlog.get_logger("reckon.loop")


class TransactionalLoop:
    """One worker. ``transform``: from a run of records of one partition to its Result. ``on_commit`` is told of every receipt,
    ``topics`` tells their ids, and what is wrong with them; nothing is told without it.
    """

    def __init__(
        self,
        settings: Settings,
        transform: Callable[[Sequence[SourceRecord]], Result],
        digest: str,
        limit: DeadLetterLimit,
        watchdog: Watchdog,
        on_commit: Callable[[Receipt], None] = lambda _: None,
        topics: Topics | None = None,
    ) -> None:
        self._settings = settings
        self._digest = digest
        self._limit = limit
        self._watchdog = watchdog
        self._on_commit = on_commit
        self._what_is_wrong: Callable[[], list[str]] = topics.what_is_wrong if topics else list
        self._incarnation = str(uuid.uuid4())
        self._sequence = 0
        self._offsets = Offsets()
        self._producer = TransactionalProducer(settings.producer, watchdog)
        if topics is None:
            self.source = Source(settings, self._offsets, watchdog, lambda _: {})
        else:
            self.source = Source(settings, self._offsets, watchdog, topics.ids, topics.unassigned)
        self._fencings = ProducerFencings(settings, self._what_is_wrong)
        self._failed_attempts = 0
        self._most = settings.transaction.records
        self._diversions = Diversions()
        self._filler = Filler(settings, transform, self._producer, self._diversions)

    def run(self, drained: Callable[[Offsets, dict[Partition, int]], Drained] | None = None) -> None:
        """Work until a stop signal, or until ``drained`` says so. WorkerError where it cannot go on."""
        try:
            # The group is joined meanwhile, in the background; nothing is assigned, and no offset asked for, before the first poll.
            self.source.subscribe()
            try:
                self._producer.open(timeout_s=self._settings.worker.start_timeout_s)
            except TransactionError as error:
                self._recreate(error)
            gc.collect()
            gc.freeze()
            gc.disable()
            self._work(drained)
        finally:
            gc.enable()
            gc.unfreeze()
            self.source.close()
            self._producer.close()

    def _work(self, drained: Callable[[Offsets, dict[Partition, int]], Drained] | None) -> None:
        swept = passed = asked = time.monotonic()
        while not self._watchdog.stopping:
            batch = self.source.collect(most=CAREFUL_RECORDS if self._diversions.careful else self._most)
            if time.monotonic() - passed > PASS_MARKERS_S:
                self.source.pass_markers()
                passed = time.monotonic()
            if batch or self.source.pins or self._offsets.ranges():
                committed = self._transact(batch)
                # Not after a rewind: until the next poll the ends reached may be those of records that have yet to come again.
                ask = committed and time.monotonic() - asked >= ASK_DRAINED_S
            else:
                ask = True
            if ask and drained is not None:
                so_far = drained(self._offsets, self.source.ends_reached)
                asked = time.monotonic()
                if so_far is Drained.ALL:
                    return
                if so_far is Drained.OURS:
                    self.source.pass_markers()  # so that the others see in the group's offsets that ours are done
            # Python's collector looks at every record of every batch when it is left to itself: 10 % of the throughput. Between
            # batches there is next to nothing for it to look at.
            if time.monotonic() - swept > COLLECT_GARBAGE_S:
                swept = time.monotonic()
                del batch
                gc.collect()

    def _transact(self, batch: Batch) -> bool:
        """One transaction over the batch. Returns with the batch committed (True), or rewound so that its records come again."""
        try:
            self._producer.begin()
            receipt = self._fill(batch)
            self._commit(receipt)
        except CommitUnknownError as unknown:
            if unknown.cause.outcome is Outcome.FATAL:
                # Refused for want of a permission. If it took place all the same, an attempt before this one did, and nothing aborts
                # what is committed (E6): the worker stops in either case, and readers need not wait for the timeout.
                self._abort_quietly()
            return self._resolve(unknown, receipt)
        except UndeliverableError as undeliverable:
            self._diversions.note(undeliverable, self._offsets.ranges())
            self._abort(undeliverable)
        except TransactionError as error:
            if error.outcome is Outcome.ABORT:
                self._abort(error)
            else:
                if error.outcome is Outcome.FATAL:
                    self._abort_quietly()
                self._replace(error)
                self._rewind()
        except NotAMemberError as error:
            self._abort(error)
        except WorkerError:
            self._abort_quietly()
            raise
        else:
            return True
        return False

    def _fit(self, batch: Batch, took_s: float) -> None:
        """Keep a transaction well within its timeout: where the transform is slow, a full batch would be fenced again and again.

        By the transform's time alone: what brokers take does not depend on the number of records.
        """
        share = took_s / self._settings.transaction_timeout_s
        if share > 0.5:
            self._most = max(1, batch.records // 2)
            _log.warning("slow transform", took_s=round(took_s, 1), records=batch.records, next_at_most=self._most)
        elif share < 0.2:
            self._most = min(self._settings.transaction.records, 2 * self._most)

    def _fill(self, batch: Batch) -> Receipt:
        started = time.monotonic()
        try:
            filled = self._filler.fill(batch, self._offsets.ranges(), self.source.topic_ids)
        finally:
            self._fit(batch, time.monotonic() - started)
        self._limit.check(batch.records, sum(part.dead_lettered for part in filled.parts), filled.example)
        if filled.refused:
            raise UndeliverableError(filled.refused, next(iter(filled.refused.values())))
        return Receipt(
            pipeline=self._settings.pipeline,
            transactional_id=self._settings.transactional_id,
            incarnation=self._incarnation,
            sequence=self._sequence + 1,
            transform=self._digest,
            worker=WORKER_VERSION,
            time_ms=time.time_ns() // 1_000_000,
            partitions=filled.parts,
            lineage=self._settings.lineage,
        )

    def _commit(self, receipt: Receipt) -> None:
        offsets = [TopicPartition(*partition, end) for partition, (_, end) in self._offsets.ranges().items()]
        offsets += [
            TopicPartition(*partition, pin)
            for partition, pin in self.source.pins.items()
            if partition not in self._offsets.ranges()
        ]
        if receipt.partitions:
            key = self._settings.transactional_id.encode()
            # By itself while a refused record is looked for: a refused receipt would be looked for among the outputs for ever.
            deliver = self._producer.produce_one_by_one if self._diversions.careful else self._producer.produce
            refused = deliver(
                [(self._settings.receipt_topic, receipt.encode(), key, -1, None, None, receipt.time_ms, None)]
            )
            if refused:
                where = self._settings.receipt_topic
                raise WorkerError(f"the receipt cannot be delivered to {where}: {refused[0]}{remedy(refused[0])}")
        self._producer.commit(offsets, self.source.group_metadata())
        self._offsets.committed()
        self._committed(receipt)

    def _committed(self, receipt: Receipt) -> None:
        self.source.committed()
        self._failed_attempts = 0
        if not receipt.partitions:
            return
        self._sequence = receipt.sequence
        self._limit.committed(
            sum(part.read for part in receipt.partitions), sum(part.dead_lettered for part in receipt.partitions)
        )
        self._diversions.forget(self._offsets)
        self._on_commit(receipt)

    def _abort(self, why: Exception) -> None:
        """Abort, rewind, and be ready for the replay (E1, E10, T2)."""
        _log.warning("aborting", reason=str(why), records=sum(b - a for a, b in self._offsets.ranges().values()))
        try:
            self._producer.abort()
        except TransactionError as error:
            self._replace(error)
        self._rewind()

    def _abort_quietly(self) -> None:
        """Before the worker stops: an abort spares the readers the wait for the transaction's timeout. If it fails, they wait."""
        try:
            self._producer.abort()
        except TransactionError as error:
            _log.warning("could not abort before stopping", reason=str(error))

    def _rewind(self) -> None:
        self.source.seek(self._offsets.rewind())
        self._pause()

    def _pause(self) -> None:
        """Before another attempt, the longer the more there were; every so many of them it is told what is missing."""
        pause = PAUSES_S[min(self._failed_attempts, len(PAUSES_S) - 1)]
        self._failed_attempts += 1
        if self._failed_attempts % TELL_EVERY == 0:
            _log.error("nothing committed", attempts=self._failed_attempts, wrong=self._what_is_wrong())
        time.sleep(pause)

    def _replace(self, error: TransactionError) -> None:
        """A fresh producer with the same id (E2): at once, or before the next transaction where we were fenced.

        Whoever fenced us has ended our transaction. If it is our successor, for which we stood still too long, the group has a word for us
        at the next poll (FENCED_INSTANCE_ID), and we leave without fencing it in our turn.
        """
        if error.outcome is not Outcome.FENCED:
            self._recreate(error)
            return
        self._fencings.count(error)
        self._producer.renew()
        time.sleep(FENCED_PAUSE_S)

    def _recreate(self, error: TransactionError) -> None:
        """A fresh producer with the same id; its init aborts what the old one left open (E2). Patient while brokers are away."""
        self._fencings.count(error)
        while True:
            try:
                return self._producer.open()
            except TransactionError as again:
                self._fencings.count(again)
            if self._watchdog.stopping:
                raise StoppedError("stopped while waiting for a transaction coordinator")
            self._pause()

    def _resolve(self, unknown: CommitUnknownError, receipt: Receipt) -> bool:
        """Ask the broker whether a commit took place (E3, E4, E6), and return its word.

        By then the fresh producer's init has ended the transaction, or whoever fenced us has; markers under way are waited for (KIP-447).
        """
        _log.warning("outcome of the commit unknown", reason=str(unknown))
        cause = unknown.cause
        outcome = Outcome.RECREATE if cause.outcome is Outcome.ABORT else cause.outcome
        self._replace(TransactionError(outcome, cause.operation, cause.error))
        ranges = self._offsets.ranges()
        found = self.source.committed_offsets(ranges)
        took_place = bool(ranges) and all(found.get(partition, -1) >= end for partition, (_, end) in ranges.items())
        self.source.seek(self._offsets.resolve(found))
        _log.warning("commit resolved", committed=took_place)
        if took_place:
            self._committed(receipt)
        if any(found.get(partition, start) != start for partition, (start, _) in ranges.items()):
            # Another member's commits cannot be told from ours where the partitions are no longer ours. A new numbering: a sequence
            # that counts a receipt too many or too few would look like a lost or a doubled one.
            self._incarnation, self._sequence = str(uuid.uuid4()), 0
        return took_place
