"""What is to be judged, and what cannot be: from the cut and the receipts' tiles, before a record is read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.model import Finding, Kind, Range, Verdict
from spark_batch.plan import Plan, removed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark.sql import DataFrame

    from spark_batch.context import Context
    from spark_batch.model import Partition

_NEVER = 2**62
"""Beyond every offset."""

Aside: TypeAlias = "dict[Partition, tuple[Verdict, Range, int]]"
"""Per source partition: verdict, range, records that receipts claim in it."""


@dataclass(frozen=True, slots=True)
class Planned:
    plan: Plan
    aside: Aside
    """Source partitions of which nothing is judged, and what is said of them instead."""
    findings: list[Finding]
    """About whole topics and partitions, those of the context among them."""
    more: int
    """Findings in the table of tiles, at most: these among them."""
    doubted: frozenset[Partition]
    """Source partitions whose C cannot be believed, whether there is one or not (A11)."""
    notes: list[str] = field(default_factory=list)


def make_plan(context: Context, tiled: DataFrame) -> Planned:
    """From the receipts' tiles (receipts.TILES) and the cut."""
    findings = list(context.findings)
    few = [str(Kind.TOPIC_RECREATED), str(Kind.OFFSETS_UNKNOWN)]
    rows = tiled.where((F.col("what") == "summary") | (F.col("what") == "finding") & F.col("kind").isin(few)).collect()
    summaries = {(row["topic"], row["partition"]): row for row in rows if row["what"] == "summary"}
    more = sum(row["figures"][0] for row in summaries.values())
    recreated = {row["topic"] for row in rows if row["kind"] == Kind.TOPIC_RECREATED}
    known = {finding.topic for finding in findings if finding.kind is Kind.TOPIC_RECREATED}
    for row in rows:
        if row["kind"] == Kind.TOPIC_RECREATED and row["topic"] not in known:
            where: Partition = (row["topic"], row["partition"])
            findings.append(Finding(Kind.TOPIC_RECREATED, *where, None, detail=row["detail"]))
    doubts = {(row["topic"], row["partition"]): row["detail"] for row in rows if row["kind"] == Kind.OFFSETS_UNKNOWN}
    unknown = set(context.unknown)
    for where, detail in sorted((_set_back(context, summaries) | doubts).items()):
        if where not in unknown and where[0] not in recreated | context.recreated:
            unknown.add(where)
            offset = context.cut.committed.get(where)
            findings.append(Finding(Kind.OFFSETS_UNKNOWN, *where, offset, detail=detail))
    if gone := removed(context, [context.loaded.spec.receipts_topic]):
        findings += lost_group(context, findings, f"of its receipts retention removed some, in {len(gone)} partitions")
    findings += _compacted(context)
    aside: Aside = {}
    for partition, span in context.audited.items():
        topic = partition[0]
        summary = summaries[partition]
        whole = Range(min(summary["start"], span.end), span.end)
        if partition in unknown:
            aside[partition] = Verdict.UNKNOWN, whole, summary["tile"]
        elif topic in context.cut.compacted or topic in recreated or topic in context.recreated:
            aside[partition] = Verdict.UNVERIFIABLE, whole, summary["tile"]
    notes = _receipt_notes(context, {p: row["figures"] for p, row in summaries.items() if p not in aside})
    plan = _numbered(context, summaries, aside, unknown)
    return Planned(plan, aside, findings, more, frozenset(unknown), notes)


def _receipt_notes(context: Context, figures: Mapping[Partition, Sequence[int]]) -> list[str]:
    """What receipts do not tell. `figures`: of the summaries, receipts.TILES."""
    notes = []
    if unproven := sum(each[1] for each in figures.values()):
        gone = removed(context, [context.loaded.spec.receipts_topic])
        places = ", ".join(f"{topic} {number} below offset {end}" for (topic, number), end in sorted(gone.items()))
        notes.append(
            f"retention removed receipts before this audit read them (partitions {places}). {unproven} source offsets that no receipt "
            "claims may have been claimed by those: records there are expired-unaudited"
        )
    nameless: Counter[str] = Counter()
    for (topic, _), each in figures.items():
        nameless[topic] += each[2]
    notes += [
        f"{count} receipts do not carry the id of {topic}: the broker does not tell it, or did not tell the worker. Whether the topic was "
        "deleted and created again since they were written cannot be known from them"
        for topic, count in sorted((+nameless).items())
    ]
    return notes


