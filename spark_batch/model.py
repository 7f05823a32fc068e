"""What the audit says, as data: the cut, the verdicts, the ledger, the findings. Everything here is small, whatever the topics hold.

Whoever computes (depths, ledger) makes these; whoever tells (page, JSON, exit code) reads them; nobody else defines forms of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TypeAlias

Partition: TypeAlias = "tuple[str, int]"
"""(topic, partition)"""


class ExitCode(IntEnum):
    COMPLETE = 0
    FINDINGS = 1
    CANNOT_JUDGE = 2
    BAD_ARGUMENTS = 3


class Depth(StrEnum):
    OFFSETS = "offsets"
    RECORDS = "records"
    CONTENT = "content"


class Verdict(StrEnum):
    """What became of a source record."""

    EXACTLY_ONCE = "exactly once"
    CLAIMED = "claimed"
    """Depth offsets only: a receipt covers it, its outputs were not looked at. Never part of "complete" of a deeper audit."""
    FILTERED = "filtered"
    DEAD_LETTERED = "dead-lettered"
    MISSING = "missing"
    DUPLICATE = "duplicate"
    ALTERED = "altered"
    ORPHAN = "orphan"
    """Of an output, not of a source record: its source does not exist or was never claimed."""
    IN_FLIGHT = "in flight"
    """At or beyond the group's committed offset: not judged, and no fault."""
    EXPIRED = "expired-unaudited"
    UNVERIFIABLE = "unverifiable"
    """Compacted or recreated topic, another transform."""
    UNKNOWN = "unknown"
    """The group's offsets are gone or were reset."""


class Kind(StrEnum):
    """What a finding is. The first group are faults (exit code 1), the second says that something could not be judged (2)."""

    MISSING = "missing"
    DUPLICATE = "duplicate"
    ALTERED = "altered"
    MISROUTED = "misrouted"
    """The right output in the wrong topic."""
    REORDERED = "reordered"
    ORPHAN = "orphan"
    RECEIPT_MISSING = "receipt-missing"
    RECEIPT_OVERLAP = "receipt-overlap"
    RECEIPT_MISMATCH = "receipt-mismatch"
    """A receipt's figures contradict what is in the topics, though every record may be right."""
    LEDGER = "ledger"
    """An output partition's ledger does not balance."""

    HANGING_TRANSACTION = "hanging-transaction"
    OPEN_TRANSACTION = "open-transaction"
    """Still open when the wait for the cut ended, but the coordinator knows it."""
    SOURCE_EXPIRED = "source-expired"
    COMPACTED = "compacted"
    TOPIC_RECREATED = "topic-recreated"
    OTHER_TRANSFORM = "other-transform"
    OFFSETS_UNKNOWN = "offsets-unknown"

    @property
    def is_fault(self) -> bool:
        return self in _FAULTS


_FAULTS = frozenset(
    {
        Kind.MISSING,
        Kind.DUPLICATE,
        Kind.ALTERED,
        Kind.MISROUTED,
        Kind.REORDERED,
        Kind.ORPHAN,
        Kind.RECEIPT_MISSING,
        Kind.RECEIPT_OVERLAP,
        Kind.RECEIPT_MISMATCH,
        Kind.LEDGER,
    }
)


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets [start, end) of one partition."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    topic: str
    partition: int
    producer_id: int
    epoch: int
    start_offset: int
    since_ms: int
    """Last write of the producer, milliseconds since the epoch."""
    coordinator_state: str | None
    """What the coordinator says of its transactional id ("Ongoing", ...); None where no coordinator lists it: it hangs (KIP-664)."""
    transactional_id: str | None


