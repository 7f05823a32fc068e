"""Depth offsets: receipts as a table, and their tiles per source partition.

Spark sorts receipts to their source partitions; the tiling of one partition is numpy (tiling.py). Memory: the receipts of one source
partition at a time, some 100 bytes each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.bitmaps import SHIFT
from spark_batch.context import Begin
from spark_batch.model import Kind
from spark_batch.plan import output_ranges, removed
from spark_batch.tasks import in_groups
from spark_batch.tiling import Bounds, Claims, RangeFinding, Tile, begin_of, pieces, tile, width
from spark_batch.topics import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from spark_batch.context import Context
    from spark_batch.model import Partition
    from spark_batch.tiling import Tiles

_RECEIPT = (
    "schema int, pipeline string, transactional_id string, incarnation string, sequence long, transform string, time_ms long, "
    "lineage boolean, partitions array<struct<topic: string, partition: int, `from`: long, `to`: long, read: long, filtered: long, "
    "dead_lettered: long, written: map<string, long>, topic_id: string>>"
)
_SCHEMA_VERSION = 1
LOG_APPEND_TIME = 1
"""Spark's, and Kafka's, number of a timestamp that the broker gave."""
SKEW_MS = 60_000
"""By how much workers' clocks may differ where the topic has their times: receipts are ordered by these, to this much."""
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Kafka's id of 16 zero bytes: from a broker without topic ids (KIP-516)."""