def _set_back(context: Context, summaries: Mapping[Partition, Any]) -> dict[Partition, str]:
    """Source partitions whose receipts reach beyond what the group has committed even now: a receipt is committed together with its offset,
    so that the offset was set back, or is gone. Receipts beyond C alone would say nothing: transactions are committed while we look.
    """
    beyond = {
        where: row["bucket"] for where, row in summaries.items() if row["bucket"] > context.cut.committed.get(where, -1)
    }
    if not beyond:
        return {}
    with KafkaAdmin(context.spark, context.kafka) as admin:
        now = admin.committed(context.cut.group, beyond)
    return {
        where: f"group {context.cut.group}: receipts reach to {high}, committed is "
        + (f"{now[where]}: the offset was set back" if where in now else "nothing: the offset expired or was deleted")
        for where, high in beyond.items()
        if high > now.get(where, -1)
    }


def _numbered(
    context: Context, summaries: Mapping[Partition, Any], aside: Aside, unknown: AbstractSet[Partition]
) -> Plan:
    cut = context.cut
    sources = tuple(sorted(cut.source_start))
    begin, committed, lowest = [], [], []
    complete = context.previous is None and not any(
        bounds.start > 0 for (topic, _), bounds in cut.outputs.items() if topic == context.loaded.spec.receipts_topic
    )
    for partition in sources:
        span, summary = context.audited.get(partition), summaries.get(partition)
        if span is None or partition in aside:
            # Nothing is judged: with C as begin, outputs below it are taken for judged before, those beyond it for in flight. Where C is
            # in doubt the next audit goes on from the mark, or begins at the beginning: it must read all outputs from there on. Without
            # any C every output is in flight: see judge, which asks whether there may be any.
            certain = span is not None and partition not in unknown
            end = span.end if span and certain else context.marks.get(partition, 0)
            begin.append(end)
            committed.append(end)
            lowest.append(0)
            continue
        begin.append(summary["start"] if summary is not None else span.start)
        committed.append(span.end)
        claimed = summary["end"] if summary is not None else -1
        # Only where the group began at its end are there records that were never to be claimed.
        late = complete and claimed >= 0 and context.loaded.spec.source.start == "latest"
        lowest.append(claimed if late else 0)
    spec = context.loaded.spec
    return Plan(
        sources=sources,
        begin=tuple(begin),
        committed=tuple(committed),
        # What names an offset of a partition that is not judged is no orphan: the topic may have been another one.
        end=tuple(_NEVER if p in aside else max(cut.source_end[p], c) for p, c in zip(sources, committed, strict=True)),
        log_start=tuple(cut.source_start[p] for p in sources),
        never_claimed_below=tuple(lowest),
        outputs=tuple(context.loaded.transform.topics),
        dead_letters=spec.dead_letter_topic,
        judged_below=tuple(_judged_below(context, partition, aside) for partition in sources),
        seen=context.seen,
        removed=removed(context, [*context.loaded.transform.topics, spec.dead_letter_topic]),
        others=context.topics - {topic for topic, _ in sources},
    )


def _judged_below(context: Context, partition: Partition, aside: Aside) -> int:
    """Also where C is in doubt: the next audit takes what this one reads of the outputs for seen."""
    if aside.get(partition, (None,))[0] is Verdict.UNVERIFIABLE:
        return 0
    return context.marks.get(partition, 0)


def _compacted(context: Context) -> list[Finding]:
    detail = "its cleanup.policy contains compact: records that are gone cannot be told from records that never were"
    return [Finding(Kind.COMPACTED, topic, 0, None, detail=detail) for topic in sorted(context.cut.compacted)]


def without(aside: Aside, tiled: DataFrame) -> DataFrame:
    """The tiles of source partitions that are judged: what receipts say of the others is not held against anything, but for receipts that
    came late where it is only the group's offset that is in doubt: no audit sees them again.
    """
    if not aside:
        return tiled
    partition = F.concat_ws("/", "topic", F.col("partition").cast("string"))
    others = {verdict: [f"{t}/{n}" for (t, n), each in aside.items() if each[0] is verdict] for verdict in Verdict}
    late = (F.col("what") == "late") & ~partition.isin(others[Verdict.UNVERIFIABLE])
    return tiled.where(~partition.isin([f"{topic}/{number}" for topic, number in aside]) | late)


def lost_group(context: Context, findings: Iterable[Finding], evidence: str) -> list[Finding]:
    """Of a group that has committed nothing at all, though `evidence` says that it once had: every source partition that ever held
    anything, unless `findings` have said so. None where it has committed since the cut: then it has just begun.
    """
    cut = context.cut
    if cut.committed:
        return []
    with KafkaAdmin(context.spark, context.kafka) as admin:
        if admin.committed(cut.group, cut.source_end):
            return []
    detail = f"group {cut.group}: nothing is committed, but {evidence}: its offsets expired or were deleted"
    told = {(finding.topic, finding.partition) for finding in findings if finding.kind is Kind.OFFSETS_UNKNOWN}
    held = [partition for partition, end in sorted(cut.source_end.items()) if end and partition not in told]
    return [Finding(Kind.OFFSETS_UNKNOWN, *partition, None, detail=detail) for partition in held]
