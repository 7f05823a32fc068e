"""The consuming side: collects batches, follows rebalances, goes back after an abort.

No transaction is ever open while this file polls, so a rebalance callback never meets one: it drops the collected records of the
partitions that are gone and that is all (R1, R2, T9). The alternative, an open transaction across polls, is what makes franz-go's and
Kafka Streams' rebalance code long.
"""

from __future__ import annotations

import contextlib
import time
from itertools import groupby
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from worker.assignment import committed_offsets, ends_of_new_topics, starting_offsets
from worker.batch import Batch
from worker.errand import Errands, HungError
from worker.errors import ConsumerFencedError, fencing_in, is_passing, kafka_error_in, out_of_range, unreadable
from worker.fencings import ConsumerFencings
from worker.logs import LibrdkafkaLog, Limiter
from worker.membership import Membership, is_static_by_default, leave
from worker.orphans import Orphans

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from worker.offsets import Offsets, Partition
    from worker.settings import Settings
    from worker.watchdog import Watchdog

CHUNK = 5_000
"""Records per call into librdkafka."""

IDLE_WAIT_S = 0.2
"""How long one poll waits for a first record: bounds how late a stop signal is seen."""

GATHER_WAIT_S = 0.005
"""How long to wait for the next fetch when the broker has more than the local queue."""

CLOSE_S = 5.0
"""How long to wait for a consumer that was fenced to end."""

SPACING_S = 0.02
"""Between two batches in a row: a trickle would make a transaction of every few records, which meets the markers of the one before."""

_log = structlog.get_logger("reckon.source")


