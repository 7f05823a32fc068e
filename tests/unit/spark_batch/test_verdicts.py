"""Counting bitmaps against receipts: what balances is right, and nothing that is wrong balances."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest

from spark_batch.bitmaps import SIZE
from spark_batch.model import Verdict
from spark_batch.plan import DEAD_LETTERS, SOURCE
from spark_batch.tiling import Tile
from spark_batch.verdicts import Pieces, Slot, balance, claimed, expired, find, merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_batch.bitmaps import Mask

BASE = 3 * SIZE
"""The bucket of these tests does not begin at 0."""
CLEAN, LARGE = 0, 1

Topic: TypeAlias = "dict[Slot, Sequence[int]]"

RIGHT: Topic = {
    Slot(SOURCE, 0): range(10),
    Slot(CLEAN, 0): [0, 1, 2, 3, 4],
    Slot(LARGE, 0): [5],
    Slot(LARGE, 1): [4],
    Slot(DEAD_LETTERS, 0): [6],
}
"""0 to 3 once, 4 in two topics, 5 in the other topic, 6 dead, 7 to 9 filtered."""
FIGURES = [10, 3, 1, 5, 2, 0]


def masks(seen: Topic) -> dict[Slot, tuple[Mask, Mask]]:
    made = {}
    for slot, offsets in seen.items():
        times = np.bincount(np.array(list(offsets), np.int64), minlength=SIZE)
        made[slot] = times > 0, times > 1
    return made


def one_tile(figures: Sequence[int] = FIGURES, kind: Tile = Tile.CLAIM) -> Pieces:
    """[BASE, BASE + 10) in two pieces."""
    return Pieces(
        np.array([5, 5]),
        np.array([kind, kind], object),
        np.array([BASE, BASE + 4]),
        np.array([BASE + 4, BASE + 10]),
        np.array([True, True]),
        np.array([figures, figures]),
    )


def drilled(seen: Topic, figures: Sequence[int] = FIGURES, kind: Tile = Tile.CLAIM) -> bool:
    pieces = one_tile(figures, kind)
    drill = balance(pieces, find(masks(seen), pieces, 2), everything=False).drill
    assert drill[0] == drill[1], "a tile is drilled into as a whole"
    return bool(drill[0])


def test_a_range_whose_figures_hold_is_judged_by_its_bitmaps() -> None:
    pieces = one_tile()
    found = find(masks(RIGHT), pieces, 2)
    assert found.figures.tolist() == [[4, 0, 0, 4, 0, 0], [6, 3, 1, 1, 2, 0]]
    balanced = balance(pieces, found, everything=False)
    assert balanced.drill.tolist() == [False, False]
    assert {verdict: counts.tolist() for verdict, counts in balanced.counts.items()} == {
        Verdict.EXACTLY_ONCE: [4, 2],
        Verdict.DEAD_LETTERED: [0, 1],
        Verdict.FILTERED: [0, 3],
        Verdict.EXPIRED: [0, 0],
    }


@pytest.mark.parametrize("figure", range(6))
@pytest.mark.parametrize("step", [-1, 1])
def test_every_single_figure_counts(figure: int, step: int) -> None:
    assert drilled(RIGHT, [said + step * (at == figure) for at, said in enumerate(FIGURES)])


@pytest.mark.parametrize(
    "wrong",
    [
        {Slot(CLEAN, 0): [0, 1, 2, 3]},  # one missing
        {Slot(CLEAN, 0): [0, 1, 2, 3, 4, 4]},  # one doubled
        {Slot(CLEAN, 0): [0, 0, 2, 3, 4]},  # one doubled, one missing: five as before
        {Slot(CLEAN, 0): [0, 1, 2, 3, 4], Slot(LARGE, 0): [4, 5], Slot(LARGE, 1): []},  # the same output in two topics
        {Slot(LARGE, 1): [7]},  # a second output without a first
        {Slot(CLEAN, 0): [0, 1, 2, 3, 4, 15], Slot(SOURCE, 0): [*range(10)]},  # beside the tile: of no concern here
        {Slot(DEAD_LETTERS, 0): [6, 6]},
        {Slot(DEAD_LETTERS, 0): [0]},  # beside an output
        {Slot(SOURCE, 0): [1, 2, 3, 4, 5, 6, 7, 8, 9]},  # an output without a source record
        {Slot(SOURCE, 0): [0, 1, 2, 3, 4, 5, 7, 8, 9]},  # a dead letter without one
    ],
)
def test_what_cannot_be_right_is_drilled_into_whatever_the_sums_say(wrong: Topic) -> None:
    beside = wrong.get(Slot(CLEAN, 0)) == [0, 1, 2, 3, 4, 15]
    assert drilled(RIGHT | wrong) is not beside


@pytest.mark.parametrize("kind", [Tile.GAP, Tile.OVERLAP, Tile.PART])
def test_without_figures_to_hold_everything_is_drilled_into_but_what_is_empty(kind: Tile) -> None:
    assert drilled(RIGHT, kind=kind)
    assert not drilled({}, kind=kind)


def test_at_depth_content_everything_is_drilled_into_but_what_is_empty_and_says_so() -> None:
    pieces = one_tile()
    assert balance(pieces, find(masks(RIGHT), pieces, 2), everything=True).drill.tolist() == [True, True]
    empty = one_tile([0] * 6)
    assert balance(empty, find({}, empty, 2), everything=True).drill.tolist() == [False, False]
    assert balance(pieces, find({}, pieces, 2), everything=True).drill.tolist() == [True, True]


def test_what_has_expired_or_cannot_be_proven_is_neither_drilled_into_nor_complete() -> None:
    pieces = one_tile(kind=Tile.EXPIRED)
    balanced = balance(pieces, find({}, pieces, 2), everything=True)
    assert (bool(balanced.drill.any()), balanced.counts[Verdict.EXPIRED].tolist()) == (False, [4, 6])
    pieces = one_tile(kind=Tile.UNPROVEN)
    balanced = balance(pieces, find(masks(RIGHT), pieces, 2), everything=True)
    assert (bool(balanced.drill.any()), balanced.counts[Verdict.EXPIRED].tolist()) == (False, [4, 6])
    assert balanced.counts[Verdict.EXACTLY_ONCE].tolist() == [0, 0]


def test_what_receipts_read_is_spread_over_their_pieces_without_a_record_too_many() -> None:
    pieces = one_tile([7, 0, 0, 0, 0, 0])
    assert claimed(pieces).tolist() == [2, 5]
    assert expired(pieces).tolist() == [2, 5]
    assert expired(one_tile([0] * 6)).tolist() == [4, 6]


def test_ranges_that_touch_are_made_one() -> None:
    assert merged([0, 4, 9, 10], [4, 6, 10, 12]) == [(0, 6), (9, 12)]
