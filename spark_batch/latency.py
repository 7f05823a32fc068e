"""From a record's timestamp to the commit of what it became, per hour; and records that came late within their key.

Outputs keep the source's timestamp, so the other end of the interval is the receipt's `time_ms`: taken by the worker's clock just
before the commit. The commit itself (some milliseconds) is not in the figure, and where the producer's clock runs ahead of the worker's
it can be negative: it is told as it is.

Beyond `SAMPLE` offsets only slices of the source are read, the same in every run. Reading is what an audit spends its time on: a sample
drawn from all records (by a hash, say) would cost a second pass over the source and save little.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.model import Disorder, LatencyRow, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from spark_batch.model import Partition

SAMPLE = 1_000_000
"""Offsets that are looked at: about 50 MB in the whole cluster, some seconds of reading."""
_SLICES = 12
"""Per partition. They lie elsewhere in each partition, so that two partitions look into each hour of a day."""
_TASKS = 600
"""Slices in all partitions, roughly: each is a task of Spark's, and costs some ten milliseconds however short."""
_GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, spread evenly however many there are."""
_BUCKET = 4096
"""Offsets per bucket of the range join. A record is compared with the receipts that touch its bucket: 41 where a transaction holds 100
records. With the bitmaps' 32,768 it would be 328; with fewer, receipts of 50,000 records would be copied oftener."""
_HOUR_MS = 3_600_000
_ACCURACY = 10_000
"""Of `percentile_approx`: the rank of what it returns is off by a ten-thousandth of the hour's records at most."""


def measure(
    read: Callable[[Mapping[Partition, Range]], DataFrame], ranges: Mapping[Partition, Range], receipts: DataFrame
) -> tuple[tuple[LatencyRow, ...], tuple[Disorder, ...]]:
    """Latency per hour and disorder per topic of the source records in `ranges`, reading each of them at most once.

    `read` gives a topic's records as topics.read_topic does. `receipts`: one row per entry of `partitions[]`, columns topic, partition,
    from, to, time_ms. Both results are empty where there is nothing to read.
    """
    parts = [timed(read(part), number) for number, part in enumerate(slices(ranges))]
    if not parts:
        return (), ()
    rows = reduce(lambda one, other: one.union(other), parts).persist()
    try:
        return latency(rows, receipts), disorder(rows)
    finally:
        rows.unpersist()


def slices(ranges: Mapping[Partition, Range], sample: int = SAMPLE) -> tuple[dict[Partition, Range], ...]:
    """What is read of `ranges`: all of it up to `sample` offsets, else equally long slices of each partition, spread evenly."""
    wanted = {partition: bounds for partition, bounds in sorted(ranges.items()) if bounds.start < bounds.end}
    total = sum(bounds.end - bounds.start for bounds in wanted.values())
    if total <= sample:
        return (wanted,) if wanted else ()
    count = max(1, min(_SLICES, _TASKS // len(wanted)))
    parts: tuple[dict[Partition, Range], ...] = tuple({} for _ in range(count))
    for index, (partition, bounds) in enumerate(wanted.items()):
        step = (bounds.end - bounds.start) / count
        length = step * sample / total
        shift = (index + 1) * _GOLDEN % 1 * (step - length)
        for number, part in enumerate(parts):
            first = bounds.start + int(number * step + shift)
            part[partition] = Range(first, min(first + max(1, int(length)), bounds.end))
    return parts


def timed(source: DataFrame, part: int = 0) -> DataFrame:
    """What is needed of source records: part, topic, partition, offset, source_ms, key_hash (null without a key).

    Records without a timestamp (-1) are left out. Two keys with one 64-bit hash are taken for one.
    """
    return source.select(
        F.lit(part).alias("part"),
        "topic",
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("source_ms"),
        F.when(F.col("key").isNotNull(), F.xxhash64("key")).alias("key_hash"),
    ).where("source_ms >= 0")


def latency(rows: DataFrame, receipts: DataFrame) -> tuple[LatencyRow, ...]:
    """Percentiles per hour of source timestamps; `rows` of `timed`, `receipts` as for `measure`.

    Records that no receipt covers are left out.
    """
    where = ["topic", "partition", "bucket"]
    spread = receipts.where(F.col("from") < F.col("to")).select(
        "topic",
        "partition",
        "from",
        "to",
        "time_ms",
        F.explode(F.sequence(_bucket(F.col("from")), _bucket(F.col("to") - 1))).alias("bucket"),
    )
    joined = (
        rows.withColumn("bucket", _bucket(F.col("offset")))
        .join(spread, where)
        .where((F.col("offset") >= F.col("from")) & (F.col("offset") < F.col("to")))
    )
    percentiles = F.percentile_approx(F.col("time_ms") - F.col("source_ms"), [0.5, 0.95, 0.99], _ACCURACY)
    hours = joined.groupBy((F.col("source_ms") - F.col("source_ms") % _HOUR_MS).alias("hour_ms")).agg(
        F.count("*").alias("records"), percentiles.alias("ms")
    )
    return tuple(_latency_row(*row) for row in hours.orderBy("hour_ms").collect())


def disorder(rows: DataFrame) -> tuple[Disorder, ...]:
    """Per source topic, records with a lower timestamp than an earlier one of their key in their partition; `rows` of `timed`.

    Where slices were read, earlier means earlier in the slice. A key that went to another partition is looked at in each by itself:
    there is no order between partitions.
    """
    before = (
        Window.partitionBy("part", "topic", "partition", "key_hash")
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    late = F.greatest(F.max("source_ms").over(before) - F.col("source_ms"), F.lit(0))
    topics = (
        rows.where(F.col("key_hash").isNotNull())
        .select("topic", late.alias("late_ms"))
        .groupBy("topic")
        .agg(F.count("*"), F.count_if(F.col("late_ms") > 0), F.max("late_ms"))
    )
    return tuple(Disorder(*row) for row in topics.orderBy("topic").collect())


def _latency_row(hour_ms: int, records: int, percentiles: Sequence[int]) -> LatencyRow:
    p50, p95, p99 = percentiles
    return LatencyRow(hour_ms, records, float(p50), float(p95), float(p99))


def _bucket(offset: Column) -> Column:
    return F.shiftright(offset, _BUCKET.bit_length() - 1)
