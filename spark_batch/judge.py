"""All judges in order, and what they say put together: `judge(context)`.

receipts -> tiles -> (depth offsets ends here) -> one scan into bitmaps -> verdicts, and ranges to drill -> their content -> order, ledger

What the ledger counts is read beside all that, in a thread of its own.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch import findings as tables
from spark_batch.content import both_sides, judge_content
from spark_batch.context import Judged
from spark_batch.figures import mismatches
from spark_batch.latency import percentiles, sample_of
from spark_batch.ledger import balances, count_held, foreign_notes, imbalances, ledger, next_outputs_from, tallies
from spark_batch.model import FINDINGS_SHOWN, Depth, Finding, Judgement, Kind, Partition, Range, Verdict
from spark_batch.multiset import match, unjudged
from spark_batch.order import reordered
from spark_batch.planning import lost_group, make_plan, without
from spark_batch.receipts import expired_until_ms, receipt_entries, tiles
from spark_batch.records import CLAIMED, COUNTED, judge_offsets, judge_records, scan
from spark_batch.scanned import What
from spark_batch.sequences import sequences
from spark_batch.sides import Ranges
from spark_batch.totals import stretches_of, totals_of
from spark_batch.unsure import Unsure, removal_note, unsure_of
from spark_batch.work import Kept, Work

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pyspark.sql import DataFrame

    from spark_batch.context import Context
    from spark_batch.ledger import Held, Tallies
    from spark_batch.model import Disorder, LatencyRow
    from spark_batch.plan import Plan


_OTHERS = {
    "other": "another transform wrote these outputs: what they must be is not known",
    "unstamped": "workers with lineage: false wrote these outputs, and the pipeline has it on now: which are there cannot be told",
}
"""By records.JUDGED: what is said of outputs that another pipeline file is behind."""


def judge(context: Context) -> Judged:
    """Everything that can be said at the context's depth. Spark's own errors pass through."""
    kept = Kept()
    with ThreadPoolExecutor(1) as beside:
        held = None if context.depth is Depth.OFFSETS else beside.submit(count_held, context)
        try:
            judged = _judge(context, kept, held)
        except BaseException:
            kept.let_go()
            raise
    if judged.findings is None:  # else they are still to be written from the cache
        kept.let_go()
    return judged


def _judge(context: Context, kept: Kept, held: Future[Held] | None) -> Judged:
    started = time.monotonic()
    context.tell("reading receipts")
    entries = kept.keep(receipt_entries(context))
    tiled = kept.keep(tiles(context, entries, expired_until_ms(context, entries)))
    by_content = context.depth is not Depth.OFFSETS and not context.lineage
    work = Work(make_plan(context, tiled), Depth.CONTENT if by_content else context.depth)
    work.notes.extend(work.planned.notes)
    plan, aside = work.planned.plan, work.planned.aside
    tiled = without(aside, tiled)
    receipts = _judge_receipts(context, entries, tiled, work)
    topics = _Topics()
    if work.depth is Depth.OFFSETS:
        for row in judge_offsets(plan, tiled).collect():
            for verdict, records in zip(CLAIMED, row["figures"], strict=True):
                work.count(row["source"], row["start"], verdict, records)
    else:
        topics = _judge_topics(context, entries, tiled, work, kept)
    if any(what is What.IN_FLIGHT for what, _ in topics.counted):
        told = work.planned.findings
        told += lost_group(context, told, "there are outputs or dead letters of its source records")
    context.tell("balancing the ledger")
    rows = () if held is None else ledger(context, plan, topics.counted, held.result(), receipts.flying)
    work.planned.findings.extend(imbalances(rows))
    context.tell("putting findings together")
    findings, finding_counts, table = _all_findings(context, work, kept)
    audited = {
        partition: aside[partition][1] if partition in aside else Range(plan.begin[number], plan.committed[number])
        for number, partition in enumerate(plan.sources)
        if partition in context.audited
    }
    stretches = stretches_of(audited, aside, work)
    judgement = Judgement(
        pipeline=context.loaded.spec.name,
        transform=context.loaded.transform.digest,
        depth=work.depth,
        cut=context.cut,
        audited=audited,
        stretches=stretches,
        findings=findings,
        finding_counts=finding_counts,
        ledger=rows,
        balances=balances(plan, topics.totals, faults=any(kind.is_fault for kind in finding_counts)),
        latency=topics.latency,
        disorder=topics.disorder,
        notes=tuple(work.notes),
        took_s=time.monotonic() - started,
        totals=totals_of(context, stretches, (*context.findings, *work.planned.findings)),
    )
    # Without lineage nobody can tell which outputs are of source partitions in doubt: the next audit reads them all again.
    told_apart = context.lineage or not work.planned.doubted
    marks = next_outputs_from(context, topics.counted, receipts.first_flying, scanned=held is not None and told_apart)
    return Judged(judgement, marks, receipts.sequences, table, work.planned.doubted)


@dataclass(frozen=True, slots=True)
class _Receipts:
    sequences: dict[tuple[str, str], int]
    """The last audited sequence of every incarnation."""
    flying: dict[int, int]
    """Per receipts partition: receipts that claim offsets at or beyond C."""
    first_flying: dict[int, int]


def _judge_receipts(context: Context, entries: DataFrame, tiled: DataFrame, work: Work) -> _Receipts:
    """Findings about receipts."""
    receipts = context.loaded.spec.receipts_topic
    held = {each.topic for each in context.cut.open_transactions}
    hidden = receipts in context.cut.compacted | context.recreated | held
    if hidden:
        work.notes.append(f"{receipts} may hold receipts that cannot be read now: a missing receipt is no finding")
    gaps = False
    if work.planned.more:
        found = tiled.where(
            F.col("what").isin("finding", "late")
            & ~F.col("kind").isin([str(Kind.TOPIC_RECREATED), str(Kind.OFFSETS_UNKNOWN)])
        )
        missing = F.col("kind") == str(Kind.RECEIPT_MISSING)
        if hidden:
            found = found.where(~missing)
        work.tables.append(tables.of_tiles(found))
        gaps = not found.where(missing).isEmpty()
    rows = sequences(context, work.planned.plan, entries).collect()
    if not gaps and not hidden:  # a missing receipt leaves both a gap and a hole: one finding
        work.planned.findings.extend(
            Finding(
                Kind.RECEIPT_MISSING,
                receipts,
                row["at_partition"],
                row["at_offset"],
                detail=f"number {row['hole']} of {row['transactional_id']}, incarnation {row['incarnation']}, is missing before this one",
            )
            for row in rows
            if row["hole"] is not None
        )
    flying: dict[int, int] = {}
    first: dict[int, int] = {}
    for row in rows:
        if row["flying"]:
            at = row["at_partition"]
            flying[at] = flying.get(at, 0) + row["flying"]
            first[at] = min(first.get(at, row["first_flying"]), row["first_flying"])
    return _Receipts({(row["transactional_id"], row["incarnation"]): row["last"] for row in rows}, flying, first)


@dataclass(frozen=True, slots=True)
class _Topics:
    """What the scan says beside the verdicts; nothing at depth offsets."""

    counted: Tallies = field(default_factory=dict)
    totals: list[list[int]] = field(default_factory=list)
    """Per source partition what receipts claim, and what was found."""
    latency: tuple[LatencyRow, ...] = ()
    disorder: tuple[Disorder, ...] = ()


def _judge_topics(context: Context, entries: DataFrame, tiled: DataFrame, work: Work, kept: Kept) -> _Topics:
    """Depths records and content."""
    plan = work.planned.plan
    context.tell("reading sources and outputs")
    sample = sample_of(plan.source_ranges())
    work.notes.extend(sample.notes)
    scanned = kept.keep(scan(context, plan, sample))
    judged = kept.keep(judge_records(plan, tiled, scanned, everything=work.depth is Depth.CONTENT))
    rows, drills = judged.where("what != 'drill'").collect(), judged.where("what = 'drill'")
    ranges: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        if row["what"] == "stretch":
            for verdict, records in zip(COUNTED, row["figures"], strict=True):
                work.count(row["source"], row["start"], verdict, records)
        elif row["what"] == "range":
            ranges.setdefault(row["source"], []).append((row["start"], row["end"]))
        elif row["what"] in _OTHERS:
            source: Partition = plan.sources[row["source"]]
            work.planned.findings.append(
                Finding(Kind.OTHER_TRANSFORM, *source, row["start"], row["end"], detail=_OTHERS[row["what"]])
            )
    seen = tallies(scanned, plan)
    counted, pairs, hiding = seen.counted, seen.pairs, unsure_of(context, plan, seen.firsts)
    work.notes.extend(foreign_notes(counted, unstamped=any(row["what"] == "unstamped" for row in rows)))
    if any(what in (What.ORPHAN, What.LATE) for what, _ in counted):
        work.tables.append(tables.of_scan(plan, scanned))
    totals = [row["figures"] for row in rows if row["what"] == "total"]
    if not context.lineage:
        rewritten = not entries.where(F.col("transform") != context.loaded.transform.digest).isEmpty()
        tallied, found = _match(context, Ranges(ranges), drills, work, kept, hiding, rewritten=rewritten)
        counted = {**counted, **tallied}
        totals.append([0] * (len(found) + 2) + found)
    elif ranges:
        context.tell("comparing contents")
        sides = both_sides(context, plan, Ranges(ranges))
        _take(plan, kept.keep(judge_content(plan, sides, drills, hiding)), work, kept, hiding)
    if pairs:
        context.tell("looking at the order")
        others = tables.union(context.spark, work.tables)
        late = kept.keep(reordered(context, plan, pairs, tables.faulty_sources(plan, others)))
        work.tables.append(tables.of_late(plan, late))
    latency = percentiles((row["hour"], row["latencies"]) for row in rows if row["what"] == "hour")
    return _Topics(counted, totals, latency, seen.disorder)


def _take(plan: Plan, content: DataFrame, work: Work, kept: Kept, hiding: Unsure) -> None:
    """What rows of content.CONTENT say. `content` is in Spark's cache."""
    counts = content.where("what = 'count'").groupBy("source", "start", "kind").agg(F.sum("n").alias("n"))
    rows = counts.collect()
    for row in rows:
        work.count(row["source"], row["start"], Verdict(row["kind"]), row["n"])
    if expired := sum(row["n"] for row in rows if row["kind"] == Verdict.EXPIRED):
        work.notes.append(removal_note(plan, expired))
    work.tables.append(tables.of_content(plan, content))
    work.tables.append(tables.of_ranges(plan, kept.keep(mismatches(content, hiding))))