@dataclass(frozen=True, slots=True)
class Cut:
    """One consistent look at a running pipeline (A1): offsets C, then high watermarks, then LSO >= them; judged is what is below C."""

    taken_ms: int
    group: str
    committed: dict[Partition, int]
    """C per source partition; a partition without an offset is absent."""
    source_start: dict[Partition, int]
    """Log start offsets of the source, before the scan."""
    source_end: dict[Partition, int]
    """LSOs of the source, after C was read: [C, this) is in flight or lag."""
    outputs: dict[Partition, Range]
    """Log start and pinned end of every partition of outputs, dead letters and receipts."""
    topic_ids: dict[str, str]
    compacted: frozenset[str]
    """Topics whose cleanup.policy contains compact."""
    waited_s: float
    open_transactions: tuple[OpenTransaction, ...] = ()
    """Not empty: the wait timed out; outputs beyond the LSO of these partitions were not judged."""


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Kind
    topic: str
    """Where to look: the source for what is missing, the output for what is there and should not be."""
    partition: int
    offset: int | None
    """The exact offset, or None where the finding is about a range or a whole partition."""
    end: int | None = None
    """With `offset`: the finding is about [offset, end)."""
    source: tuple[str, int, int] | None = None
    """Source record (topic, partition, offset) that an output names."""
    detail: str = ""
    """One sentence for people."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a source partition's strip: how many records of [start, end) got which verdict."""

    topic: str
    partition: int
    start: int
    end: int
    counts: dict[Verdict, int]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One output partition: `committed + aborted + markers == end - start`."""

    topic: str
    partition: int
    role: str
    """output, dead letters, receipts"""
    start: int
    end: int
    committed: int
    aborted: int
    markers: int
    """Offsets that hold no record, read with any isolation: commit and abort markers."""
    in_flight: int
    """Of the committed: outputs of source records at or beyond C."""
    foreign: int
    """Of the committed: records that this pipeline did not write (no lineage of its source)."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Per output topic: what receipts claim against what is there; zero difference, or `why`."""

    topic: str
    role: str
    claimed: int
    found: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """Per hour of source timestamps, milliseconds from a record's timestamp to the commit of what it became."""

    hour_ms: int
    records: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Disorder:
    """Per source topic: records with an earlier timestamp than a record before them with the same key, and how late the latest was."""

    topic: str
    records: int
    out_of_order: int
    latest_ms: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything that one audit found."""

    pipeline: str
    transform: str
    """Digest of the pipeline file's transform."""
    depth: Depth
    cut: Cut
    audited: dict[Partition, Range]
    """Source offsets that were to be judged: from the last audit's cut, or the beginning, to C."""
    stretches: tuple[Stretch, ...]
    """At most a few hundred per partition, tiling `audited`."""
    findings: tuple[Finding, ...]
    """At most FINDINGS_SHOWN; all of them are in the Parquet files."""
    finding_counts: dict[Kind, int]
    ledger: tuple[LedgerRow, ...] = ()
    balances: tuple[Balance, ...] = ()
    latency: tuple[LatencyRow, ...] = ()
    disorder: tuple[Disorder, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader must know: what was not checked at this depth, what was sampled."""
    took_s: float = 0.0
    totals: dict[Verdict, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """A fault outweighs what could not be judged; "complete" needs neither, and nothing left unjudged.

        A record with a bad verdict, or a finding that is shown, is a fault also where nobody has counted a finding for it.
        """
        wrong = {Verdict.MISSING, Verdict.DUPLICATE, Verdict.ALTERED, Verdict.ORPHAN}
        if any(self.totals.get(verdict) for verdict in wrong) or any(f.kind.is_fault for f in self.findings):
            return ExitCode.FINDINGS
        if any(kind.is_fault and count for kind, count in self.finding_counts.items()):
            return ExitCode.FINDINGS
        unjudged = {Verdict.UNKNOWN, Verdict.UNVERIFIABLE, Verdict.EXPIRED}
        if self.findings or any(self.finding_counts.values()) or any(self.totals.get(verdict) for verdict in unjudged):
            return ExitCode.CANNOT_JUDGE
        return ExitCode.COMPLETE


FINDINGS_SHOWN = 1000
