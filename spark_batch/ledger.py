"""The ledger: every offset of every output partition is a committed record, an aborted one, or a marker; and outputs against receipts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.model import Balance, Disorder, Finding, Kind, LedgerRow
from spark_batch.plan import output_ranges
from spark_batch.scanned import What
from spark_batch.topics import read_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from spark_batch.context import Context
    from spark_batch.model import Partition, Range
    from spark_batch.plan import Plan

_TASK = 200_000
"""Offsets per task: what waits for a core in between does not wait long."""

_BY_SOURCE = (What.DISORDER, What.TARDY, What.FIRST)

Tallies: TypeAlias = "Mapping[tuple[What, Partition], tuple[int, int]]"


@dataclass(frozen=True, slots=True)
class Scanned:
    """What the scan says beside bitmaps."""

    counted: Tallies
    """(what, output partition) -> (records, lowest offset)."""
    pairs: set[tuple[int, int, int]]
    """(output topic, its partition, source partition) in DISORDER."""
    disorder: tuple[Disorder, ...]
    """What TARDY says, per source topic."""
    firsts: dict[tuple[int, int, int], int]
    """(output topic, its partition, source partition) -> source offset of FIRST."""


def tallies(scanned: DataFrame, plan: Plan) -> Scanned:
    """From rows of scanned.SCANNED."""
    kinds = scanned.where(f"what NOT IN ({int(What.BITS)}, {int(What.TIMES)})").withColumn(
        "source", F.when(F.col("what").isin(*map(int, _BY_SOURCE)), F.col("source")).otherwise(-1)
    )
    sums = kinds.groupBy("what", "topic", "partition", "source")
    figures = F.sum("n").alias("n"), F.min("low").alias("low"), F.sum("low").alias("lows"), F.max("high").alias("high")
    pairs: set[tuple[int, int, int]] = set()
    counted: dict[tuple[What, Partition], tuple[int, int]] = {}
    firsts: dict[tuple[int, int, int], int] = {}
    tardy: dict[str, Disorder] = {}
    for row in sums.agg(*figures).collect():
        if row["what"] == What.DISORDER:
            pairs.add((row["topic"], row["partition"], row["source"]))
        elif row["what"] == What.FIRST:
            firsts[row["topic"], row["partition"], row["source"]] = row["high"]
        elif row["what"] == What.TARDY:
            topic = plan.sources[row["source"]][0]
            so_far = tardy.get(topic, Disorder(topic, 0, 0, 0))
            sums_of = so_far.records + row["n"], so_far.out_of_order + row["lows"]
            tardy[topic] = Disorder(topic, *sums_of, max(so_far.latest_ms, row["high"]))
        else:
            counted[What(row["what"]), (plan.topic_of(row["topic"]), row["partition"])] = row["n"], row["low"]
    late = tuple(tardy[topic] for topic in sorted(tardy) if tardy[topic].records)
    return Scanned(counted, pairs, late, firsts)


@dataclass(frozen=True, slots=True)
class Held:
    """What output partitions hold, counted apart from the judgement."""

    ranges: dict[Partition, Range]
    """What was read, topics in the order of the pipeline's, then dead letters and receipts."""
    everything: Mapping[Partition, int]
    """Records, aborted ones included."""
    receipts: Mapping[Partition, int]
    """Committed records of receipts."""


def count_held(context: Context) -> Held:
    """Reads every output once more, aborted records included: what Spark is shown with neither isolation are markers.

    It needs nothing but the cut, and may run beside the other stages, from a thread of its own: in a pool of its own it gets half of the
    cores while they are busy, and all while they wait for the driver.
    """
    spec = context.loaded.spec
    topics = list(dict.fromkeys([*context.loaded.transform.topics, spec.dead_letter_topic, spec.receipts_topic]))
    ranges = {topic: output_ranges(context, topic) for topic in topics}
    context.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "ledger")
    read = partial(read_topic, context.spark, context.kafka, headers=False)
    every = [read(of, "read_uncommitted", splits=_splits(of)) for of in ranges.values()]
    *everything, committed_receipts = _counts([*every, read(ranges[spec.receipts_topic])])
    return Held(
        reduce(lambda one, other: one | other, ranges.values()),
        {(topic, n): records for topic, of in zip(topics, everything, strict=True) for n, records in of.items()},
        {(spec.receipts_topic, n): records for n, records in committed_receipts.items()},
    )


def _splits(ranges: Mapping[Partition, Range]) -> int:
    return sum(bounds.end - bounds.start for bounds in ranges.values()) // _TASK + 1


