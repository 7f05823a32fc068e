"""Counting at depth records, pure numpy: bitmaps of one bucket against pieces of tiles, then tiles against their receipts' figures.

A range is taken for right without looking at its content only where every figure of its receipt holds, and no offset in it came twice, came
from nowhere, or has both an output and a dead letter. Everything else is drilled into.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spark_batch.bitmaps import SIZE, counts
from spark_batch.model import Verdict
from spark_batch.plan import DEAD_LETTERS, SOURCE
from spark_batch.tiling import Tile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from spark_batch.bitmaps import Mask

FIXED = 3
"""Figures before those per topic: read, filtered, dead-lettered."""


class Slot(NamedTuple):
    """Where offsets were seen."""

    topic: int
    """Number of an output topic, DEAD_LETTERS or SOURCE."""
    nth: int
    """Index among the outputs of one source record."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of tiles within one source partition, one element each."""

    tile: NDArray[np.int64]
    kind: NDArray[np.object_]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    current: NDArray[np.bool_]
    figures: NDArray[np.int64]
    """What the receipt says of the whole tile."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the topics hold, one element per piece."""

    figures: NDArray[np.int64]
    """Columns as a receipt's, with outputs elsewhere as 0."""
    delivered: NDArray[np.int64]
    """Source records with outputs and nothing against them."""
    dead: NDArray[np.int64]
    filtered: NDArray[np.int64]
    suspect: NDArray[np.int64]
    """Offsets with something that cannot be right, whatever the receipt says."""


def find(seen: Mapping[Slot, tuple[Mask, Mask]], pieces: Pieces, topics: int) -> Found:
    """Count the bucket's offsets. `seen`: (at least once, more than once); `topics`: number of output topics."""
    start = pieces.start & (SIZE - 1)
    end = start + (pieces.end - pieces.start)

    def count(mask: Mask) -> NDArray[np.int64]:
        return counts(mask, start, end)

    nothing = np.zeros(SIZE, np.bool_)
    source, source_twice = seen.get(Slot(SOURCE, 0), (nothing, nothing))
    dead, dead_twice = seen.get(Slot(DEAD_LETTERS, 0), (nothing, nothing))
    some = np.zeros(SIZE, np.bool_)
    suspect = source_twice | dead_twice
    by_index: dict[int, Mask] = {}
    figures = np.zeros((len(start), FIXED + topics + 1), np.int64)
    for slot, (once, twice) in seen.items():
        if slot.topic < 0:
            continue
        figures[:, FIXED + slot.topic] += count(once)
        suspect |= twice
        if slot.nth in by_index:
            suspect |= by_index[slot.nth] & once  # the same output in two topics
        by_index[slot.nth] = by_index.get(slot.nth, nothing) | once
        some |= once
    for index, mask in by_index.items():
        if index:
            suspect |= mask & ~by_index.get(index - 1, nothing)
    suspect |= (some & dead) | ((some | dead) & ~source)
    figures[:, 0] = count(source)
    figures[:, 1] = count(source & ~some & ~dead)
    figures[:, 2] = count(dead)
    return Found(figures, count(source & some), count(source & dead & ~some), figures[:, 1], count(suspect))


@dataclass(frozen=True, slots=True)
class Balanced:
    """What became of a source partition's pieces."""

    drill: NDArray[np.bool_]
    """Per piece: its tile is to be judged by content."""
    counts: dict[Verdict, NDArray[np.int64]]
    """Per piece; of pieces that are drilled into: zeros, but for what is known anyway."""


def balance(pieces: Pieces, found: Found, *, everything: bool) -> Balanced:
    """Hold the figures of each tile against what all of its pieces hold. `everything`: drill into all that can be (depth content)."""
    _, number = np.unique(pieces.tile, return_inverse=True)
    totals = np.zeros((number.max(initial=-1) + 1, found.figures.shape[1]), np.int64)
    np.add.at(totals, number, found.figures)
    suspect = np.zeros(len(totals), np.int64)
    np.add.at(suspect, number, found.suspect)
    holds = (totals == pieces.figures[_first(number)]).all(axis=1) & (suspect == 0)
    empty = (totals == 0).all(axis=1) & (suspect == 0)
    kind = pieces.kind
    gone = kind == Tile.EXPIRED
    unproven = kind == Tile.UNPROVEN
    claim = kind == Tile.CLAIM
    certain = np.where(claim, holds[number], empty[number])
    if everything:
        certain = empty[number] & ~(claim & ~holds[number])
    drill = ~certain & ~gone & ~unproven
    plain = certain & ~gone & ~unproven
    zeros = np.zeros(len(number), np.int64)
    return Balanced(
        drill,
        {
            Verdict.EXACTLY_ONCE: np.where(plain, found.delivered, zeros),
            Verdict.DEAD_LETTERED: np.where(plain, found.dead, zeros),
            Verdict.FILTERED: np.where(plain, found.filtered, zeros),
            Verdict.EXPIRED: np.where(gone, expired(pieces), np.where(unproven, found.figures[:, 0], zeros)),
        },
    )


def expired(pieces: Pieces) -> NDArray[np.int64]:
    """Records that expired, as well as they can be counted: what the receipt read, spread over its pieces, or else all offsets."""
    length = pieces.end - pieces.start
    records: NDArray[np.int64] = np.where(pieces.figures[:, 0] > 0, _spread(pieces, length), length)
    least: NDArray[np.int64] = np.minimum(length, records)
    return least


def claimed(pieces: Pieces) -> NDArray[np.int64]:
    """Depth offsets: the records that receipts say they read, spread over the pieces of their tiles."""
    length = pieces.end - pieces.start
    least: NDArray[np.int64] = np.minimum(length, _spread(pieces, length))
    return least


def _spread(pieces: Pieces, length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers that add up to what the receipt of each tile read, in proportion to the lengths of its pieces."""
    _, number = np.unique(pieces.tile, return_inverse=True)
    ends = np.cumsum(length)
    first = _first(number)
    before = (ends - length)[first][number]
    whole = np.zeros(len(first), np.int64)
    np.add.at(whole, number, length)
    read = pieces.figures[:, 0]
    upper = read * (ends - before) // np.maximum(whole[number], 1)
    lower = read * (ends - length - before) // np.maximum(whole[number], 1)
    result: NDArray[np.int64] = upper - lower
    return result


def _first(number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of the first piece of each tile; the pieces of a tile stand together."""
    _, first = np.unique(number, return_index=True)
    result: NDArray[np.int64] = first
    return result


def merged(start: Sequence[int], end: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending ranges with those that touch made one."""
    ranges: list[tuple[int, int]] = []
    for low, high in zip(start, end, strict=True):
        if ranges and low <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(high, ranges[-1][1])
        else:
            ranges.append((low, high))
    return ranges
