"""Receipts of one source partition against the offsets that they must tile."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from spark_batch.bitmaps import SIZE
from spark_batch.context import Begin
from spark_batch.model import Kind, Range
from spark_batch.tiling import Bounds, Claims, Tile, begin_of, pieces, tile, width

NOW, OLD = "sha256:now", "sha256:old"


def claims(*ranges: tuple[int, int], digests: str = "", times: tuple[int, ...] = ()) -> Claims:
    """`digests`: a letter per receipt, "o" for another transform, "u" for outputs without lineage. Every receipt says that it read a
    record per offset."""
    start = np.array([low for low, _ in ranges], np.int64)
    end = np.array([high for _, high in ranges], np.int64)
    figures = np.zeros((len(ranges), 5), np.int64)
    figures[:, 0] = end - start
    letters = digests or "n" * len(ranges)
    names = np.array([OLD if letter == "o" else NOW for letter in letters], object)
    unstamped = np.array([letter == "u" for letter in letters], np.bool_)
    return Claims(start, end, figures, np.array(times or range(len(ranges)), np.int64), names, unstamped)


def bounds(begin: int, committed: int, log_start: int = 0, expired_until: int = -1) -> Bounds:
    return Bounds(begin, committed, log_start, expired_until, NOW)


def tiled(given: Claims, within: Bounds) -> tuple[list[tuple[Tile, int, int]], list[tuple[Kind, int, int]]]:
    tiles, findings = tile(given, within)
    rows = list(zip(tiles.kind, tiles.start.tolist(), tiles.end.tolist(), strict=True))
    return rows, [(found.kind, found.start, found.end) for found in findings]


def test_ranges_that_follow_each_other_tile_in_any_order() -> None:
    assert tiled(claims((5, 9), (0, 5), (9, 12)), bounds(0, 12)) == (
        [(Tile.CLAIM, 0, 5), (Tile.CLAIM, 5, 9), (Tile.CLAIM, 9, 12)],
        [],
    )


def test_receipts_in_flight_and_before_the_beginning_are_not_looked_at() -> None:
    assert tiled(claims((0, 5), (5, 9), (9, 12)), bounds(5, 9)) == ([(Tile.CLAIM, 5, 9)], [])


@pytest.mark.parametrize(
    ("ranges", "missing"),
    [
        ([(3, 9)], (0, 3)),
        ([(0, 3), (6, 9)], (3, 6)),
        ([(0, 3)], (3, 9)),
        ([], (0, 9)),
        ([(9, 12)], (0, 9)),
    ],
)
def test_offsets_that_nobody_claims_are_a_missing_receipt(
    ranges: list[tuple[int, int]], missing: tuple[int, int]
) -> None:
    tiles, findings = tiled(claims(*ranges), bounds(0, 9))
    assert (Tile.GAP, *missing) in tiles
    assert findings == [(Kind.RECEIPT_MISSING, *missing)]


@pytest.mark.parametrize(
    ("ranges", "tiles", "overlaps"),
    [
        ([(0, 5), (3, 9)], [(Tile.OVERLAP, 0, 9)], [(3, 5)]),
        ([(0, 9), (0, 9)], [(Tile.OVERLAP, 0, 9)], [(0, 9)]),
        ([(0, 9), (2, 3), (5, 6)], [(Tile.OVERLAP, 0, 9)], [(2, 3), (5, 6)]),
        ([(0, 4), (2, 6), (5, 9)], [(Tile.OVERLAP, 0, 9)], [(2, 4), (5, 6)]),
        ([(0, 3), (3, 6), (5, 7), (7, 9)], [(Tile.CLAIM, 0, 3), (Tile.OVERLAP, 3, 7), (Tile.CLAIM, 7, 9)], [(5, 6)]),
    ],
)
def test_offsets_that_two_claim_are_an_overlap_and_their_figures_are_not_used(
    ranges: list[tuple[int, int]], tiles: list[tuple[Tile, int, int]], overlaps: list[tuple[int, int]]
) -> None:
    assert tiled(claims(*ranges), bounds(0, 9)) == (tiles, [(Kind.RECEIPT_OVERLAP, *pair) for pair in overlaps])


def test_a_committed_offset_inside_a_receipt_was_set_by_hand() -> None:
    tiles, findings = tiled(claims((0, 5), (5, 9)), bounds(0, 7))
    assert tiles == [(Tile.CLAIM, 0, 5), (Tile.PART, 5, 7)]
    assert findings == [(Kind.OFFSETS_UNKNOWN, 7, 8)]


def test_what_lies_below_the_log_start_has_expired_claimed_or_not() -> None:
    tiles, findings = tiled(claims((0, 4), (6, 10), (10, 12)), bounds(0, 12, log_start=8))
    assert tiles == [
        (Tile.EXPIRED, 0, 4),
        (Tile.EXPIRED, 4, 6),
        (Tile.EXPIRED, 6, 8),
        (Tile.PART, 8, 10),
        (Tile.CLAIM, 10, 12),
    ]
    assert findings == [(Kind.SOURCE_EXPIRED, 0, 8)]


def test_gaps_before_the_first_receipts_that_are_left_prove_nothing() -> None:
    within = bounds(0, 30, expired_until=5)
    tiles, findings = tiled(claims((4, 10), (12, 20), (22, 30), times=(3, 6, 7)), within)
    assert [kind for kind, _, _ in tiles] == [
        Tile.UNPROVEN,
        Tile.CLAIM,
        Tile.UNPROVEN,
        Tile.CLAIM,
        Tile.GAP,
        Tile.CLAIM,
    ]
    assert findings == [(Kind.RECEIPT_MISSING, 20, 22)]


def test_a_gap_is_of_this_transform_only_between_receipts_of_it() -> None:
    tiles, _ = tile(claims((2, 4), (6, 8), (10, 12), (14, 16), digests="noon"), bounds(0, 18))
    assert tiles.current.tolist() == [True, True, False, False, False, False, False, True, True]


@pytest.mark.parametrize(
    ("begin", "asked", "earliest", "expected"),
    [
        (Begin.CONTINUED, Range(7, 20), True, 7),
        (Begin.BEGINNING, Range(0, 20), True, 0),
        (Begin.BEGINNING, Range(9, 20), True, 5),
        (Begin.BEGINNING, Range(0, 20), False, 5),
        (Begin.SINCE, Range(8, 20), True, 5),
        (Begin.SINCE, Range(10, 20), False, 10),
        (Begin.SINCE, Range(12, 20), True, 10),
    ],
)
def test_where_judging_begins(begin: Begin, asked: Range, earliest: bool, expected: int) -> None:  # noqa: FBT001
    start, end = np.array([5, 10]), np.array([10, 20])
    assert begin_of(begin, asked, start, end, earliest=earliest) == expected


def test_where_receipts_have_expired_begins_what_nobody_can_know_of_and_it_is_not_passed_over() -> None:
    """`start: latest`: receipts expired, so that the lowest one left is not where the group began."""
    start, end = np.array([800]), np.array([1000])
    assert begin_of(Begin.BEGINNING, Range(20, 1000), start, end, earliest=True) == 20
    tiles, findings = tile(claims((800, 1000), times=(7,)), bounds(20, 1000, log_start=20, expired_until=5))
    assert list(zip(tiles.kind, tiles.start.tolist(), tiles.end.tolist(), strict=True)) == [
        (Tile.UNPROVEN, 20, 800),
        (Tile.CLAIM, 800, 1000),
    ]
    assert findings == []
    assert [tiles.offsets_of(kind) for kind in (Tile.UNPROVEN, Tile.CLAIM, Tile.GAP)] == [780, 200, 0]


def test_without_receipts_a_group_that_began_at_the_end_has_nothing_to_judge() -> None:
    none = np.zeros(0, np.int64)
    assert begin_of(Begin.BEGINNING, Range(0, 20), none, none, earliest=False) == 20
    assert begin_of(Begin.BEGINNING, Range(3, 20), none, none, earliest=True) == 3


def test_pieces_are_cut_at_every_step_and_add_up_to_their_tiles() -> None:
    which, low, high = pieces(np.array([3, 8, 20]), np.array([8, 20, 21]), 8)
    assert list(zip(which.tolist(), low.tolist(), high.tolist(), strict=True)) == [
        (0, 3, 8),
        (1, 8, 16),
        (1, 16, 20),
        (2, 20, 21),
    ]
    _, low, high = pieces(np.array([SIZE - 1]), np.array([3 * SIZE]), 4 * SIZE)
    assert list(pairwise([*low.tolist(), 3 * SIZE])) == list(zip(low.tolist(), high.tolist(), strict=True))
    assert low.tolist() == [SIZE - 1, SIZE, 2 * SIZE]


@pytest.mark.parametrize(
    ("offsets", "expected"), [(0, 1), (1, 1), (200, 1), (201, 2), (400, 2), (401, 4), (SIZE * 200, SIZE)]
)
def test_the_width_of_a_stretch_is_a_power_of_two(offsets: int, expected: int) -> None:
    assert width(0, offsets) == expected


def test_tiles_of_random_claims_tile_what_is_judged_and_findings_cover_what_is_wrong() -> None:
    for seed in range(300):
        dice = Random(seed)
        made = [(low, low + dice.randrange(1, 12)) for low in (dice.randrange(60) for _ in range(dice.randrange(12)))]
        rows, findings = tiled(claims(*made), bounds(10, 50))
        assert [low for _, low, _ in rows] == [10, *(high for _, _, high in rows[:-1])]
        assert rows[-1][2] == 50
        for offset in range(10, 50):
            times = sum(low <= offset < high for low, high in made if low < 50)
            kinds = {kind for kind, low, high in findings if low <= offset < high} - {Kind.OFFSETS_UNKNOWN}
            expected = {Kind.RECEIPT_MISSING} if times == 0 else {Kind.RECEIPT_OVERLAP} if times > 1 else set()
            assert (seed, offset, kinds) == (seed, offset, expected)


def test_outputs_without_lineage_are_not_held_against_their_receipts() -> None:
    """Not where several receipts claim the same either, one of them with lineage; nor what nobody claims beside them."""
    tiles, findings = tile(claims((0, 5), (5, 9), (7, 12), (15, 20), (20, 30), digests="nunun"), bounds(0, 30))
    rows = list(zip(tiles.kind, tiles.start.tolist(), tiles.end.tolist(), tiles.current.tolist(), strict=True))
    assert rows == [
        (Tile.CLAIM, 0, 5, True),
        (Tile.UNSTAMPED, 5, 12, False),
        (Tile.GAP, 12, 15, False),
        (Tile.UNSTAMPED, 15, 20, False),
        (Tile.CLAIM, 20, 30, True),
    ]
    told = [(found.kind, found.start, found.end) for found in findings]
    assert told == [(Kind.RECEIPT_OVERLAP, 7, 9), (Kind.RECEIPT_MISSING, 12, 15)]