def ledger(
    context: Context, plan: Plan, counted: Tallies, held: Held, flying_receipts: Mapping[int, int]
) -> tuple[LedgerRow, ...]:
    """`flying_receipts`: per receipts partition, of transactions at or beyond C."""
    receipts = context.loaded.spec.receipts_topic
    topics = [*plan.outputs, plan.dead_letters, receipts]
    ranges, everything, committed_receipts = held.ranges, held.everything, held.receipts
    rows = []
    for partition, bounds in sorted(ranges.items(), key=lambda item: (topics.index(item[0][0]), item[0][1])):
        role = {plan.dead_letters: "dead letters", receipts: "receipts"}.get(partition[0], "output")
        committed = counted.get((What.COMMITTED, partition), (0, 0))[0]
        if partition[0] == receipts:
            committed = committed_receipts.get(partition, 0)
        there = everything.get(partition, 0)
        rows.append(
            LedgerRow(
                *partition,
                role,
                bounds.start,
                bounds.end,
                committed=committed,
                aborted=there - committed,
                markers=max(bounds.end - bounds.start, 0) - there,
                in_flight=flying_receipts.get(partition[1], 0)
                if partition[0] == receipts
                else counted.get((What.IN_FLIGHT, partition), (0, 0))[0],
                foreign=counted.get((What.FOREIGN, partition), (0, 0))[0],
            )
        )
    return tuple(rows)


def imbalances(rows: Sequence[LedgerRow]) -> list[Finding]:
    """More records than a partition has offsets for, or more committed ones than there are: two reads that contradict each other."""
    return [
        Finding(
            Kind.LEDGER,
            row.topic,
            row.partition,
            row.start,
            row.end,
            detail=f"{row.committed} committed + {row.aborted} aborted + {row.markers} markers: a count below zero cannot be",
        )
        for row in rows
        if row.aborted < 0 or row.markers < 0
    ]


def balances(plan: Plan, totals: Sequence[Sequence[int]], *, faults: bool) -> tuple[Balance, ...]:
    """`totals`: per source partition what receipts claim (dead letters, then outputs per topic), then what was found of it."""
    if not totals:
        return ()
    sums = [sum(column) for column in zip(*totals, strict=True)]
    half = len(sums) // 2
    names = [(plan.dead_letters, "dead letters"), *((topic, "output") for topic in plan.outputs)]
    rows = []
    for (topic, role), claimed, found in zip(names, sums[:half], sums[half:], strict=True):
        why = "" if claimed == found else "see the findings" if faults else "see the notes"
        rows.append(Balance(topic, role, claimed, found, why))
    return tuple(sorted(rows, key=lambda row: (row.role != "output", row.topic)))


def foreign_notes(counted: Tallies, *, unstamped: bool) -> list[str]:
    """A sentence per topic that holds records of others. `unstamped`: workers wrote outputs without lineage, which look the same."""
    own = "or were written by its workers while they left no lineage" if unstamped else "or that of another topic"
    sums: dict[str, int] = {}
    for (what, (topic, _)), (records, _) in counted.items():
        if what is What.FOREIGN and records:
            sums[topic] = sums.get(topic, 0) + records
    return [
        f"{records} records in {topic} are not this pipeline's: they have no lineage, {own}"
        for topic, records in sorted(sums.items())
    ]


def _counts(tables: Sequence[DataFrame]) -> list[dict[int, int]]:
    """Records per partition of each table, in one job; by numbers alone, because a topic's name would be hashed for every record."""
    numbered = [table.select(F.lit(n).alias("table"), "partition") for n, table in enumerate(tables)]
    every = reduce(lambda one, other: one.unionByName(other), numbered)
    counts: list[dict[int, int]] = [{} for _ in tables]
    for row in every.groupBy("table", "partition").count().collect():
        counts[row["table"]][row["partition"]] = row["count"]
    return counts


def next_outputs_from(
    context: Context, counted: Tallies, first_receipts: Mapping[int, int], *, scanned: bool
) -> dict[Partition, int]:
    """See Judged.outputs_from. `first_receipts`: per receipts partition the first receipt that claims offsets at or beyond C.

    `scanned`: whether outputs were read, and it is known which of them are in flight; else the next audit must read what this one read,
    or would have read.
    """
    receipts = context.loaded.spec.receipts_topic
    marks = {}
    for partition, bounds in context.cut.outputs.items():
        if partition[0] == receipts:
            marks[partition] = first_receipts.get(partition[1], bounds.end)
        elif scanned:
            marks[partition] = counted.get((What.IN_FLIGHT, partition), (0, bounds.end))[1]
        else:
            marks[partition] = context.outputs_from.get(partition, bounds.start)
    return marks
