"""Broken variants of the worker, each with a fault that plausible code could have: the judges must see every one of them.

Named by ``FAULT_MUTANT`` of tests.support.faulty_worker.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import confluent_kafka

from worker.batch import Batch
from worker.loop import TransactionalLoop
from worker.membership import Membership
from worker.offsets import Offsets
from worker.source import Source
from worker.transaction import TransactionalProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from worker.lineage import Message
    from worker.offsets import Partition


def no_rewind() -> None:
    """After an abort it polls on, as if the consumer rewound by itself: aborted records are lost (T2)."""

    def rewind(offsets: Offsets) -> dict[Partition, int]:
        offsets.committed()
        return {}

    setattr(Offsets, "rewind", rewind)  # noqa: B010 - mypy would not let a method be assigned


def outputs_outside() -> None:
    """Outputs go through a plain producer: those of aborted transactions can be read, and come twice."""
    plain = confluent_kafka.Producer({"bootstrap.servers": os.environ["RECKON_BOOTSTRAP_SERVERS"]})

    def produce(self: TransactionalProducer, messages: Sequence[Message]) -> dict[int, str]:
        for message in messages:
            plain.produce(*message)
        plain.flush()
        return {}

    setattr(TransactionalProducer, "produce", produce)  # noqa: B010


def offsets_early() -> None:
    """The consumer commits the offsets, before the transaction: what a crash or an abort undoes is lost to the next worker."""
    original = TransactionalLoop._commit

    def commit(self: TransactionalLoop, receipt: Any) -> None:
        offsets = [confluent_kafka.TopicPartition(*p, end) for p, (_, end) in self._offsets.ranges().items()]
        if offsets:
            self.source.consumer.commit(offsets=offsets, asynchronous=False)
        original(self, receipt)

    setattr(TransactionalLoop, "_commit", commit)  # noqa: B010


def unknown_is_failed() -> None:
    """A commit whose outcome is not known counts as aborted, without asking: what it had committed comes twice (E3, E4)."""

    def resolve(offsets: Offsets, _found: Mapping[Partition, int]) -> dict[Partition, int]:
        return offsets.rewind()

    setattr(Offsets, "resolve", resolve)  # noqa: B010


def dead_letters_outside() -> None:
    """Dead letters go through a plain producer: those of aborted transactions can be read, and come twice."""
    plain = confluent_kafka.Producer({"bootstrap.servers": os.environ["RECKON_BOOTSTRAP_SERVERS"]})
    original = TransactionalProducer.produce

    def produce(self: TransactionalProducer, messages: Sequence[Message]) -> dict[int, str]:
        outside = [message for message in messages if message[0].endswith(".dead-letters")]
        for message in outside:
            plain.produce(*message)
        plain.flush()
        return original(self, [message for message in messages if not message[0].endswith(".dead-letters")])

    setattr(TransactionalProducer, "produce", produce)  # noqa: B010


def offsets_first() -> None:
    """It commits the offsets before the outputs have left: a crash between the two loses them (commit before flush)."""
    begin, produce, commit = TransactionalProducer.begin, TransactionalProducer.produce, TransactionalProducer.commit
    held: list[Message] = []

    def forget(self: TransactionalProducer) -> None:
        held.clear()
        begin(self)

    def hold(_self: TransactionalProducer, messages: Sequence[Message]) -> dict[int, str]:
        held.extend(messages)
        return {}

    def commit_first(self: TransactionalProducer, offsets: Any, group_metadata: object) -> None:
        commit(self, offsets, group_metadata)
        begin(self)
        produce(self, held)
        self.producer.commit_transaction(-1)

    setattr(TransactionalProducer, "begin", forget)  # noqa: B010
    setattr(TransactionalProducer, "produce", hold)  # noqa: B010
    setattr(TransactionalProducer, "commit", commit_first)  # noqa: B010


def cached_metadata() -> None:
    """The group metadata is taken once, at the start, and used for ever: no member, no generation, and brokers fence nothing (T3)."""
    subscribe = Source.subscribe
    cached: list[bytes] = []

    def keep(self: Source) -> None:
        cached.append(self.consumer.consumer_group_metadata())
        subscribe(self)

    setattr(Source, "subscribe", keep)  # noqa: B010
    setattr(Source, "group_metadata", lambda _: cached[0])  # noqa: B010


def position_ahead() -> None:
    """It reads the next batch while it works on one, and commits ``position()``: what was read ahead dies with it (T1)."""
    commit, seek = TransactionalProducer.commit, Source.seek
    ahead: list[confluent_kafka.Message] = []
    sources: list[Source] = []

    def collect(self: Source, *, most: int | None = None) -> Batch:
        sources[:] = [self]
        batch = self._batch = Batch()
        messages = ahead[:] or self._consume(200, 0.2)
        ahead.clear()
        self._take(messages)
        if batch:
            ahead.extend(message for message in self._consume(200, 0.1) if message.error() is None)
        return batch

    def rewind(self: Source, offsets: Mapping[Partition, int]) -> None:
        ahead.clear()
        seek(self, offsets)

    def commit_position(self: TransactionalProducer, offsets: Any, group_metadata: object) -> None:
        found = sources[0].consumer.position([confluent_kafka.TopicPartition(o.topic, o.partition) for o in offsets])
        commit(self, [at if at.offset >= 0 else ours for at, ours in zip(found, offsets, strict=True)], group_metadata)

    setattr(Source, "collect", collect)  # noqa: B010
    setattr(Source, "seek", rewind)  # noqa: B010
    setattr(TransactionalProducer, "commit", commit_position)  # noqa: B010


def lost_ignored() -> None:
    """It keeps its batch for the next try instead of reading it again, and does not listen when partitions are lost.

    As a member anew it delivers what it had read of them, beside their new owner: brokers check member and generation, not who owns
    what (R2, E10). Not listening would do no harm by itself, because a batch of ours never outlives a poll.
    """
    collect, transact, note = Source.collect, TransactionalLoop._transact, Membership.note
    last, kept = Batch(), Batch()

    def copy(to: Batch, batch: Batch) -> None:
        to.runs = {partition: list(run) for partition, run in batch.runs.items()}
        to.records, to.bytes = batch.records, batch.bytes

    def again(self: Source, *, most: int | None = None) -> Batch:
        if not kept:
            return collect(self, most=most)
        batch = self._batch = Batch()
        copy(batch, kept)
        copy(kept, Batch())
        self._take(self._consume(1, 0.2))
        return batch

    def remember(self: TransactionalLoop, batch: Batch) -> None:
        copy(last, batch)
        transact(self, batch)

    setattr(Source, "collect", again)  # noqa: B010
    setattr(TransactionalLoop, "_transact", remember)  # noqa: B010
    setattr(TransactionalLoop, "_rewind", lambda _: copy(kept, last))  # noqa: B010
    setattr(Source, "_on_lost", lambda *_: None)  # noqa: B010
    setattr(Membership, "note", lambda self: note(self) and False)  # noqa: B010


MUTANTS: dict[str, Callable[[], None]] = {
    "no-rewind": no_rewind,
    "outputs-outside": outputs_outside,
    "offsets-early": offsets_early,
    "unknown-is-failed": unknown_is_failed,
    "dead-letters-outside": dead_letters_outside,
    "offsets-first": offsets_first,
    "cached-metadata": cached_metadata,
    "position-ahead": position_ahead,
    "lost-ignored": lost_ignored,
}
