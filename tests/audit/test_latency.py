"""Latency and disorder, on small tables whose figures are known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from spark_batch.latency import SAMPLE, disorder, latency, measure, slices, timed
from spark_batch.model import Disorder, LatencyRow, Range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from spark_batch.model import Partition

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

    found = latency(timed(source), receipts)

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

    found = latency(timed(source), receipts)

    assert (LatencyRow(T0, 7, 30.0, 30.0, 30.0),) == found


def test_a_clock_that_runs_ahead_gives_negative_latency_and_no_timestamp_gives_none(spark: SparkSession) -> None:
    """The figure is told as it is; a record without a timestamp (-1) has no latency."""
    source = source_of(spark, [("in", 0, 0, T0 + 500, None), ("in", 0, 1, -1, None)])

    found = latency(timed(source), receipts_of(spark, [("in", 0, 0, 2, T0)]))

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

    found = disorder(timed(source))

    assert (Disorder("a", 6, 2, 30), Disorder("b", 1, 0, 0)) == found


def test_late_is_told_within_what_was_read_in_one_piece(spark: SparkSession) -> None:
    """Between two slices there are records that nobody looked at."""
    first, second = (timed(source_of(spark, [("a", 0, n, T0 - n, b"x")]), n) for n in (0, 1))

    assert disorder(first.union(second)) == (Disorder("a", 2, 0, 0),)


def test_what_fits_into_the_sample_is_read_whole() -> None:
    """Empty ranges are left out: Kafka's source does not take them."""
    ranges = {("a", 0): Range(5, 5 + SAMPLE - 1), ("a", 1): Range(7, 7), ("b", 0): Range(0, 1)}

    assert slices(ranges) == ({("a", 0): Range(5, 5 + SAMPLE - 1), ("b", 0): Range(0, 1)},)
    assert slices({("a", 1): Range(7, 7)}) == ()


@pytest.mark.parametrize(
    ("partitions", "each", "parts"), [(1, 50_000, 12), (3, 1_000_003, 12), (200, 70_000, 3), (900, 20, 1)]
)
def test_beyond_it_slices_are_spread_over_every_partition(partitions: int, each: int, parts: int) -> None:
    """The same every time, within their partition, apart from each other, as long as the sample allows, elsewhere in each partition."""
    ranges = {("a", p): Range(1000 * p, 1000 * p + each) for p in range(partitions)}

    found = slices(ranges, sample=10_000)

    assert found == slices(ranges, sample=10_000)
    assert len(found) == parts
    assert all(part.keys() == ranges.keys() for part in found)
    for partition, whole in ranges.items():
        mine = [part[partition] for part in found]
        edges = [whole.start, *(edge for piece in mine for edge in (piece.start, piece.end)), whole.end]
        assert edges == sorted(edges)
        assert mine[-1].start - whole.start >= each * (parts - 1) // parts
    read = sum(piece.end - piece.start for part in found for piece in part.values())
    assert 10_000 - partitions * parts <= read <= 10_000
    assert len({found[0][p].start - ranges[p].start for p in ranges}) == min(
        partitions, 9 if each == 20 else partitions
    )


def test_both_are_measured_over_one_pass(spark: SparkSession) -> None:
    """Each slice is read once, in slices of the ranges that the caller names."""
    rows: list[Source] = [("in", 0, 0, T0 + 5, b"k"), ("in", 0, 1, T0, b"k")]
    asked: list[Mapping[Partition, Range]] = []

    def read(ranges: Mapping[Partition, Range]) -> DataFrame:
        asked.append(ranges)
        return source_of(spark, rows)

    found = measure(read, {("in", 0): Range(0, 2)}, receipts_of(spark, [("in", 0, 0, 2, T0 + 10)]))

    assert found == ((LatencyRow(T0, 2, 5.0, 10.0, 10.0),), (Disorder("in", 2, 1, 5),))
    assert asked == [{("in", 0): Range(0, 2)}]


def test_nothing_to_read_is_no_error(spark: SparkSession) -> None:
    """No range, nothing asked of Kafka."""

    def never(_: object) -> DataFrame:
        raise AssertionError

    assert measure(never, {("in", 0): Range(3, 3)}, receipts_of(spark, [("in", 0, 0, 2, T0)])) == ((), ())