TILES = (
    "what string, topic string, partition int, tile long, kind string, start long, end long, bucket long, current boolean, "
    "time_ms long, figures array<bigint>, detail string"
)
"""Four kinds of rows. "piece": a tile, or what of it lies in one bucket of bitmaps or stretch; "finding"; "late": a finding that holds
also where the group's offset is in doubt; "summary": one per source partition, start = where judging begins, end = the lowest claim or -1,
bucket = the highest claim or -1, tile = records read, figures = findings, late ones among them; offsets in tiles UNPROVEN; receipts without
the id of the source topic."""
_TILES_ARROW = pa.schema(
    [
        ("what", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("tile", pa.int64()),
        ("kind", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("bucket", pa.int64()),
        ("current", pa.bool_()),
        ("time_ms", pa.int64()),
        ("figures", pa.list_(pa.int64())),
        ("detail", pa.string()),
    ]
)


def receipt_entries(context: Context) -> DataFrame:
    """One row per entry of `partitions[]` of this pipeline's receipts: the receipt's fields, at_partition and at_offset (where it stands),
    unstamped (see tiling.Claims),
    and topic, partition, from, to, read, filtered, dead_lettered, written, topic_id of the entry. In flight ones are there, too.

    Its time_ms is the broker's where the topic has the broker's timestamps, as those have that workers create: one clock for all.
    """
    spec = context.loaded.spec
    records = read_topic(context.spark, context.kafka, output_ranges(context, spec.receipts_topic), headers=False)
    receipt = F.from_json(F.col("value").cast("string"), _RECEIPT)
    entries = records.select(
        F.col("partition").alias("at_partition"),
        F.col("offset").alias("at_offset"),
        F.when(F.col("timestampType") == LOG_APPEND_TIME, F.unix_millis("timestamp")).alias("appended_ms"),
        receipt.alias("receipt"),
    ).where(f"receipt.schema = {_SCHEMA_VERSION}")
    return (
        entries.where(F.col("receipt.pipeline") == spec.name)
        .select("at_partition", "at_offset", "appended_ms", "receipt.*", F.explode("receipt.partitions").alias("entry"))
        .withColumn("time_ms", F.coalesce("appended_ms", "time_ms"))
        .withColumn("unstamped", F.lit(context.lineage) & ~F.coalesce("lineage", F.lit(True)))
        .drop("schema", "pipeline", "partitions", "lineage", "appended_ms")
        .select("*", "entry.*")
        .drop("entry")
    )


def tiles(context: Context, entries: DataFrame, expired_until_ms: int) -> DataFrame:
    """Rows as in TILES, for every audited partition, with or without receipts. `expired_until_ms`: see tiling.Bounds."""
    outputs = list(context.loaded.transform.topics)
    known = F.array(
        *(F.coalesce(F.try_element_at("written", F.lit(topic)), F.lit(0).cast("long")) for topic in outputs)
    )
    all_written = F.aggregate(F.map_values("written"), F.lit(0).cast("long"), lambda total, one: total + one)
    known_written = F.aggregate(known, F.lit(0).cast("long"), lambda total, one: total + one)
    figures = F.concat(
        F.array("read", "filtered", "dead_lettered"), known, F.array(F.coalesce(all_written, F.lit(0)) - known_written)
    )
    claims = entries.select(
        "topic",
        "partition",
        "from",
        "to",
        figures.alias("figures"),
        "time_ms",
        "transform",
        "unstamped",
        "topic_id",
        "at_partition",
        "at_offset",
    )
    both = claims.unionByName(_seeds(context), allowMissingColumns=True)
    return in_groups(both.groupBy("topic", "partition"), _tiler(context, expired_until_ms), TILES)


def _seeds(context: Context) -> DataFrame:
    """Columns topic, partition: every audited source partition. Literals, because a table of Python's objects costs a job of its own."""
    pairs = (F.struct(F.lit(topic).alias("topic"), F.lit(n).alias("partition")) for topic, n in sorted(context.audited))
    rows = F.array(*pairs).cast("array<struct<topic: string, partition: int>>")
    return context.spark.range(1, numPartitions=1).select(F.inline(rows))


def truncated(context: Context) -> bool:
    """Whether receipts have expired that no audit has seen."""
    return bool(removed(context, [context.loaded.spec.receipts_topic]))


def expired_until_ms(context: Context, entries: DataFrame) -> int:
    """Receipts written before this may have expired: the latest of the times with which truncated receipts partitions begin; -1: none are
    truncated, or former audits have seen what they held; of partitions that begin where the last one ended they have, unless receipts
    expired since.
    """
    receipts = context.loaded.spec.receipts_topic
    gone = [number for _, number in removed(context, [receipts])]
    if not gone and any(begin is not Begin.CONTINUED for begin in context.begin.values()):
        gone = [n for (name, n), bounds in context.cut.outputs.items() if name == receipts and bounds.start > 0]
    if not gone:
        return -1
    first = entries.where(F.col("at_partition").isin(gone)).groupBy("at_partition").agg(F.min("time_ms").alias("first"))
    rows = first.collect()
    # A partition that holds none any more may have held any.
    return max(row["first"] for row in rows) + SKEW_MS if len(rows) == len(gone) else 2**62


def _tiler(context: Context, until_ms: int) -> Callable[[pa.Table], pa.Table]:
    """The function that makes the tiles of one source partition; what it captures goes to the executors."""
    audited, starts = dict(context.audited), dict(context.cut.source_start)
    ids, digest = dict(context.cut.topic_ids), context.loaded.transform.digest
    begins, marks = dict(context.begin), dict(context.marks)
    receipts = context.loaded.spec.receipts_topic
    seen = {partition: end for (topic, partition), end in context.seen.items() if topic == receipts}
    all_seen = not truncated(context)
    # Where receipts have expired, nobody knows where a group began.
    earliest = context.loaded.spec.source.start == "earliest" or until_ms >= 0
    columns = 3 + len(context.loaded.transform.topics) + 1

    def make(table: pa.Table) -> pa.Table:
        where: Partition = (table["topic"][0].as_py(), table["partition"][0].as_py())
        rows = _Rows(where, columns)
        table = table.filter(pa.compute.is_valid(table["from"]))
        foreign, nameless = _of_other_topic(table, ids.get(where[0]))
        lowest = int(table["from"].to_numpy().min()) if len(table) else -1
        highest = int(table["to"].to_numpy().max()) if len(table) else -1
        bounds = audited.get(where)
        if foreign:
            rows.finding(Kind.TOPIC_RECREATED, lowest, highest, foreign)
        late = [] if foreign else _late(table, seen, marks.get(where, 0))
        for found in late:
            rows.finding(found.kind, found.start, found.end, found.detail, what="late")
        if bounds is None:
            rows.summary(-1, lowest, highest, 0, findings=len(late))
            return rows.table()
        log_start = starts.get(where, 0)
        ends = table["to"].to_numpy()
        begin = begin_of(begins[where], bounds, table["from"].to_numpy(), ends, earliest=earliest)
        read = table["figures"].combine_chunks().flatten().to_numpy(zero_copy_only=False)[::columns]
        read_below = int(read[ends <= bounds.end].sum())
        if foreign:
            rows.summary(begin, lowest, highest, read_below, nameless=nameless)
            return rows.table()
        claims = Claims(
            table["from"].to_numpy(),
            table["to"].to_numpy(),
            table["figures"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, columns),
            table["time_ms"].to_numpy(),
            table["transform"].to_numpy(),
            table["unstamped"].to_numpy(),
        )
        expired_ms = -1 if all_seen and begins[where] is Begin.CONTINUED else until_ms
        made, findings = tile(claims, Bounds(begin, bounds.end, log_start, expired_ms, digest))
        unproven = made.offsets_of(Tile.UNPROVEN)
        count = len(late) + len(findings)
        rows.summary(begin, lowest, highest, read_below, findings=count, unproven=unproven, nameless=nameless)
        rows.pieces(made, width(begin, bounds.end))
        for found in findings:
            rows.finding(found.kind, found.start, found.end, found.detail)
        return rows.table()

    return make


def _late(table: pa.Table, seen: Mapping[int, int], mark: int) -> list[RangeFinding]:
    """Receipts that stand behind all that the last audit has read, and claim what was claimed then: offsets were set back in between."""
    columns = (table[name].to_pylist() for name in ("from", "to", "at_partition", "at_offset"))
    detail = "a receipt that was written after the last audit claims these offsets again"
    return [
        RangeFinding(Kind.RECEIPT_OVERLAP, low, min(high, mark), detail)
        for low, high, partition, offset in zip(*columns, strict=True)
        if low < mark and low < high and offset >= seen.get(partition, offset + 1)
    ]


def _of_other_topic(table: pa.Table, topic_id: str | None) -> tuple[str, int]:
    """(a sentence where receipts are of a topic of the same name that is gone (A10), receipts of which it cannot be known)."""
    ids = [each for each in table["topic_id"].to_pylist() if each and each != _NO_ID]
    if topic_id in (None, _NO_ID):
        return "", len(table)
    others = ", ".join(sorted(set(ids) - {topic_id}))
    told = f"receipts are of a topic with id {others}, which is gone; the topic there is now has id {topic_id}"
    return told if others else "", len(table) - len(ids)


class _Rows:
    """Collects the rows of one source partition."""

    def __init__(self, where: Partition, columns: int) -> None:
        self._where = where
        self._columns = columns
        self._parts: list[pa.Table] = []

    def table(self) -> pa.Table:
        return pa.concat_tables(self._parts)

    def summary(
        self,
        begin: int,
        lowest: int,
        highest: int,
        read: int,
        *,
        findings: int = 0,
        unproven: int = 0,
        nameless: int = 0,
    ) -> None:
        figures = np.zeros((1, self._columns), np.int64)
        figures[0, :3] = findings, unproven, nameless
        self._add("summary", figures, tile=[read], start=[begin], end=[lowest], bucket=[highest])

    def finding(self, kind: Kind, start: int, end: int, detail: str, what: str = "finding") -> None:
        figures = np.zeros((1, self._columns), np.int64)
        self._add(what, figures, kind=[str(kind)], start=[start], end=[end], detail=[detail])

    def pieces(self, tiles: Tiles, step: int) -> None:
        which, low, high = pieces(tiles.start, tiles.end, step)
        kinds = [str(tiles.kind[tile]) for tile in which]
        columns = {"tile": which, "kind": kinds, "start": low, "end": high, "bucket": low >> SHIFT}
        columns |= {"current": tiles.current[which], "time_ms": tiles.time_ms[which]}
        self._add("piece", tiles.figures[which], **columns)

    def _add(self, what: str, figures: NDArray[np.int64], **columns: Any) -> None:
        """Rows with these columns; the others are null."""
        count = len(figures)
        same = {"what": what, "topic": self._where[0], "partition": self._where[1]}
        offsets = np.arange(0, (count + 1) * self._columns, self._columns, dtype=np.int32)
        values = pa.array(np.ascontiguousarray(figures).reshape(-1))
        arrays = {name: pa.array([value] * count) for name, value in same.items()}
        arrays |= {name: pa.array(column) for name, column in columns.items()}
        arrays["figures"] = pa.ListArray.from_arrays(pa.array(offsets), values)
        made = [
            arrays[field.name].cast(field.type) if field.name in arrays else pa.nulls(count, field.type)
            for field in _TILES_ARROW
        ]
        self._parts.append(pa.table(made, schema=_TILES_ARROW))
