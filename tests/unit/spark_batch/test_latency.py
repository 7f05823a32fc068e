"""Latency and disorder, on figures that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from spark_batch.bitmaps import SIZE
from spark_batch.latency import (
    SAMPLE,
    Sample,
    Slices,
    by_hour,
    late,
    pack_times,
    percentiles,
    sample_of,
    slices,
    unpack_times,
)
from spark_batch.model import LatencyRow, Range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

HOUR = 3_600_000
T0 = 1_760_000_400_000 // HOUR * HOUR
"""A full hour."""

Piece = tuple[int, int, int]
"""start, end, time_ms"""


def ints(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def hours(times: dict[int, int], pieces: Sequence[Piece], bucket: int = 0) -> dict[int, list[int]]:
    """`times`: offset -> timestamp."""
    packed = pack_times(ints([offset - bucket * SIZE for offset in times]), ints(list(times.values())))
    start, end, time_ms = (ints(column) for column in zip(*pieces, strict=True))
    found = by_hour(bucket, [packed], start, end, time_ms)
    return {hour: np.frombuffer(latencies, "<i8").tolist() for hour, latencies in found.items()}


def test_the_latency_of_a_record_ends_with_its_receipt() -> None:
    """Hours are those of the source's timestamps."""
    times = {0: T0, 1: T0 + 3, 2: T0 + HOUR, 9: T0 + HOUR + 1}
    expected = {T0: [100, 97], T0 + HOUR: [40, 899]}
    assert expected == hours(times, [(0, 2, T0 + 100), (2, 5, T0 + HOUR + 40), (5, 10, T0 + HOUR + 900)])


def test_records_of_a_later_bucket_and_of_several_parts_find_their_receipts() -> None:
    """A task may hand over a bucket in parts, and two tasks may have seen it."""
    first, second = pack_times(ints([0, 7]), ints([T0, T0])), pack_times(ints([8]), ints([T0]))
    start, end, time_ms = ints([SIZE, SIZE + 8]), ints([SIZE + 8, 2 * SIZE]), ints([T0 + 1, T0 + 2])
    found = by_hour(1, [first, second], start, end, time_ms)
    assert {hour: np.frombuffer(each, "<i8").tolist() for hour, each in found.items()} == {T0: [1, 1, 2]}


def test_what_no_single_receipt_claims_has_no_latency() -> None:
    """Before, between and behind the pieces, and in one without a time."""
    times = dict.fromkeys((0, 2, 4, 6, 8), T0)
    assert hours(times, [(1, 2, T0 + 9), (2, 3, T0 + 5), (3, 6, -1), (7, 8, T0 + 9)]) == {T0: [5]}
    nothing = ints([])
    assert by_hour(0, [pack_times(ints([1]), ints([T0]))], nothing, nothing, nothing) == {}
    assert by_hour(0, [], ints([0]), ints([5]), ints([T0])) == {}


def test_a_clock_that_runs_ahead_gives_negative_latency() -> None:
    """The figure is told as it is."""
    assert hours({0: T0 + 500}, [(0, 1, T0)]) == {T0: [-500]}


def test_percentiles_are_values_that_occur() -> None:
    """Of 1..100, in two parts; of ten times 40 and once 900; of a single one."""

    def packed(values: Sequence[int]) -> bytes:
        return ints(values).astype("<i8").tobytes()

    later = packed([40] * 5 + [900] + [40] * 5)
    found = percentiles(
        [(T0 + HOUR, later), (T0, packed(range(51, 101))), (T0, packed(range(1, 51))), (0, packed([7]))]
    )
    expected = (
        LatencyRow(0, 1, 7.0, 7.0, 7.0),
        LatencyRow(T0, 100, 50.0, 95.0, 99.0),
        LatencyRow(T0 + HOUR, 11, 40.0, 900.0, 900.0),
    )
    assert expected == found
    assert percentiles([]) == ()


def test_times_are_unpacked_as_they_were_packed() -> None:
    positions, times = unpack_times(pack_times(ints([0, SIZE - 1]), ints([0, 2**60])))
    assert (positions.tolist(), times.tolist()) == ([0, SIZE - 1], [0, 2**60])


def test_late_is_what_is_earlier_than_a_record_before_it_of_the_same_key() -> None:
    """The running maximum counts, not the neighbour; equal is in order; other keys do not count."""
    keys = ints([5, -3, 5, 5, 5, -3, 9])
    times = ints([T0 + 100, T0 + 50, T0 + 70, T0 + 90, T0 + 100, T0 + 50, T0])
    assert late(keys, times) == (2, 30)
    assert late(ints([]), ints([])) == (0, 0)


