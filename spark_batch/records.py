"""Depth records: one pass over every topic into bitmaps, which are then held against the receipts.

    source, outputs, dead letters --(scan.py, in the tasks that read Kafka)--> bitmaps, tallies, orphans
    bitmaps + pieces of tiles --by source partition and bucket--> what each piece holds --by source partition--> verdicts, ranges to drill

Nothing but bitmaps is shuffled: 4 KB at most per 32,768 records and task.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.bitmaps import merge
from spark_batch.latency import by_hour
from spark_batch.model import Verdict
from spark_batch.plan import DEAD_LETTERS, output_ranges
from spark_batch.scan import OutputScan, SourceScan
from spark_batch.scanned import SCANNED, What
from spark_batch.tasks import in_batches, in_groups
from spark_batch.tiling import width
from spark_batch.topics import read_topic
from spark_batch.verdicts import Found, Pieces, Slot, balance, claimed, expired, find, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame

    from spark_batch.context import Context
    from spark_batch.latency import Sample
    from spark_batch.plan import Plan

LINEAGE_HEADER = "reckon.source"
COUNTED = (Verdict.EXACTLY_ONCE, Verdict.DEAD_LETTERED, Verdict.FILTERED, Verdict.EXPIRED)

SUMMED = (
    "source int, tile long, kind string, start long, end long, current boolean, figures array<bigint>, found array<bigint>, "
    "hour long, latencies binary"
)
"""A piece, and what the topics hold of it: a receipt's figures, then delivered, dead, filtered, suspect; or, with an hour, see
latency.by_hour."""
JUDGED = "what string, source int, tile long, start long, end long, current boolean, figures array<bigint>, hour long, latencies binary"
"""Kinds of rows. "stretch": from start, records per verdict of COUNTED. "drill": a piece to be judged by content, with the figures of its
receipt if it is exactly one's. "range": what all these pieces make; "other", "unstamped": from the first to the last of them of another
transform, without lineage. "total": of a source partition, dead letters and outputs per topic that receipts claim, then that were found of
what they claim. "hour": see latency.by_hour."""
CLAIMED = (Verdict.CLAIMED, Verdict.EXPIRED)
OTHERS = 4
RANGES = 200
"""Per source partition, that are drilled into one by one; more are read as one."""


def time_of_source() -> Column:
    """Milliseconds since the epoch, -1: none."""
    return F.unix_millis("timestamp")


def key_of_source() -> Column:
    """64 bits of the key, null: none. Two keys with the same are taken for one."""
    return F.when(F.col("key").isNotNull(), F.xxhash64("key"))


def lineage_of_output() -> Column:
    """The lineage header's value. The worker puts it last; another place is looked for only where it is not."""
    last = F.try_element_at("headers", F.lit(-1))
    named = F.filter("headers", lambda header: header["key"] == LINEAGE_HEADER)
    value = F.when(last["key"] == LINEAGE_HEADER, F.coalesce(last["value"], F.lit(b"")))
    other = F.try_element_at(named, F.lit(-1))
    return value.otherwise(F.when(other["key"].isNotNull(), F.coalesce(other["value"], F.lit(b""))))


def lineage_of_dead_letter() -> Column:
    """The source of a dead letter in the form of an output's lineage, index 0; null without the headers for it."""

    def last(name: str) -> Column:
        return F.try_element_at(F.filter("headers", lambda header: header["key"] == name), F.lit(-1))["value"]

    parts = [last(f"reckon.source.{name}").cast("string") for name in ("topic", "partition", "offset")]
    return F.concat(*(x for part in parts for x in (part, F.lit("/"))), F.lit("0")).cast("binary")


def scan(context: Context, plan: Plan, sample: Sample) -> DataFrame:
    """One pass over everything: rows as in scan.SCANNED. Outputs without lineage are left out: of them it can tell nothing."""
    parts = []
    ranges = plan.source_ranges()
    # Where a sample is drawn anyway, a slice of it may be cut in two; else order within keys is looked at as a whole.
    splits = context.spark.sparkContext.defaultParallelism if sample.shift else 0
    for topic in plan.source_topics:
        of_topic = {p: r for p, r in ranges.items() if p[0] == topic}
        records = read_topic(context.spark, context.kafka, of_topic, splits=splits, headers=False)
        columns = records.select("partition", "offset", time_of_source().alias("time_ms"), key_of_source().alias("key"))
        parts.append(in_batches(columns, SourceScan(plan, topic, sample), SCANNED))
    outputs = enumerate(plan.outputs) if context.lineage else ()
    for number, topic in [*outputs, (DEAD_LETTERS, plan.dead_letters)]:
        records = read_topic(context.spark, context.kafka, output_ranges(context, topic))
        lineage = lineage_of_dead_letter() if number == DEAD_LETTERS else lineage_of_output()
        columns = records.select("partition", "offset", lineage.alias("lineage"))
        parts.append(in_batches(columns, OutputScan(plan, number), SCANNED))
    return reduce(lambda one, other: one.unionByName(other), parts)


