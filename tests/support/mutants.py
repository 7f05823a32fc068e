"""Broken variants of the worker, each with a fault that plausible code could have: the judges must see every one of them.

Named by ``FAULT_MUTANT`` of tests.support.faulty_worker.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import confluent_kafka

from worker.loop import TransactionalLoop
from worker.offsets import Offsets
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


MUTANTS: dict[str, Callable[[], None]] = {
    "no-rewind": no_rewind,
    "outputs-outside": outputs_outside,
    "offsets-early": offsets_early,
    "unknown-is-failed": unknown_is_failed,
}