class Source:
    """The source topics, read as a member of the pipeline's group. ``offsets`` is kept true by this class alone while polling."""

    def __init__(
        self,
        settings: Settings,
        offsets: Offsets,
        watchdog: Watchdog,
        ids_of: Callable[[Collection[str]], dict[str, str]],
        unassigned: Callable[[str], AbstractSet[Partition] | None] = lambda _: frozenset(),
    ) -> None:
        self._settings = settings
        self._offsets = offsets
        self._watchdog = watchdog
        self._batch = Batch()
        self._single_topic = settings.topics[0] if len(settings.topics) == 1 else None
        self.pins: dict[Partition, int] = {}
        """Where partitions of a new group with ``start: latest`` begin: to be committed with the next transaction (R5)."""
        self.ends_reached: dict[Partition, int] = {}
        """Per partition the offset of the last end-of-partition event: every record below it was handed over."""
        self.topic_ids: dict[str, str] = {}
        """Of the topics that we have partitions of, as far as the broker tells."""
        self._ids_of = ids_of
        self._orphans = Orphans(settings, unassigned)
        self._closing = False
        self._handed_over = float("-inf")
        self._new_topics: dict[Partition, int] = {}
        self._limiter = Limiter()
        self._fencings = ConsumerFencings(settings, watchdog)
        self._fenced: ConsumerFencedError | None = None
        self._consumer = self._fresh_consumer()
        self._membership = Membership(settings, self._consumer.consumer_group_metadata)

    @property
    def consumer(self) -> Consumer:
        return self._consumer

    def subscribe(self) -> None:
        """Join the group, in the background; nothing is assigned before the first poll."""
        self._new_topics = ends_of_new_topics(self._consumer, self._settings, self._watchdog)
        self._join()

    def replace(self, fenced: ConsumerFencedError) -> None:
        """A fresh consumer in the place of one that was fenced; the group's committed offsets say where it begins, nothing is at hand.

        FencedByTwinError where somebody else has our place.
        """
        self._fencings.count(fenced)
        self._fenced = None
        old, self._consumer = self._consumer, self._fresh_consumer()
        self._membership = Membership(self._settings, self._consumer.consumer_group_metadata)
        self._forget(self._offsets.owned)
        with contextlib.suppress(HungError, KafkaException, SystemError), self._watchdog.guard("close consumer"):
            Errands().run(old.close, CLOSE_S)
        self._join()

    def committed(self) -> None:
        """A transaction was committed: what was to be pinned is, and nobody has taken our place so far."""
        self.pins.clear()
        self._fencings.proven()

    def committed_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The group's, as ``assignment.committed_offsets`` has them; where our consumer was fenced, a fresh one asks again."""
        try:
            return committed_offsets(self._consumer, partitions, self._settings, self._watchdog)
        except ConsumerFencedError as fenced:
            self.replace(fenced)
            return committed_offsets(self._consumer, partitions, self._settings, self._watchdog)

    def _fresh_consumer(self) -> Consumer:
        log = LibrdkafkaLog({"SESSTMOUT ": lambda _: self._fencings.session_ended()}, self._limiter)
        return Consumer(self._settings.consumer, logger=log, error_cb=self._tell)

    def _rejoin(self, orphans: AbstractSet[Partition]) -> None:
        """Leave and join anew: what no generation gave to anybody is given away in the next one.

        The callbacks alone tell what is not ours any more. Who could not leave in time, because a rebalance went on, keeps partitions of
        which no later assignment speaks; what came of them while we tried to leave was thrown away, so they are sought where we are.
        """
        _log.warning(
            "joining anew for partitions that nobody has", partitions=_names(TopicPartition(*p) for p in orphans)
        )
        if not leave(self._consumer):
            self._orphans.forget()
        self._join()
        self.seek({p: wanted for p in self._offsets.owned if (wanted := self._offsets.wanted(p)) is not None})

    def _join(self) -> None:
        try:
            self._consumer.subscribe(
                [self._settings.pattern] if self._settings.pattern else list(self._settings.topics),
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )
        except KafkaException as exception:
            error = kafka_error_in(exception)
            if error.code() == KafkaError._FATAL:  # noqa: SLF001
                # "Local: Fatal error" and no more; the reason was told once, to a poll, perhaps while we left. A fresh consumer mends a
                # fencing, and is told any other reason anew.
                raise ConsumerFencedError(error.str()) from exception
            raise unreadable(error) from exception

    def collect(self, *, most: int | None = None) -> Batch:
        """The next batch: up to the limits of the pipeline, sooner when the source has nothing more waiting; empty after IDLE_WAIT_S.

        Rebalance callbacks run inside. ``most``: a lower limit on records. WorkerError where the source cannot be read.
        """
        records = min(self._settings.transaction.records, most or self._settings.transaction.records)
        batch = self._batch = Batch()
        try:
            if orphans := self._orphans.found(self._consumer.memberid):
                self._rejoin(orphans)
            self._fill_up(batch, records)
        except ConsumerFencedError as fenced:
            self.replace(fenced)
        if batch:
            self._handed_over = time.monotonic()
        return batch

    def _fill_up(self, batch: Batch, records: int) -> None:
        limits = self._settings.transaction
        self._take(self._consume(1, IDLE_WAIT_S))
        deadline = time.monotonic() + limits.interval_ms / 1000
        spaced = min(deadline, self._handed_over + SPACING_S)
        while batch and batch.records < records and batch.bytes < limits.bytes:
            # As many as fit by the average so far, so that a batch of large records does not overshoot its bytes by a whole chunk.
            fit = (limits.bytes - batch.bytes) // (batch.bytes // batch.records + 1) + 1
            messages = self._consume(min(CHUNK, records - batch.records, fit), 0)
            if not messages:
                left = deadline - (now := time.monotonic())
                if left <= 0 or (now >= spaced and not self._more_is_waiting()):
                    break
                messages = self._consume(1, min(left, GATHER_WAIT_S))
            self._take(messages)
            if time.monotonic() >= deadline:
                break

    def pass_markers(self) -> None:
        """Count what lies between the last record and the end of a partition as read: commit markers and aborted records, never data.

        Such offsets would otherwise never be committed, and a partition that is fully processed, then emptied by retention, would look
        like one whose records expired unread.
        """
        for partition, end in self.ends_reached.items():
            wanted = self._offsets.wanted(partition)
            if wanted is not None and wanted < end:
                self._offsets.read(partition, end - 1)

    def group_metadata(self) -> bytes:
        """The group metadata for one commit, fetched anew each time (T3). NotAMemberError where a commit might not be ours to make."""
        return self._membership.for_commit()

    def seek(self, offsets: Mapping[Partition, int]) -> None:
        """Read on from these offsets; what was fetched beyond them is thrown away (T2)."""
        for (topic, partition), offset in offsets.items():
            target = TopicPartition(topic, partition, offset)
            self.ends_reached.pop((topic, partition), None)  # comes again when we do
            try:
                self._consumer.seek(target)
            except KafkaException as exception:
                # A partition whose fetcher is not (or no more) running cannot be sought in, but it can be assigned anew.
                _log.warning("assigning anew instead of a seek", partitions=_names([target]), reason=str(exception))
                try:
                    self._consumer.incremental_unassign([TopicPartition(topic, partition)])
                    self._consumer.incremental_assign([target])
                except KafkaException as again:
                    if (fenced := fencing_in(kafka_error_in(again))) is None:
                        raise
                    # The next poll replaces the consumer, which then begins at the committed offsets.
                    self._fenced = fenced
                    return

    def close(self) -> None:
        """Leave the group, so that the others need not wait for the session timeout."""
        self._closing = True
        with self._watchdog.guard("close consumer"):
            if is_static_by_default(self._settings):
                leave(self._consumer)
            self._consumer.close()

    def _consume(self, most: int, wait_s: float) -> list[Message]:
        if self._fenced is not None:
            raise self._fenced
        try:
            return self._consumer.consume(most, wait_s)
        except (KafkaException, SystemError) as exception:  # how confluent-kafka raises a consumer's fatal error
            raise unreadable(kafka_error_in(exception)) from exception

    def _take(self, messages: list[Message]) -> None:
        """Add to the batch what is ours and not read before; handle what is an event."""
        if any(map(Message.error, messages)):
            for message in messages:
                if (error := message.error()) is not None:
                    self._on_event(message, error)
            messages = [message for message in messages if message.error() is None]
        if self._single_topic is not None:
            self._batch.take(self._single_topic, messages, self._offsets)
        else:
            for topic, run in groupby(messages, Message.topic):
                assert topic is not None
                self._batch.take(topic, run, self._offsets)

    def _more_is_waiting(self) -> bool:
        """Whether the broker had records, at the last fetch, that are not in the batch.

        By one offset it may be a commit marker behind the last record, which will never be delivered (KAFKA-10683): not waited for.
        """
        for topic, number in self._offsets.owned:
            _, high = self._consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
            if high - (self._offsets.wanted((topic, number)) or 0) > 1:
                return True
        return False

    def _on_event(self, message: Message, error: KafkaError) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001
            topic, number, offset = message.topic(), message.partition(), message.offset()
            assert topic is not None
            assert number is not None
            assert offset is not None
            if (
                self._offsets.wanted((topic, number)) is not None
            ):  # else taken away by a rebalance inside the very call that returned it
                self.ends_reached[topic, number] = offset
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):  # noqa: SLF001
            where = f"{message.topic()} partition {message.partition()}: offset {message.offset()}"
            raise out_of_range(error, f"{where} of group {self._settings.group_id}")
        elif is_passing(error) and not error.fatal():
            self._tell(error, topic=message.topic(), partition=message.partition())
        else:
            # A missing right on the group comes as an event of no partition: None[0].
            raise unreadable(error, f"{message.topic()}[{message.partition()}]: " if message.topic() else "")

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._closing or consumer is not self._consumer:
            # Of a join that was under way: nothing will be read, so nothing is looked up.
            consumer.incremental_assign(partitions)
            return
        kept = self._inherited()
        ours = [(p.topic, p.partition) for p in partitions] + kept
        starts, pins = starting_offsets(consumer, ours, self._new_topics, self._settings, self._watchdog)
        # Asked with every assignment: a topic that was deleted and created again gets its partitions assigned again. No id rather than
        # the old one, where the broker does not tell.
        asked = {topic for topic, _ in ours}
        known = {topic: topic_id for topic, topic_id in self.topic_ids.items() if topic not in asked}
        self.topic_ids = known | self._ids_of(asked)
        self._offsets.assign(starts)
        self.pins.update(pins)
        consumer.incremental_assign([TopicPartition(*p, offset) for p, offset in starts.items() if p not in kept])
        self.seek({partition: starts[partition] for partition in kept})
        self._orphans.assigned()
        _log.info("assigned", partitions=_names(partitions), owned=len(self._offsets.owned))

    def _inherited(self) -> list[Partition]:
        """The partitions that an old member id leaves to a new one, to be begun anew; to be called with every assignment.

        librdkafka's static members keep them where a JoinGroup says UNKNOWN_MEMBER_ID, and nobody tells us that they were lost: others may
        have had them since (R2).
        """
        kept = list(self._offsets.owned) if self._membership.note() else []
        if kept:
            _log.warning("begun anew, as another member", partitions=_names(TopicPartition(*p) for p in kept))
            self._forget(kept)
        return kept

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._release(consumer, partitions)
        _log.info("revoked", partitions=_names(partitions), owned=len(self._offsets.owned))

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._release(consumer, partitions)
        _log.warning("lost", partitions=_names(partitions), owned=len(self._offsets.owned))

    def _release(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if consumer is self._consumer:  # and not one that is being closed, whose partitions may be ours again
            self._forget([(p.topic, p.partition) for p in partitions])
        consumer.incremental_unassign(partitions)

    def _forget(self, gone: Collection[Partition]) -> None:
        self._batch.drop(gone)
        self._offsets.release(gone)
        for partition in gone:
            self.pins.pop(partition, None)
            self.ends_reached.pop(partition, None)

    def _tell(self, error: KafkaError, **where: object) -> None:
        if (more := self._limiter.passes(f"{error.str()} {where}")) is not None:
            _log.warning("consumer", error=error.name(), reason=error.str(), **where, **more)


def _names(partitions: Iterable[TopicPartition]) -> list[str]:
    return sorted(f"{p.topic}[{p.partition}]" for p in partitions)