def judge_records(plan: Plan, tiles: DataFrame, scanned: DataFrame, *, everything: bool) -> DataFrame:
    """Rows as in JUDGED. `tiles`: receipts.TILES; `everything`: drill into all there is."""
    pieces = _pieces(plan, tiles)
    bits = scanned.where(f"what IN ({int(What.BITS)}, {int(What.TIMES)})").select(
        "source", "bucket", F.col("topic").alias("slot"), "index", "once", "twice", "times"
    )
    both = pieces.unionByName(bits, allowMissingColumns=True)
    summed = in_groups(both.groupBy("source", "bucket"), _summer(len(plan.outputs)), SUMMED)
    return in_groups(summed.groupBy("source"), _balancer(plan, everything), JUDGED)


def judge_offsets(plan: Plan, tiles: DataFrame) -> DataFrame:
    """Rows "stretch" as in JUDGED, with records per verdict of CLAIMED: what receipts say, nothing else looked at."""

    def judge(table: pa.Table) -> pa.Table:
        table = table.sort_by([("tile", "ascending"), ("start", "ascending")])
        source = table["source"][0].as_py()
        pieces = read_pieces(table)
        gone = pieces.kind == "expired"
        known = np.isin(pieces.kind, ["claim", "overlap", "part", "unstamped"])
        # Offsets, not records: no receipt says how many, and nobody has read them.
        unproven = np.where(pieces.kind == "unproven", pieces.end - pieces.start, 0)
        counts = np.stack([np.where(known, claimed(pieces), 0), np.where(gone, expired(pieces), unproven)], axis=1)
        return _judged_table(_stretch_rows(plan, source, pieces, counts))

    return in_groups(_pieces(plan, tiles).groupBy("source"), judge, JUDGED)


def _pieces(plan: Plan, tiles: DataFrame) -> DataFrame:
    numbers = {f"{topic}/{partition}": number for number, (topic, partition) in enumerate(plan.sources)}
    number = F.create_map(*(F.lit(x) for pair in numbers.items() for x in pair))
    return (
        tiles.where("what = 'piece'")
        .withColumn("source", number[F.concat_ws("/", "topic", F.col("partition").cast("string"))])
        .select("source", "bucket", "tile", "kind", "start", "end", "current", "time_ms", "figures")
    )


