"""Numbers for names: what every executor must know of the audit, small and picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_batch.model import Range

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from spark_batch.context import Context
    from spark_batch.model import Partition

DEAD_LETTERS, SOURCE = -1, -2
"""Numbers of topics that are no output topics; those count from 0."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Source partitions by number, output topics by number."""

    sources: tuple[Partition, ...]
    """Every partition of the source topics; the number of a source partition is its index in here."""
    begin: tuple[int, ...]
    """First offset to be judged."""
    committed: tuple[int, ...]
    """C; equal to `begin` where nothing is to be judged."""
    end: tuple[int, ...]
    """Of the source, read after the outputs: no output can come from here or beyond."""
    log_start: tuple[int, ...]
    never_claimed_below: tuple[int, ...]
    """Outputs that name a lower offset have no source that was ever claimed; 0 where that cannot be known."""
    outputs: tuple[str, ...]
    dead_letters: str
    judged_below: tuple[int, ...] = ()
    """Per source partition the last audit's C: what is below it was judged then; 0, or no element at all, where there was none."""
    seen: Mapping[Partition, int] = field(default_factory=dict)
    """Per output partition where the last audit stopped reading: what stands there or beyond and is of a record judged then came late."""
    removed: Mapping[Partition, int] = field(default_factory=dict)
    """Partitions of outputs and dead letters from which retention removed what this audit would have read: their log starts."""
    others: frozenset[str] = frozenset()
    """Topics that exist and are no source of this pipeline: outputs that name one of them are another pipeline's."""

    @property
    def source_topics(self) -> tuple[str, ...]:
        return tuple(sorted({topic for topic, _ in self.sources}))

    def source_ranges(self) -> dict[Partition, Range]:
        """What there is of the source records to be judged."""
        return {
            partition: Range(max(self.begin[number], self.log_start[number]), self.committed[number])
            for number, partition in enumerate(self.sources)
            if max(self.begin[number], self.log_start[number]) < self.committed[number]
        }

    def topic_of(self, number: int) -> str:
        return self.dead_letters if number == DEAD_LETTERS else self.outputs[number]


def removed(context: Context, topics: Collection[str]) -> dict[Partition, int]:
    """Partitions of topics of outputs, dead letters or receipts whose log start lies above where this audit would have begun to read."""
    return {
        partition: bounds.start
        for partition, bounds in context.cut.outputs.items()
        if partition[0] in topics and bounds.start > context.outputs_from.get(partition, 0)
    }


def output_ranges(context: Context, topic: str) -> dict[Partition, Range]:
    """What is to be read of a topic of outputs, dead letters or receipts: from the last audit's mark to the cut's end."""
    return {
        partition: Range(max(context.outputs_from.get(partition, bounds.start), bounds.start), bounds.end)
        for partition, bounds in context.cut.outputs.items()
        if partition[0] == topic
    }
