"""Sets of offsets in buckets."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from spark_batch.bitmaps import SIZE, Seen, counts, merge, pack, unpack


def seen(*runs: list[int]) -> Seen:
    found = Seen()
    place = 0
    for run in runs:
        found.add(np.array(run, np.int64), np.arange(place, place + len(run)))
        place += len(run)
    return found


def members(mask: np.ndarray | None) -> list[int]:
    return [] if mask is None else np.flatnonzero(mask).tolist()


def test_positions_are_remembered_with_their_count_and_places() -> None:
    found = seen([3, 5], [0, SIZE - 1])
    assert (members(found.once), members(found.twice)) == ([0, 3, 5, SIZE - 1], [])
    assert (found.count, found.low, found.high) == (4, 0, 3)


@pytest.mark.parametrize("runs", [[[1, 2, 2]], [[2, 1, 2]], [[1, 2], [2]], [[1, 2], [0, 2], [2]]])
def test_what_comes_twice_is_known_by_its_position(runs: list[list[int]]) -> None:
    assert members(seen(*runs).twice) == [2]


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, SIZE])
def test_a_mask_survives_packing_sparse_or_dense(size: int) -> None:
    mask = np.zeros(SIZE, np.bool_)
    mask[Random(size).sample(range(SIZE), size)] = True
    packed = pack(mask)
    assert len(packed) <= SIZE // 8 + 1
    assert members(unpack(packed)) == members(mask)


def test_what_two_parts_saw_once_was_seen_twice() -> None:
    one, two, three = seen([1, 2, 2]), seen([3, 4]), seen([4, 5])
    once, twice = merge((pack(s.once), None if s.twice is None else pack(s.twice)) for s in (one, two, three))
    assert (members(once), members(twice)) == ([1, 2, 3, 4, 5], [2, 4])


def test_counts_of_ranges_take_their_start_and_not_their_end() -> None:
    mask = seen([0, 4, 5, SIZE - 1]).once
    start, end = np.array([0, 0, 4, 5, 6]), np.array([0, 5, 5, SIZE, SIZE - 1])
    assert counts(mask, start, end).tolist() == [0, 2, 1, 2, 0]
