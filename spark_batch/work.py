"""What the stages of a judgement leave to those behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_batch.model import Depth, Partition, Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_batch.planning import Planned


@dataclass(slots=True)
class Work:
    """What the stages leave to those behind them."""

    planned: Planned
    depth: Depth
    tables: list[DataFrame] = field(default_factory=list)
    """Findings that may be many."""
    counts: dict[Partition, dict[int, dict[Verdict, int]]] = field(default_factory=dict)
    """Per source partition and start of a stretch."""
    notes: list[str] = field(default_factory=list)

    def count(self, source: int, start: int, verdict: Verdict, records: int) -> None:
        if records:
            stretch = self.counts.setdefault(self.planned.plan.sources[source], {}).setdefault(start, {})
            stretch[verdict] = stretch.get(verdict, 0) + records

    def doubt(self, source: int, start: int, records: int) -> None:
        """So many records, counted before, are not known to be right."""
        stretch = self.counts[self.planned.plan.sources[source]][start]
        moved = min(records, stretch.get(Verdict.EXACTLY_ONCE, 0))  # the others have faults of their own
        if moved:
            stretch[Verdict.EXACTLY_ONCE] -= moved
            stretch[Verdict.UNVERIFIABLE] = stretch.get(Verdict.UNVERIFIABLE, 0) + moved


@dataclass(slots=True)
class Kept:
    """Tables in Spark's cache."""

    tables: list[DataFrame] = field(default_factory=list)

    def keep(self, table: DataFrame) -> DataFrame:
        self.tables.append(table.persist())
        return table

    def let_go(self) -> None:
        while self.tables:
            self.tables.pop().unpersist()