def test_late_agrees_with_looking_at_one_record_after_another() -> None:
    dice = np.random.default_rng(7)
    for _ in range(50):
        keys, times = dice.integers(-3, 4, 60), dice.integers(0, 25, 60)
        highest: dict[int, int] = {}
        by = []
        for key, time in zip(keys.tolist(), times.tolist(), strict=True):
            if time < highest.get(key, 0):
                by.append(highest[key] - time)
            highest[key] = max(time, highest.get(key, 0))
        assert (len(by), max(by, default=0)) == late(keys, times)


def records(start: int, rows: Sequence[tuple[int | None, int]]) -> pa.RecordBatch:
    """Pairs of key and timestamp, from an offset on."""
    keys, times = zip(*rows, strict=True)
    columns = [range(start, start + len(rows)), times, keys]
    arrays = [pa.array(column, pa.int64()) for column in columns]
    return pa.record_batch(arrays, names=["offset", "time_ms", "key"])


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_slices_are_looked_at_one_by_one_whatever_the_batches(size: int) -> None:
    """Late against a record of another slice, or outside, is not late; without a key or a timestamp a record is not looked at."""
    rows = [(1, 9), (1, 5), (1, 4), (None, 1), (1, -1), (1, 7), (2, 1), (1, 6), (1, 3), (1, 2), (1, 1)]
    looked = Slices({3: (Range(11, 15), Range(15, 19), Range(20, 21)), 4: (Range(0, 99),)})
    for at in range(0, len(rows), size):
        looked.look(3, records(10 + at, rows[at : at + size]))
    looked.rest()
    # [11, 15): 5, 4 late by 1; [15, 19): 7, 6 late by 1, 3 late by 4; [20, 21): 1 alone
    assert looked.found == {3: (7, 3, 4)}


def test_what_fits_into_the_sample_is_looked_at_whole() -> None:
    ranges = {("a", 0): Range(5, 5 + SAMPLE - 1), ("a", 1): Range(7, 7), ("b", 0): Range(0, 1)}
    sample = sample_of(ranges)
    assert sample == Sample(0, {("a", 0): (Range(5, 5 + SAMPLE - 1),), ("b", 0): (Range(0, 1),)})
    assert sample.notes == ()
    assert sample.drawn(ints([1, 2, 3])).all()
    assert sample_of({}) == Sample()


@pytest.mark.parametrize(("total", "share"), [(SAMPLE + 1, 2), (2 * SAMPLE, 2), (2 * SAMPLE + 1, 4), (64 * SAMPLE, 64)])
def test_beyond_it_latency_is_of_one_record_in_a_power_of_two(total: int, share: int) -> None:
    """No more than the sample, and a note says how many."""
    sample = sample_of({("a", 0): Range(0, total)})
    assert 2**sample.shift == share
    assert f"one source record in {share}," in sample.notes[0]


@pytest.mark.parametrize("start", [0, 123_456_789_012])
def test_every_stretch_of_offsets_gives_its_share(start: int) -> None:
    """Of each thousand offsets one in eight, give or take a few; the same every time; no period that a transaction's length could meet."""
    sample = Sample(3)
    drawn = sample.drawn(np.arange(start, start + 100_000))
    shares = drawn.reshape(100, 1000).sum(axis=1)
    assert 120 <= shares.min() <= shares.max() <= 130
    assert (drawn == sample.drawn(np.arange(start, start + 100_000))).all()
    assert len(set(np.diff(np.flatnonzero(drawn)).tolist())) > 1


@pytest.mark.parametrize(("partitions", "each"), [(1, 50_000), (3, 1_000_003), (200, 70_000), (900, 20)])
def test_beyond_it_slices_are_spread_over_every_partition(partitions: int, each: int) -> None:
    """The same every time, within their partition, apart from each other, as long as the sample allows, elsewhere in each partition."""
    ranges = {("a", p): Range(1000 * p, 1000 * p + each) for p in range(partitions)}

    found = slices(ranges, most=10_000)

    assert found == slices(ranges, most=10_000)
    assert found.keys() == ranges.keys()
    for partition, whole in ranges.items():
        mine = found[partition]
        assert len(mine) == 12
        edges = [whole.start, *(edge for piece in mine for edge in (piece.start, piece.end)), whole.end]
        assert edges == sorted(edges)
    read = sum(piece.end - piece.start for mine in found.values() for piece in mine)
    assert read <= 10_000 or each == 20  # at least one offset per slice
    if each > 20:
        assert read >= 10_000 - partitions * 12
        assert len({found["a", p][0].start - 1000 * p for p in range(partitions)}) == partitions
