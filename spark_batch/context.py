"""What one audit works on, passed to every judge; and what a judge hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_batch.model import Cut, Depth, Finding, Judgement, Partition, Range
    from transforms.loading import LoadedPipeline

Sequences: TypeAlias = "dict[tuple[str, str], int]"
"""(transactional id, incarnation) -> the last sequence number of its receipts that was audited."""


class Begin(StrEnum):
    """What the start of an audited range is, and so what a judge may do to it."""

    BEGINNING = "beginning"
    """The source's log start. The judge moves it: to the lowest `from` of any receipt (`start: latest`), or to the lower of both
    (`start: earliest`: what receipts claim below the log start is expired)."""
    CONTINUED = "continued"
    """The last audit's C: exact, every receipt ends or begins there."""
    SINCE = "since"
    """The first record at or after --since. The judge moves it back to the beginning of the receipt that holds it."""


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a judge may look at. Nothing in here grows with the number of records."""

    spark: SparkSession
    loaded: LoadedPipeline
    kafka: dict[str, str] = field(repr=False)
    """Java client options without Spark's prefix "kafka.", secrets among them: never to be shown."""
    cut: Cut
    begin: dict[Partition, Begin]
    """Per partition of `audited`."""
    audited: dict[Partition, Range]
    """Source offsets to judge, [begin, C), per source partition that has a committed offset."""
    outputs_from: dict[Partition, int]
    """Where to begin reading each partition of outputs, dead letters and receipts: the same keys as `cut.outputs`. 0 without a state.
    It may lie below the partition's log start (`cut.outputs[...].start`): what was between has expired; readers begin at the log start."""
    depth: Depth
    lineage: bool
    """Whether the worker stamps outputs: the pipeline file's `lineage`, RECKON_LINEAGE over it."""
    work_dir: Path
    """A folder of this audit for intermediate tables; on a cluster executors see it only where it is shared."""
    findings: tuple[Finding, ...] = ()
    """What the cut and the last audit's state already say (open transactions, unknown offsets, recreated topics): part of the judgement."""
    unknown: frozenset[Partition] = frozenset()
    """Source partitions whose C cannot be believed (A11): everything there is UNKNOWN. One of them without any C is not in `audited`."""
    recreated: frozenset[str] = frozenset()
    """Topics with another id than in the last audit's state (A10): what is missing there is UNVERIFIABLE."""
    previous: Sequences | None = None
    """From the last audit's state; None where this audit begins at the beginning (or at a time)."""
    seen: dict[Partition, int] = field(default_factory=dict)
    """Per partition of outputs, dead letters and receipts where the last audit stopped reading, 0 for one that was added since; empty
    without a state. What stands there or beyond and belongs to source records that were judged then is one too many."""
    marks: dict[Partition, int] = field(default_factory=dict)
    """Per source partition the offset up to which audits have judged it, from the last audit's state; empty without one. It is the C of the
    last cut, or of the last one before it that could be believed."""
    topics: frozenset[str] = frozenset()
    """Names of all topics of the cluster that may be seen: what names one that is no source of this pipeline is another pipeline's."""
    tell: Callable[[str], None] = lambda _stage: None
    """Names the stage at work, for whoever watches: "reading receipts"."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What `judge` returns: the judgement, all findings as a table, and what the next audit needs to go on."""

    judgement: Judgement
    outputs_from: dict[Partition, int]
    """Per output partition the lowest offset of a record whose source is at or beyond C, else its pinned end."""
    sequences: Sequences
    findings: DataFrame | None = None
    """All findings, columns as in model.Finding; None where `judgement.findings` are all there are."""
    doubted: frozenset[Partition] = frozenset()
    """Source partitions whose C cannot be believed: the next audit goes on from their mark."""
