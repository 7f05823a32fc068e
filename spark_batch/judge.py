"""All judges in order, and what they say put together: `judge(context)`.

receipts -> tiles -> (depth offsets ends here) -> one scan into bitmaps -> verdicts, and ranges to drill -> content of these -> order, ledger
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.content import Ranges, judge_content, mismatches
from spark_batch.context import Judged
from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.ledger import Tallies, balances, ledger, next_outputs_from, tallies
from spark_batch.model import (
    FINDINGS_SHOWN,
    Depth,
    Finding,
    Judgement,
    Kind,
    Partition,
    Range,
    Stretch,
    Verdict,
)
from spark_batch.order import reordered
from spark_batch.plan import DEAD_LETTERS, Plan
from spark_batch.receipts import expired_until_ms, receipt_entries, sequences, tiles
from spark_batch.records import CLAIMED, COUNTED, judge_offsets, judge_records, scan
from spark_batch.scan import What
from spark_batch.tiling import width

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame

    from spark_batch.context import Context

FINDING = (
    "kind string, topic string, partition int, offset bigint, end bigint, "
    "source struct<topic: string, partition: int, offset: bigint>, detail string"
)


@dataclass(slots=True)
class _Work:
    """What the stages hand to each other."""

    findings: list[Finding]
    """Few, whatever the topics hold."""
    tables: list[DataFrame] = field(default_factory=list)
    """Findings that may be many."""
    counts: dict[Partition, dict[int, dict[Verdict, int]]] = field(default_factory=dict)
    """Per source partition and start of a stretch."""
    kept: list[DataFrame] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    receipt_findings: int = 0
    """In the table of tiles."""

    def keep(self, table: DataFrame) -> DataFrame:
        self.kept.append(table.persist())
        return table

    def count(self, partition: Partition, start: int, verdict: Verdict, records: int) -> None:
        if records:
            stretch = self.counts.setdefault(partition, {}).setdefault(start, {})
            stretch[verdict] = stretch.get(verdict, 0) + records


def judge(context: Context) -> Judged:
    """Everything that can be said at the context's depth. Spark's own errors pass through."""
    started = time.monotonic()
    work = _Work(list(context.findings))
    context.tell("reading receipts")
    entries = work.keep(receipt_entries(context))
    tiled = work.keep(tiles(context, entries, expired_until_ms(context, entries)))
    plan, aside = _plan(context, tiled, work)
    receipts = _judge_receipts(context, entries, tiled, work, aside)
    counted: Tallies = {}
    totals: list[list[int]] = []
    if context.depth is Depth.OFFSETS:
        for row in judge_offsets(plan, tiled).collect():
            for verdict, records in zip(CLAIMED, row["figures"], strict=True):
                work.count(plan.sources[row["source"]], row["start"], verdict, records)
    else:
        counted, totals = _judge_topics(context, plan, tiled, work)
    context.tell("putting findings together")
    findings, finding_counts, table = _all_findings(context, work)
    faults = any(kind.is_fault for kind in finding_counts)
    rows = ledger(context, plan, counted, receipts.flying) if context.depth is not Depth.OFFSETS else ()
    audited = {
        partition: Range(plan.begin[number], context.audited[partition].end)
        for number, partition in enumerate(plan.sources)
        if partition in context.audited
    }
    audited |= {partition: span for partition, (_, span, _) in aside.items()}
    stretches = _stretches(audited, aside, work)
    judgement = Judgement(
        pipeline=context.loaded.spec.name,
        transform=context.loaded.transform.digest,
        depth=context.depth,
        cut=context.cut,
        audited=audited,
        stretches=stretches,
        findings=findings,
        finding_counts=finding_counts,
        ledger=rows,
        balances=balances(plan, totals, faults=faults),
        notes=tuple(work.notes),
        took_s=time.monotonic() - started,
        totals=_totals(context, stretches),
    )
    if table is None:
        for kept in work.kept:
            kept.unpersist()
    return Judged(judgement, next_outputs_from(context, counted, receipts.first_flying), receipts.sequences, table)


Aside: TypeAlias = "dict[Partition, tuple[Verdict, Range, int]]"
"""Per source partition: verdict, range, records that receipts claim in it."""


def _plan(context: Context, tiled: DataFrame, work: _Work) -> tuple[Plan, Aside]:
    """The plan, and source partitions of which nothing is judged, with what is said of them instead."""
    few = [str(Kind.TOPIC_RECREATED), str(Kind.OFFSETS_UNKNOWN)]
    rows = tiled.where((F.col("what") == "summary") | (F.col("what") == "finding") & F.col("kind").isin(few)).collect()
    summaries = {(row["topic"], row["partition"]): row for row in rows if row["what"] == "summary"}
    work.receipt_findings = sum(row["figures"][0] for row in summaries.values())
    recreated = {row["topic"] for row in rows if row["kind"] == Kind.TOPIC_RECREATED}
    known = {finding.topic for finding in work.findings if finding.kind is Kind.TOPIC_RECREATED}
    for row in rows:
        if row["kind"] == Kind.TOPIC_RECREATED and row["topic"] not in known:
            where: Partition = (row["topic"], row["partition"])
            work.findings.append(Finding(Kind.TOPIC_RECREATED, *where, None, detail=row["detail"]))
    doubts = {(row["topic"], row["partition"]): row["detail"] for row in rows if row["kind"] == Kind.OFFSETS_UNKNOWN}
    unknown = set(context.unknown)
    for where, detail in sorted((_set_back(context, summaries) | doubts).items()):
        if where not in unknown and where[0] not in recreated | context.recreated:
            unknown.add(where)
            offset = context.cut.committed.get(where)
            work.findings.append(Finding(Kind.OFFSETS_UNKNOWN, *where, offset, detail=detail))
    work.findings += _compacted(context)
    aside: Aside = {}
    for partition, span in context.audited.items():
        topic = partition[0]
        summary = summaries[partition]
        whole = Range(min(summary["start"], span.end), span.end)
        if partition in unknown:
            aside[partition] = Verdict.UNKNOWN, whole, summary["tile"]
        elif topic in context.cut.compacted or topic in recreated or topic in context.recreated:
            aside[partition] = Verdict.UNVERIFIABLE, whole, summary["tile"]
    return _numbered(context, summaries, aside), aside


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


def _numbered(context: Context, summaries: Mapping[Partition, Any], aside: Aside) -> Plan:
    cut = context.cut
    sources = tuple(sorted(cut.source_start))
    begin, committed, lowest = [], [], []
    complete = context.previous is None and not any(
        bounds.start > 0 for (topic, _), bounds in cut.outputs.items() if topic == context.loaded.spec.receipts_topic
    )
    for partition in sources:
        span, summary = context.audited.get(partition), summaries.get(partition)
        if span is None or partition in aside:
            # Nothing is judged: with C as begin, outputs below it are taken for judged before, those beyond it for in flight.
            end = span.end if span is not None else cut.source_start[partition]
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
        end=tuple(max(cut.source_end[p], c) for p, c in zip(sources, committed, strict=True)),
        log_start=tuple(cut.source_start[p] for p in sources),
        never_claimed_below=tuple(lowest),
        outputs=tuple(context.loaded.transform.topics),
        dead_letters=spec.dead_letter_topic,
    )


def _compacted(context: Context) -> list[Finding]:
    detail = "its cleanup.policy contains compact: records that are gone cannot be told from records that never were"
    return [Finding(Kind.COMPACTED, topic, 0, None, detail=detail) for topic in sorted(context.cut.compacted)]


@dataclass(frozen=True, slots=True)
class _Receipts:
    sequences: dict[tuple[str, str], int]
    """The last audited sequence of every incarnation."""
    flying: dict[int, int]
    """Per receipts partition: receipts that claim offsets at or beyond C."""
    first_flying: dict[int, int]


def _judge_receipts(context: Context, entries: DataFrame, tiled: DataFrame, work: _Work, aside: Aside) -> _Receipts:
    """Findings about receipts."""
    receipts = context.loaded.spec.receipts_topic
    hidden = receipts in (
        context.cut.compacted | context.recreated | {each.topic for each in context.cut.open_transactions}
    )
    if hidden:
        work.notes.append(f"{receipts} may hold receipts that cannot be read now: a missing receipt is no finding")
    gaps = False
    if work.receipt_findings:
        found = tiled.where(
            (F.col("what") == "finding")
            & ~F.col("kind").isin([str(Kind.TOPIC_RECREATED), str(Kind.OFFSETS_UNKNOWN)])
            & ~F.concat_ws("/", "topic", F.col("partition").cast("string")).isin([f"{t}/{p}" for t, p in aside])
        )
        if hidden:
            found = found.where(F.col("kind") != str(Kind.RECEIPT_MISSING))
        nothing = F.lit(None).cast(_SOURCE).alias("source")
        work.tables.append(
            found.select("kind", "topic", "partition", F.col("start").alias("offset"), "end", nothing, "detail")
        )
        gaps = not found.where(F.col("kind") == str(Kind.RECEIPT_MISSING)).isEmpty()
    rows = sequences(context, entries).collect()
    if not gaps and not hidden:  # a missing receipt leaves both a gap and a hole: one finding
        work.findings += [
            Finding(
                Kind.RECEIPT_MISSING,
                receipts,
                row["at_partition"],
                row["at_offset"],
                detail=f"number {row['hole']} of {row['transactional_id']}, incarnation {row['incarnation']}, is missing before this one",
            )
            for row in rows
            if row["hole"] is not None
        ]
    flying: dict[int, int] = {}
    first: dict[int, int] = {}
    for row in rows:
        if row["flying"]:
            at = row["at_partition"]
            flying[at] = flying.get(at, 0) + row["flying"]
            first[at] = min(first.get(at, row["first_flying"]), row["first_flying"])
    return _Receipts({(row["transactional_id"], row["incarnation"]): row["last"] for row in rows}, flying, first)


def _judge_topics(context: Context, plan: Plan, tiled: DataFrame, work: _Work) -> tuple[Tallies, list[list[int]]]:
    """Depths records and content."""
    everything = context.depth is Depth.CONTENT
    context.tell("reading sources and outputs")
    scanned = work.keep(scan(context, plan))
    judged = work.keep(judge_records(plan, tiled, scanned, everything=everything))
    rows = judged.where("what != 'drill'").collect()
    for row in rows:
        if row["what"] == "stretch":
            for verdict, records in zip(COUNTED, row["figures"], strict=True):
                work.count(plan.sources[row["source"]], row["start"], verdict, records)
        elif row["what"] == "other":
            detail = "another transform wrote these outputs: which ones they must be is not known"
            source: Partition = plan.sources[row["source"]]
            work.findings.append(Finding(Kind.OTHER_TRANSFORM, *source, row["start"], row["end"], detail=detail))
    ranges = Ranges(
        {
            number: [(row["start"], row["end"]) for row in rows if row["what"] == "range" and row["source"] == number]
            for number in range(len(plan.sources))
        }
    )
    counted, pairs = tallies(scanned, plan)
    if any(what is What.ORPHAN for what, _ in counted):
        work.tables.append(_orphans(plan, scanned))
    if ranges:
        context.tell("comparing contents")
        _drill(context, plan, ranges, judged, work)
    if pairs:
        context.tell("looking at the order")
        work.tables.append(work.keep(reordered(context, plan, pairs, _union(context, work.tables))))
    return counted, [row["figures"] for row in rows if row["what"] == "total"]


def _drill(context: Context, plan: Plan, ranges: Ranges, judged: DataFrame, work: _Work) -> None:
    content = work.keep(judge_content(context, plan, ranges, judged.where("what = 'drill'"), _unsure(context, plan)))
    counts = content.where("what = 'count'").groupBy("source", "start", "kind").agg(F.sum("n").alias("n")).collect()
    for row in counts:
        work.count(plan.sources[row["source"]], row["start"], Verdict(row["kind"]), row["n"])
    source = _source_columns(plan)
    at_source = F.col("topic").isNull()
    topics = F.create_map(
        *(F.lit(x) for pair in [(DEAD_LETTERS, plan.dead_letters), *enumerate(plan.outputs)] for x in pair)
    )
    work.tables.append(
        content.where("what = 'fault'").select(
            "kind",
            F.when(at_source, source["topic"]).otherwise(F.try_element_at(topics, F.col("topic"))).alias("topic"),
            F.when(at_source, source["partition"]).otherwise(F.col("partition")).alias("partition"),
            F.when(at_source, F.col("offset")).otherwise(F.col("place")).alias("offset"),
            F.lit(None).cast("bigint").alias("end"),
            F.when(~at_source, F.struct(source["topic"], source["partition"], F.col("offset")))
            .cast(_SOURCE)
            .alias("source"),
            "detail",
        )
    )
    wrong = work.keep(mismatches(content))
    work.tables.append(
        wrong.select(
            "kind",
            source["topic"].alias("topic"),
            source["partition"].alias("partition"),
            F.col("start").alias("offset"),
            "end",
            F.lit(None).cast(_SOURCE).alias("source"),
            "detail",
        )
    )


_SOURCE = "struct<topic: string, partition: int, offset: bigint>"


def _source_columns(plan: Plan) -> Any:
    """The source partition whose number is in column source, as a struct."""
    names = F.array(*(F.struct(F.lit(t).alias("topic"), F.lit(p).alias("partition")) for t, p in plan.sources))
    return F.try_element_at(names, F.col("source") + 1)


def _orphans(plan: Plan, scanned: DataFrame) -> DataFrame:
    """Outputs whose source cannot exist, seen in the scan."""
    topics = F.create_map(
        *(F.lit(x) for pair in [(DEAD_LETTERS, plan.dead_letters), *enumerate(plan.outputs)] for x in pair)
    )
    source = _source_columns(plan)
    return scanned.where(f"what = {int(What.ORPHAN)}").select(
        F.lit(str(Kind.ORPHAN)).alias("kind"),
        F.try_element_at(topics, F.col("topic")).alias("topic"),
        "partition",
        F.col("low").alias("offset"),
        F.lit(None).cast("bigint").alias("end"),
        F.when(F.col("source") >= 0, F.struct(source["topic"], source["partition"], F.col("bucket")))
        .cast(_SOURCE)
        .alias("source"),
        F.concat(F.lit("it names "), F.col("text"), F.lit(", which is no source record of this pipeline")).alias(
            "detail"
        ),
    )


def _unsure(context: Context, plan: Plan) -> dict[int, Verdict]:
    """Topics in which a record may be that is not found."""
    names = {**dict(enumerate(plan.outputs)), DEAD_LETTERS: plan.dead_letters}
    gone = context.cut.compacted | context.recreated
    held = {each.topic for each in context.cut.open_transactions}
    return {
        number: Verdict.UNVERIFIABLE if name in gone else Verdict.UNKNOWN
        for number, name in names.items()
        if name in gone | held
    }


def _union(context: Context, tables: Iterable[DataFrame]) -> DataFrame:
    empty = context.spark.createDataFrame([], FINDING)
    return reduce(lambda one, other: one.unionByName(other), tables, empty)


def _all_findings(context: Context, work: _Work) -> tuple[tuple[Finding, ...], dict[Kind, int], DataFrame | None]:
    """(the first of them, how many of each kind, all of them where they are more)."""
    table = _union(context, work.tables)
    shown = [_finding(row) for row in table.limit(FINDINGS_SHOWN + 1).collect()] if work.tables else []
    counts: dict[Kind, int] = {}
    if len(shown) + len(work.findings) <= FINDINGS_SHOWN:
        every = sorted([*work.findings, *shown], key=_order)
        for finding in every:
            counts[finding.kind] = counts.get(finding.kind, 0) + 1
        return tuple(every), counts, None
    few = [(str(f.kind), f.topic, f.partition, f.offset, f.end, f.source, f.detail) for f in work.findings]
    table = work.keep(table.unionByName(context.spark.createDataFrame(few, FINDING)))
    counts = {Kind(row["kind"]): row["count"] for row in table.groupBy("kind").count().collect()}
    first = table.orderBy("kind", "topic", "partition", "offset").limit(FINDINGS_SHOWN).collect()
    return tuple(_finding(row) for row in first), counts, table


def _order(finding: Finding) -> tuple[str, str, int, int]:
    return str(finding.kind), finding.topic, finding.partition, -1 if finding.offset is None else finding.offset


def _finding(row: Any) -> Finding:
    source = row["source"]
    return Finding(
        Kind(row["kind"]),
        row["topic"],
        row["partition"],
        row["offset"],
        row["end"],
        None if source is None else (source["topic"], source["partition"], source["offset"]),
        row["detail"],
    )


def _stretches(audited: Mapping[Partition, Range], aside: Aside, work: _Work) -> tuple[Stretch, ...]:
    rows = []
    for partition, span in sorted(audited.items()):
        if partition in aside:
            if span.end > span.start:
                verdict, _, records = aside[partition]
                rows.append(Stretch(*partition, span.start, span.end, {verdict: records or span.end - span.start}))
            continue
        step, at = width(span.start, span.end), span.start
        while at < span.end:
            end = min((at // step + 1) * step, span.end)
            rows.append(Stretch(*partition, at, end, work.counts.get(partition, {}).get(at, {})))
            at = end
    return tuple(rows)


def _totals(context: Context, stretches: Iterable[Stretch]) -> dict[Verdict, int]:
    totals: dict[Verdict, int] = {}
    for stretch in stretches:
        for verdict, records in stretch.counts.items():
            totals[verdict] = totals.get(verdict, 0) + records
    lag = sum(
        max(0, end - context.cut.committed.get(p, context.cut.source_start[p]))
        for p, end in context.cut.source_end.items()
    )
    return {**totals, Verdict.IN_FLIGHT: lag} if lag else totals
