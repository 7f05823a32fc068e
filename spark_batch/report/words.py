"""The audit's words for people: what verdicts and kinds mean, and the one sentence at the top of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spark_batch.model import Depth, ExitCode, Kind, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_batch.model import Judgement

FAULTS = (Verdict.MISSING, Verdict.DUPLICATE, Verdict.ALTERED, Verdict.ORPHAN)
UNJUDGED = (Verdict.UNKNOWN, Verdict.UNVERIFIABLE, Verdict.EXPIRED)
TROUBLE = (*FAULTS, *UNJUDGED)
"""Worst first."""

MEANING: dict[Verdict, str] = {
    Verdict.EXACTLY_ONCE: "its outputs are there, each once",
    Verdict.CLAIMED: "a receipt covers it; its outputs were not looked at",
    Verdict.FILTERED: "yielded no output, on purpose",
    Verdict.DEAD_LETTERED: "lies in the dead letters, once",
    Verdict.MISSING: "an output that should be there is not",
    Verdict.DUPLICATE: "an output is there more than once",
    Verdict.ALTERED: "an output differs from what the transform gives",
    Verdict.ORPHAN: "an output whose source record does not exist or was never claimed",
    Verdict.IN_FLIGHT: "at or beyond the group's committed offset: not judged, no fault",
    Verdict.EXPIRED: "retention removed it, its outputs or its receipts before it was audited",
    Verdict.UNVERIFIABLE: "compacted, recreated topic, or another transform",
    Verdict.UNKNOWN: "no answer: the group's offsets are gone or were reset, or a transaction is open",
}


_NAMED = 4
"""Kinds that a headline names."""


class Words(NamedTuple):
    one: str
    many: str
    meaning: str


KINDS: dict[Kind, Words] = {
    Kind.MISSING: Words(
        "missing", "missing", "An output, or a dead letter, of a source record that was claimed is not there."
    ),
    Kind.DUPLICATE: Words("duplicate", "duplicates", "An output of one source record is there more than once."),
    Kind.ALTERED: Words("altered", "altered", "Value, key, headers or timestamp differ from what the transform gives."),
    Kind.MISROUTED: Words("misrouted", "misrouted", "The right output in the wrong topic."),
    Kind.REORDERED: Words("reordered", "reordered", "An output stands before one of an earlier source record."),
    Kind.ORPHAN: Words(
        "orphan", "orphans", "An output names a source record that does not exist or was never claimed."
    ),
    Kind.RECEIPT_MISSING: Words("missing receipt", "missing receipts", "No receipt covers these source offsets."),
    Kind.RECEIPT_OVERLAP: Words(
        "receipt overlap", "receipt overlaps", "More than one receipt claims these source offsets."
    ),
    Kind.RECEIPT_MISMATCH: Words(
        "receipt mismatch", "receipt mismatches", "A receipt's figures contradict what is in the topics."
    ),
    Kind.LEDGER: Words("ledger difference", "ledger differences", "What receipts claim and what lies there differ."),
    Kind.HANGING_TRANSACTION: Words(
        "hanging transaction",
        "hanging transactions",
        "The broker holds a transaction open that no coordinator knows. Readers stop in front of it until it is aborted by hand.",
    ),
    Kind.OPEN_TRANSACTION: Words(
        "open transaction",
        "open transactions",
        "Still open when the wait for the cut ended. Audit again later, or with a longer --wait.",
    ),
    Kind.SOURCE_EXPIRED: Words(
        "expired source range", "expired source ranges", "Retention removed source records before they were audited."
    ),
    Kind.COMPACTED: Words(
        "compacted topic", "compacted topics", "Compaction removes records: what is gone cannot be judged."
    ),
    Kind.TOPIC_RECREATED: Words(
        "recreated topic",
        "recreated topics",
        "The topic was deleted and created again: offsets mean other records now.",
    ),
    Kind.OTHER_TRANSFORM: Words(
        "range of another transform",
        "ranges of another transform",
        "Written under other rules than this pipeline file's.",
    ),
    Kind.OFFSETS_UNKNOWN: Words(
        "partition of unknown progress",
        "partitions of unknown progress",
        "The group's committed offset is gone, was reset, or lies beyond the topic's end.",
    ),
}

DEPTHS: dict[Depth, str] = {
    Depth.OFFSETS: "Depth offsets: receipts were checked against the group's offsets. No output was looked at.",
    Depth.RECORDS: "Depth records: every output was counted by the source record that it names. Contents were not compared, "
    "except in ranges that did not balance.",
    Depth.CONTENT: "Depth content: the transform ran again over every source record, and outputs were compared byte by byte.",
}


def headline(judgement: Judgement) -> str:
    """The verdict as one sentence."""
    if judgement.exit_code is ExitCode.FINDINGS:
        faults = {kind: count for kind, count in judgement.finding_counts.items() if count and kind.is_fault}
        total = sum(faults.values())
        return f"{total:,} {'finding' if total == 1 else 'findings'}: {_counted(faults, _NAMED)}"
    if judgement.exit_code is ExitCode.CANNOT_JUDGE:
        return f"Cannot judge: {_reasons(judgement)}"
    records = judged(judgement.totals)
    if not records:
        return "Nothing to judge: no source records in the audited offsets"
    noun = "source record" if records == 1 else "source records"
    if judgement.depth is Depth.OFFSETS:
        return f"Complete at depth offsets: {records:,} {noun}, each claimed by one receipt"
    return f"Complete: {records:,} {noun}, each accounted for"


def subline(judgement: Judgement) -> str:
    """What belongs to the headline: how the records divide up, and what else could not be judged."""
    parts = [
        f"{count:,} {verdict}" for verdict, count in in_order(judgement.totals) if verdict is not Verdict.IN_FLIGHT
    ]
    text = ", ".join(parts)
    if judgement.exit_code is ExitCode.FINDINGS and (others := _unjudged(judgement)):
        text += f". Not judged: {others}"
    if flying := judgement.totals.get(Verdict.IN_FLIGHT):
        text += f". {flying:,} more in flight, not judged"
    return text.removeprefix(". ")


def judged(totals: Mapping[Verdict, int]) -> int:
    """Source records that got a verdict: neither in flight nor orphans, which are outputs."""
    return sum(count for verdict, count in totals.items() if verdict not in {Verdict.IN_FLIGHT, Verdict.ORPHAN})


def in_order(counts: Mapping[Verdict, int]) -> list[tuple[Verdict, int]]:
    """Verdicts that occur, in the order of `Verdict`."""
    return [(verdict, counts[verdict]) for verdict in Verdict if counts.get(verdict)]


def kind_counted(kind: Kind, count: int) -> str:
    return f"{count:,} {KINDS[kind].one if count == 1 else KINDS[kind].many}"


def _counted(counts: Mapping[Kind, int], most: int = len(Kind)) -> str:
    """The `most` frequent kinds, in the order of `Kind`, and how many there are of the others."""
    named = sorted((kind for kind in Kind if counts.get(kind)), key=lambda kind: -counts[kind])[:most]
    parts = [kind_counted(kind, counts[kind]) for kind in Kind if kind in named]
    if others := sum(counts.values()) - sum(counts[kind] for kind in named):
        parts.append(f"{others:,} of other kinds")
    return ", ".join(parts)


def _unjudged(judgement: Judgement) -> str:
    return _counted({kind: count for kind, count in judgement.finding_counts.items() if not kind.is_fault})


def _reasons(judgement: Judgement) -> str:
    """Why not everything could be judged."""
    records = ", ".join(
        f"{judgement.totals[verdict]:,} records {verdict}" for verdict in UNJUDGED if judgement.totals.get(verdict)
    )
    return "; ".join(part for part in (_unjudged(judgement), records) if part)