def _match(
    context: Context, ranges: Ranges, drills: DataFrame, work: Work, kept: Kept, hiding: Unsure, *, rewritten: bool
) -> tuple[Tallies, list[int]]:
    """Outputs without lineage: see Matched.tallies. `drills`, `rewritten`: see judge_content and unjudged."""
    plan = work.planned.plan
    context.tell("comparing contents, without lineage")
    expired = any(Verdict.EXPIRED in stretch for each in work.counts.values() for stretch in each.values())
    unknown = any(finding.kind is Kind.OFFSETS_UNKNOWN for finding in work.planned.findings)
    blind = unjudged(context, aside=bool(work.planned.aside) or unknown, expired=expired, rewritten=rewritten)
    matched = match(context, plan, ranges, blind, kept.keep)
    content = judge_content(plan, matched.rows, drills, hiding)
    _take(plan, kept.keep(matched.explained(content)), work, kept, hiding)
    for source, start, records in matched.doubtful():
        work.doubt(source, start, records)
    work.tables.append(matched.orphans())
    work.notes.extend(matched.notes)
    return matched.tallies()


def _all_findings(
    context: Context, work: Work, kept: Kept
) -> tuple[tuple[Finding, ...], dict[Kind, int], DataFrame | None]:
    """(the first of them, how many of each kind, all of them where they are more)."""
    few = work.planned.findings
    table = tables.union(context.spark, work.tables)
    many = tables.shown(table, FINDINGS_SHOWN + 1) if work.tables else []
    counts: dict[Kind, int] = {}
    if len(many) + len(few) <= FINDINGS_SHOWN:
        for finding in (*few, *many):
            counts[finding.kind] = counts.get(finding.kind, 0) + 1
        return tuple(tables.in_order([*few, *many])), counts, None
    every = kept.keep(table.unionByName(tables.as_table(context.spark, few)))
    counts = {Kind(row["kind"]): row["count"] for row in every.groupBy("kind").count().collect()}
    first = tables.shown(every.orderBy("kind", "topic", "partition", "offset"))
    return tuple(first), counts, every
