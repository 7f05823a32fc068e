"""From a record's timestamp to the commit of what it became, per hour; and records that came late within their key.

Outputs keep the source's timestamp, so the other end of the interval is the receipt's `time_ms`: taken by the worker's clock just
before the commit. The commit itself (some milliseconds) is not in the figure, and where the producer's clock runs ahead of the worker's
it can be negative: it is told as it is.

One pass over the source and two small jobs over what is kept of it. Beyond `SAMPLE` records, a share is kept that a hash chooses: the
same records in every run. Latency keeps records by the hash of their offset; disorder keeps whole keys, because a key of which some
records are left out looks more orderly than it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.model import Disorder, LatencyRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

SAMPLE = 2_000_000
"""Records that latency and disorder are computed over, each; about 100 MB of (offset, timestamp, hash) in the whole cluster."""

_BUCKET = 4096
"""Offsets per bucket of the range join. A record is compared with the receipts that touch its bucket: 41 where a transaction holds 100
records. With the bitmaps' 32,768 it would be 328; with fewer, receipts of 50,000 records would be copied oftener."""
_HOUR_MS = 3_600_000
_HASH_STEPS = 1_000_000
_ACCURACY = 10_000
"""Of `percentile_approx`: the rank of what it returns is off by a ten-thousandth of the hour's records at most."""


def measure(
    source: DataFrame, receipts: DataFrame, records: int
) -> tuple[tuple[LatencyRow, ...], tuple[Disorder, ...]]:
    """Latency per hour and disorder per topic, reading `source` once.

    `source`: columns topic, partition, offset, timestamp, key as Spark's Kafka source gives them. `receipts`: one row per entry of
    `partitions[]`, columns topic, partition, from, to, time_ms. `records`: how many `source` holds, roughly: decides the share kept.
    """
    rows = sampled(source, records).persist()
    try:
        return latency(rows, receipts), disorder(rows)
    finally:
        rows.unpersist()


def sampled(source: DataFrame, records: int, sample: int = SAMPLE) -> DataFrame:
    """What is kept of the source: topic, partition, offset, source_ms, key_hash (null without a key), by_offset, by_key (what chose it).

    Records without a timestamp (-1) are left out. Two keys with one 64-bit hash are taken for one.
    """
    steps = min(_HASH_STEPS, sample * _HASH_STEPS // max(records, 1))
    rows = source.select(
        "topic",
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("source_ms"),
        F.when(F.col("key").isNotNull(), F.xxhash64("key")).alias("key_hash"),
    ).where("source_ms >= 0")
    return (
        rows.withColumn("by_offset", _chosen(F.xxhash64("topic", "partition", "offset"), steps))
        .withColumn("by_key", _chosen(F.xxhash64("key_hash"), steps) & F.col("key_hash").isNotNull())
        .where("by_offset OR by_key")
    )


def latency(rows: DataFrame, receipts: DataFrame) -> tuple[LatencyRow, ...]:
    """Percentiles per hour of source timestamps; `rows` of `sampled`, `receipts` as for `measure`.

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
        rows.where("by_offset")
        .withColumn("bucket", _bucket(F.col("offset")))
        .join(spread, where)
        .where((F.col("offset") >= F.col("from")) & (F.col("offset") < F.col("to")))
    )
    percentiles = F.percentile_approx(F.col("time_ms") - F.col("source_ms"), [0.5, 0.95, 0.99], _ACCURACY)
    hours = joined.groupBy((F.col("source_ms") - F.col("source_ms") % _HOUR_MS).alias("hour_ms")).agg(
        F.count("*").alias("records"), percentiles.alias("ms")
    )
    return tuple(_latency_row(*row) for row in hours.orderBy("hour_ms").collect())


def disorder(rows: DataFrame) -> tuple[Disorder, ...]:
    """Per source topic, records with a lower timestamp than an earlier one of their key in their partition; `rows` of `sampled`.

    A repartitioned key (its partition changed) is looked at in each partition by itself: there is no order between partitions.
    """
    before = (
        Window.partitionBy("topic", "partition", "key_hash")
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    late = F.greatest(F.max("source_ms").over(before) - F.col("source_ms"), F.lit(0))
    topics = (
        rows.where("by_key")
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


def _chosen(hashed: Column, steps: int) -> Column:
    return F.pmod(hashed, F.lit(_HASH_STEPS)) < steps
