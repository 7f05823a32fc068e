"""Latency and disorder, on small tables whose figures are known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spark_batch import latency as module
from spark_batch.latency import disorder, latency, measure, sampled
from spark_batch.model import Disorder, LatencyRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest
    from pyspark.sql import DataFrame, SparkSession

HOUR = 3_600_000
T0 = 1_760_000_400_000 // HOUR * HOUR
"""A full hour."""

Source = tuple[str, int, int, int, bytes | None]
"""topic, partition, offset, timestamp in ms, key"""


def source_of(spark: SparkSession, rows: Sequence[Source]) -> DataFrame:
    values = [
        (t, p, o, datetime.fromtimestamp(ms / 1000, UTC), None if k is None else bytearray(k))
        for t, p, o, ms, k in rows
    ]
    return spark.createDataFrame(values, "topic string, partition int, offset long, timestamp timestamp, key binary")


def receipts_of(spark: SparkSession, rows: list[tuple[str, int, int, int, int]]) -> DataFrame:
    return spark.createDataFrame(rows, "topic string, partition int, `from` long, `to` long, time_ms long")


def test_the_latency_of_a_record_ends_with_its_receipt(spark: SparkSession) -> None:
    """Two receipts of one partition, one of another; percentiles are values that occur; hours are those of the source's timestamps."""
    source = source_of(
        spark,
        [("in", 0, o, T0 + o, b"k") for o in range(100)]
        + [("in", 0, o, T0 + HOUR, b"k") for o in range(100, 110)]
        + [("in", 1, 5, T0 + HOUR + 1, b"k")],
    )
    receipts = receipts_of(
        spark,
        [("in", 0, 0, 100, T0 + 100), ("in", 0, 100, 110, T0 + HOUR + 40), ("in", 1, 0, 6, T0 + HOUR + 901)],
    )

    found = latency(sampled(source, 111), receipts)

    expected = (LatencyRow(T0, 100, 50.0, 95.0, 99.0), LatencyRow(T0 + HOUR, 11, 40.0, 900.0, 900.0))
    # Latencies of the first hour are 1..100, of the second ten times 40 and once 900.
    assert expected == found


def test_a_receipt_may_span_many_buckets_and_a_bucket_hold_many_receipts(spark: SparkSession) -> None:
    """Each record meets its own receipt once, whatever the ranges look like; receipts of markers only (from == to) match nothing."""
    offsets = [0, 1, 4095, 4096, 4097, 50_000, 99_999, 100_000]
    source = source_of(spark, [("in", 0, o, T0, None) for o in offsets])
    receipts = receipts_of(
        spark,
        [
            ("in", 0, 0, 1, T0 + 10),
            ("in", 0, 1, 4096, T0 + 20),
            ("in", 0, 4096, 100_000, T0 + 30),
            ("in", 0, 7, 7, T0 + 999),
        ],
    )

    found = latency(sampled(source, 8), receipts)

    assert (LatencyRow(T0, 7, 30.0, 30.0, 30.0),) == found


def test_a_clock_that_runs_ahead_gives_negative_latency_and_no_timestamp_gives_none(spark: SparkSession) -> None:
    """The figure is told as it is; a record without a timestamp (-1) has no latency."""
    source = source_of(spark, [("in", 0, 0, T0 + 500, None), ("in", 0, 1, -1, None)])

    found = latency(sampled(source, 2), receipts_of(spark, [("in", 0, 0, 2, T0)]))

    assert (LatencyRow(T0, 1, -500.0, -500.0, -500.0),) == found


def test_late_is_what_is_earlier_than_a_record_before_it_of_the_same_key_and_partition(spark: SparkSession) -> None:
    """The running maximum counts, not the neighbour; other keys, other partitions and records without a key do not."""
    source = source_of(
        spark,
        [
            ("a", 0, 0, T0 + 100, b"x"),
            ("a", 0, 1, T0 + 50, b"y"),  # first of its key
            ("a", 0, 2, T0 + 70, b"x"),  # late by 30
            ("a", 0, 3, T0 + 90, b"x"),  # later than its neighbour, still late by 10
            ("a", 0, 4, T0 + 100, b"x"),  # equal is in order
            ("a", 1, 0, T0 + 1, b"x"),  # another partition
            ("a", 0, 5, T0 + 10, None),
            ("a", 0, 6, T0 + 5, None),
            ("b", 0, 0, T0, b"x"),
        ],
    )

    found = disorder(sampled(source, 9))

    assert (Disorder("a", 6, 2, 30), Disorder("b", 1, 0, 0)) == found


def test_a_sample_is_the_same_every_time_and_keeps_keys_whole(spark: SparkSession) -> None:
    """4,000 records of 400 keys, one in four wanted: the same records twice; of each key all records or none for disorder."""
    rows: list[Source] = [("in", 0, o, T0 + o, b"%d" % (o % 400)) for o in range(4000)]
    source = source_of(spark, rows)

    first, second = (sampled(source.repartition(n), 4000, sample=1000).orderBy("offset").collect() for n in (1, 7))

    assert first == second
    by_offset = sum(row.by_offset for row in first)
    assert 900 < by_offset < 1100
    of_keys: dict[int, int] = {}
    for row in first:
        if row.by_key:
            of_keys[row.key_hash] = of_keys.get(row.key_hash, 0) + 1
    assert {10} == set(of_keys.values())
    assert 70 < len(of_keys) < 130


def test_both_are_measured_over_one_pass(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of the source is persisted for both jobs and let go of afterwards."""
    source = source_of(spark, [("in", 0, 0, T0 + 5, b"k"), ("in", 0, 1, T0, b"k")])
    kept: list[DataFrame] = []

    def spy(*args: object) -> DataFrame:
        kept.append(sampled(*args))  # type: ignore[arg-type]
        return kept[-1]

    monkeypatch.setattr(module, "sampled", spy)

    found = measure(source, receipts_of(spark, [("in", 0, 0, 2, T0 + 10)]), 2)

    assert ((LatencyRow(T0, 2, 5.0, 10.0, 10.0),), (Disorder("in", 2, 1, 5),)) == found
    assert not kept[0].is_cached
