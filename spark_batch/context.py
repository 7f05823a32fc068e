"""What one audit works on, passed to every judge; and what a judge hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_batch.model import Cut, Depth, Judgement, Partition, Range
    from transforms.loading import LoadedPipeline

Sequences: TypeAlias = "dict[tuple[str, str], int]"
"""(transactional id, incarnation) -> the last sequence number of its receipts that was audited."""


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a judge may look at. Nothing in here grows with the number of records."""

    spark: SparkSession
    loaded: LoadedPipeline
    kafka: dict[str, str] = field(repr=False)
    """Java client options without Spark's prefix "kafka.", secrets among them: never to be shown."""
    cut: Cut
    audited: dict[Partition, Range]
    """Source offsets to judge, per source partition that has a committed offset."""
    outputs_from: dict[Partition, int]
    """Where to begin reading each partition of outputs, dead letters and receipts: the same keys as `cut.outputs`."""
    depth: Depth
    lineage: bool
    """Whether the worker stamps outputs: the pipeline file's `lineage`, RECKON_LINEAGE over it."""
    work_dir: Path
    """A folder of this audit for intermediate tables; on a cluster executors see it only where it is shared."""
    previous: Sequences | None = None
    """From the last audit's state; None where this audit begins at the beginning (or at a time)."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What `judge` returns: the judgement, all findings as a table, and what the next audit needs to go on."""

    judgement: Judgement
    outputs_from: dict[Partition, int]
    """Per output partition the lowest offset of a record whose source is at or beyond C, else its pinned end."""
    sequences: Sequences
    findings: DataFrame | None = None
    """All findings, columns as in model.Finding; None where `judgement.findings` are all there are."""
