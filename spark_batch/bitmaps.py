"""Sets of offsets, in buckets of 32,768: which were seen, and which more than once. Small to ship, exact to compare.

Spark has built-in bitmaps of the same size (`bitmap_construct_agg`). They are not used: that aggregate sorts every record first, and
cannot say which offsets came twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

SHIFT = 15
SIZE = 1 << SHIFT
"""Offsets per bucket; bucket = offset >> SHIFT."""

Mask: TypeAlias = "NDArray[np.bool_]"

_SPARSE, _DENSE = b"s", b"d"


class Seen:
    """What was seen of one bucket."""

    __slots__ = ("count", "high", "low", "once", "twice")

    def __init__(self) -> None:
        self.count = 0
        self.once: Mask = np.zeros(SIZE, np.bool_)
        """Seen at least once."""
        self.twice: Mask | None = None
        """Seen more than once; None: nothing was."""
        self.low = -1
        self.high = -1
        """Lowest and highest place (offset in the output) where they were seen."""

    def add(self, positions: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """`positions` in the bucket, `places` ascending."""
        self.count += len(positions)
        self.low = int(places[0]) if self.low < 0 else self.low
        self.high = int(places[-1])
        if len(positions) > 1 and not (positions[1:] > positions[:-1]).all():
            distinct, times = np.unique(positions, return_counts=True)
            self._again(distinct[times > 1])
            positions = distinct
        self._again(positions[self.once[positions]])
        self.once[positions] = True

    def _again(self, positions: NDArray[np.int64]) -> None:
        if len(positions):
            if self.twice is None:
                self.twice = np.zeros(SIZE, np.bool_)
            self.twice[positions] = True


def pack(mask: Mask) -> bytes:
    """Positions where there are few, bits where there are many."""
    positions = np.flatnonzero(mask)
    if len(positions) < SIZE // 16:
        return _SPARSE + positions.astype("<u2").tobytes()
    return _DENSE + np.packbits(mask, bitorder="little").tobytes()


def unpack(data: bytes) -> Mask:
    if data[:1] == _SPARSE:
        mask = np.zeros(SIZE, np.bool_)
        mask[np.frombuffer(data, "<u2", offset=1)] = True
        return mask
    return np.unpackbits(np.frombuffer(data, np.uint8, offset=1), bitorder="little").astype(np.bool_)


def merge(parts: Iterable[tuple[bytes, bytes | None]]) -> tuple[Mask, Mask]:
    """(seen at least once, seen more than once) from the packed masks of the parts that saw the same bucket."""
    once = np.zeros(SIZE, np.bool_)
    twice = np.zeros(SIZE, np.bool_)
    for packed_once, packed_twice in parts:
        part = unpack(packed_once)
        twice |= once & part
        once |= part
        if packed_twice is not None:
            twice |= unpack(packed_twice)
    return once, twice


def counts(mask: Mask, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of [start, end), positions in the bucket, are set: one number per pair."""
    total = np.concatenate(([0], np.cumsum(mask, dtype=np.int64)))
    return total[ends] - total[starts]