def _stretch_rows(plan: Plan, source: int, pieces: Pieces, counts: Any) -> list[tuple[Any, ...]]:
    """`counts`: a row per piece, a column per verdict."""
    step = width(plan.begin[source], plan.committed[source])
    stretch, where = np.unique(pieces.start // step, return_inverse=True)
    sums = np.zeros((len(stretch), counts.shape[1]), np.int64)
    np.add.at(sums, where, counts)
    starts = np.maximum(stretch * step, plan.begin[source])
    return [("stretch", source, -1, int(start), 0, True, one.tolist()) for start, one in zip(starts, sums, strict=True)]


def _judged_table(rows: list[tuple[Any, ...]], hours: Mapping[int, bytes] | None = None) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    types = [pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.bool_(), pa.list_(pa.int64())]
    names = ["what", "source", "tile", "start", "end", "current", "figures"]
    table = pa.table([pa.array(x, t) for x, t in zip(columns, types, strict=True)], names=names)
    return _with_hours(table, hours or {}, what="hour")


def _with_hours(rows: pa.Table, hours: Mapping[int, bytes], **columns: Any) -> pa.Table:
    """The rows, and a row for each hour: its latencies, and these values in other columns."""
    empty = [pa.nulls(len(rows), pa.int64()), pa.nulls(len(rows), pa.binary())]
    rows = rows.append_column("hour", empty[0]).append_column("latencies", empty[1])
    if not hours:
        return rows
    made = {"hour": pa.array(hours.keys(), pa.int64()), "latencies": pa.array(hours.values(), pa.binary())}
    made |= {name: pa.array([value] * len(hours), rows.schema.field(name).type) for name, value in columns.items()}
    others = (made.get(field.name, pa.nulls(len(hours), field.type)) for field in rows.schema)
    return pa.concat_tables([rows, pa.table(list(others), schema=rows.schema)])


def _summer(topics: int) -> Callable[[pa.Table], pa.Table]:
    def sum_bucket(table: pa.Table) -> pa.Table:
        rows = table.filter(pa.compute.is_valid(table["slot"]))
        parts: dict[Slot, list[tuple[bytes, bytes | None]]] = {}
        columns = (rows[name].to_pylist() for name in ("slot", "index", "once", "twice"))
        for topic, index, once, twice in zip(*columns, strict=True):
            if once is not None:
                parts.setdefault(Slot(topic, index), []).append((once, twice))
        source, bucket = table["source"][0].as_py(), table["bucket"][0].as_py()
        table = table.filter(pa.compute.is_valid(table["tile"])).sort_by(
            [("tile", "ascending"), ("start", "ascending")]
        )
        pieces = read_pieces(table)
        found = find({slot: merge(packed) for slot, packed in parts.items()}, pieces, topics)
        others = np.stack([found.delivered, found.dead, found.filtered, found.suspect], axis=1)
        summed = table.select(["source", "tile", "kind", "start", "end", "current", "figures"]).append_column(
            "found", lists(np.concatenate([found.figures, others], axis=1))
        )
        times = rows["times"].drop_null().to_pylist()
        hours = by_hour(bucket, times, pieces.start, pieces.end, table["time_ms"].to_numpy())
        return _with_hours(summed, hours, source=source)

    return sum_bucket


def _balancer(plan: Plan, everything: bool) -> Callable[[pa.Table], pa.Table]:  # noqa: FBT001 - private
    def judge(table: pa.Table) -> pa.Table:
        hours = table.filter(pa.compute.is_valid(table["hour"]))
        table = table.filter(pa.compute.is_valid(table["tile"]))
        table = table.sort_by([("tile", "ascending"), ("start", "ascending")])
        source = table["source"][0].as_py()
        pieces = read_pieces(table)
        numbers = matrix(table["found"])
        found = Found(numbers[:, :-OTHERS], *(numbers[:, column - OTHERS] for column in range(OTHERS)))
        balanced = balance(pieces, found, everything=everything)
        counts = np.stack([balanced.counts[verdict] for verdict in COUNTED], axis=1)
        rows = _stretch_rows(plan, source, pieces, counts)
        rows += _drills(source, pieces, balanced.drill)
        single = np.unique(pieces.tile, return_index=True)[1]
        claims = pieces.figures[single][pieces.kind[single] == "claim"].sum(axis=0)
        held = found.figures[pieces.kind == "claim"].sum(axis=0)
        rows.append(("total", source, -1, 0, 0, True, [*claims[2:-1].tolist(), *held[2:-1].tolist()]))
        made: dict[int, bytes] = {}
        for hour, latencies in zip(hours["hour"].to_pylist(), hours["latencies"].to_pylist(), strict=True):
            made[hour] = made.get(hour, b"") + latencies
        return _judged_table(rows, made)

    return judge


def _drills(source: int, pieces: Pieces, drill: Any) -> list[tuple[Any, ...]]:
    """The pieces to drill into, the ranges that they make together, and those of them that another transform wrote."""
    claim = pieces.kind == "claim"
    rows: list[tuple[Any, ...]] = [
        (
            "drill",
            source,
            int(pieces.tile[at]),
            int(pieces.start[at]),
            int(pieces.end[at]),
            bool(pieces.current[at]),
            pieces.figures[at].tolist() if claim[at] else [],
        )
        for at in np.flatnonzero(drill)
    ]
    ranges = merged(pieces.start[drill].tolist(), pieces.end[drill].tolist())
    if len(ranges) > RANGES:
        ranges = [(ranges[0][0], ranges[-1][1])]  # more is read than is judged
    rows += [("range", source, -1, low, high, True, []) for low, high in ranges]
    unstamped = pieces.kind == "unstamped"
    for what, other in (("other", drill & ~pieces.current & ~unstamped), ("unstamped", drill & unstamped)):
        if other.any():
            span = int(pieces.start[other].min()), int(pieces.end[other].max())
            rows.append((what, source, -1, *span, False, []))
    return rows


def read_pieces(table: pa.Table) -> Pieces:
    return Pieces(
        table["tile"].to_numpy(),
        np.array(table["kind"].to_pylist(), object),
        table["start"].to_numpy(),
        table["end"].to_numpy(),
        table["current"].to_numpy().astype(np.bool_),
        matrix(table["figures"]),
    )


def matrix(column: Any) -> Any:
    """A column of lists of equal length -> rows and columns."""
    if not len(column):
        return np.zeros((0, 4), np.int64)
    values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), -1)


def lists(numbers: Any) -> pa.Array:
    """Rows and columns -> a column of lists."""
    rows, columns = numbers.shape
    offsets = np.arange(0, rows * columns + 1, columns, dtype=np.int32)[: rows + 1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(numbers, np.int64).reshape(-1)))
