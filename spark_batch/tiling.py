"""Receipts of one source partition -> tiles: who claims which offsets, and what is claimed twice or by nobody. Pure numpy.

The ranges of all receipts tile a source partition (docs/receipts.md): each begins where another ended, none overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spark_batch.bitmaps import SIZE
from spark_batch.context import Begin
from spark_batch.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spark_batch.model import Range

STRETCHES = 200
"""A partition's strip has at most about twice as many."""


class Tile(StrEnum):
    """How the offsets of a tile can be judged."""

    CLAIM = "claim"
    """One receipt: its figures must hold."""
    GAP = "gap"
    """Nobody's: no figures."""
    OVERLAP = "overlap"
    """Several receipts that overlap: which of them is right cannot be told, so no figures are held against the topics."""
    PART = "part"
    """A receipt that reaches beyond what is judged: its figures are of more than the tile."""
    UNSTAMPED = "unstamped"
    """Outputs without lineage (Claims.unstamped): whether they are there cannot be told, so no figures are held against the topics."""
    EXPIRED = "expired"
    """Below the source's log start."""
    UNPROVEN = "unproven"
    """The receipts have expired."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What receipts say of one source partition, one element per receipt."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    figures: NDArray[np.int64]
    """Columns: read, filtered, dead-lettered, then outputs per topic, then outputs to topics that are none of the pipeline's."""
    time_ms: NDArray[np.int64]
    digest: NDArray[np.object_]
    unstamped: NDArray[np.bool_]
    """Whether outputs are told by lineage, and the worker left none (`lineage: false`)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one source partition."""

    begin: int
    """First offset to be judged."""
    committed: int
    """C: the offset after the last one to be judged."""
    log_start: int
    receipts_expired_until_ms: int = -1
    """Receipts older than this may have expired; -1: all that were written are there."""
    digest: str = ""
    """Of the transform that the pipeline file has now."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """[begin, C) without gap and overlap, in order."""

    kind: list[Tile]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    current: NDArray[np.bool_]
    """Whether the transform was the one that the pipeline file has now, and what it yielded can be told."""
    figures: NDArray[np.int64]
    """As in `Claims`; of no meaning for kinds without figures."""
    time_ms: NDArray[np.int64]
    """When the receipt was written that claims all of the tile; -1: none does, or several do."""

    def offsets_of(self, kind: Tile) -> int:
        return sum(
            int(end - start) for each, start, end in zip(self.kind, self.start, self.end, strict=True) if each is kind
        )


@dataclass(frozen=True, slots=True)
class RangeFinding:
    kind: Kind
    start: int
    end: int
    detail: str


def width(start: int, end: int) -> int:
    """Offsets per stretch of a partition's strip: a power of two, so that a bucket of bitmaps is a whole number of them, or part of one."""
    return 1 << max(0, -(-(end - start) // STRETCHES) - 1).bit_length()


def begin_of(begin: Begin, asked: Range, start: NDArray[np.int64], end: NDArray[np.int64], *, earliest: bool) -> int:
    """Where judging begins, as far as receipts, [start, end) each, can tell; see context.Begin. `earliest`: the pipeline's `start`, or
    nobody knows what the lowest receipt was, because some have expired: where the group began is not to be known then.
    """
    if begin is Begin.CONTINUED:
        return asked.start
    if begin is Begin.SINCE:
        over = start[(start < asked.start) & (end > asked.start)]
        return int(over.min(initial=asked.start))
    lowest = int(start.min(initial=asked.end))
    return min(asked.start, lowest) if earliest else lowest


def tile(claims: Claims, bounds: Bounds) -> tuple[Tiles, list[RangeFinding]]:
    """The tiles of a source partition, and what is wrong with the claims."""
    keep = (claims.end > claims.start) & (claims.end > bounds.begin) & (claims.start < bounds.committed)
    order = np.flatnonzero(keep)[np.lexsort((claims.end[keep], claims.start[keep]))]
    start, end = claims.start[order], claims.end[order]
    reach = np.maximum.accumulate(end)
    chain_starts = np.flatnonzero(np.concatenate(([True], start[1:] >= reach[:-1]))) if len(order) else order
    findings = list(_overlaps(start, end, reach))
    rows: list[tuple[Tile, int, int, int]] = []
    at, before = bounds.begin, -1
    for first, after in pairwise([*chain_starts.tolist(), len(order)]):
        low, high = int(start[first]), int(reach[after - 1])
        if low > at:
            rows.append(_gap(at, low, before, claims, bounds))
        beyond = low < at or high > bounds.committed
        kind = Tile.PART if beyond else Tile.OVERLAP if after - first > 1 else Tile.CLAIM
        if claims.unstamped[order[first:after]].any():
            kind = Tile.UNSTAMPED
        if high > bounds.committed:
            findings.append(_crossing(low, high, bounds))
        before = int(order[first])
        rows.append((kind, max(low, at), min(high, bounds.committed), before))
        at = high
    if at < bounds.committed:
        rows.append(_gap(at, bounds.committed, before, claims, bounds))
    rows = [part for row in rows for part in _expire(row, bounds.log_start)]
    findings += [_missing(row) for row in rows if row[0] is Tile.GAP]
    findings += _expired(rows)
    return _tiles(rows, claims, bounds), findings


def pieces(
    start: NDArray[np.int64], end: NDArray[np.int64], step: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(index of the tile, start, end) of the tiles cut at every multiple of `step`, or of a bucket where that is less."""
    step = min(step, SIZE)
    number = (end - 1) // step - start // step + 1
    which = np.repeat(np.arange(len(start)), number)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(number) - number, number)
    low = (start[which] // step + nth) * step
    return which, np.maximum(low, start[which]), np.minimum(low + step, end[which])


def _gap(low: int, high: int, before: int, claims: Claims, bounds: Bounds) -> tuple[Tile, int, int, int]:
    """`before`: index of the claim in front of the gap; where receipts have expired since, the gap proves nothing."""
    until = bounds.receipts_expired_until_ms
    expired = until >= 0 and (before < 0 or claims.time_ms[before] < until)
    return (Tile.UNPROVEN if expired else Tile.GAP), low, high, before


def _expire(row: tuple[Tile, int, int, int], log_start: int) -> Iterator[tuple[Tile, int, int, int]]:
    kind, low, high, claim = row
    if low < log_start:
        yield Tile.EXPIRED, low, min(high, log_start), claim
        kind = Tile.PART if kind is Tile.CLAIM else kind
    if high > log_start:
        yield kind, max(low, log_start), high, claim


def _tiles(rows: list[tuple[Tile, int, int, int]], claims: Claims, bounds: Bounds) -> Tiles:
    claim = np.array([row[3] for row in rows], np.int64)
    known = claims.digest[claim] == bounds.digest if len(claims.start) else np.ones(len(rows), np.bool_)
    current = np.where(claim < 0, True, known).astype(np.bool_)
    current &= np.array([row[0] is not Tile.UNSTAMPED for row in rows], np.bool_)
    # What nobody claims was written between its neighbours: by another transform, unless both are of this one.
    after = np.append(current[1:], True)
    unclaimed = np.array([row[0] is Tile.GAP for row in rows], np.bool_)
    current = np.where(unclaimed, current & after, current)
    figures = claims.figures[claim] if len(claims.start) else np.zeros((len(rows), claims.figures.shape[1]), np.int64)
    start, end = np.array([row[1] for row in rows], np.int64), np.array([row[2] for row in rows], np.int64)
    single = np.array([row[0] in (Tile.CLAIM, Tile.PART) for row in rows], np.bool_)
    time_ms = np.full(len(rows), -1, np.int64)
    if len(claims.start):
        single &= (claims.start[claim] <= start) & (end <= claims.end[claim])
        time_ms = np.where(single, claims.time_ms[claim], time_ms)
    return Tiles([row[0] for row in rows], start, end, current, figures, time_ms)


def _overlaps(start: NDArray[np.int64], end: NDArray[np.int64], reach: NDArray[np.int64]) -> Iterator[RangeFinding]:
    for at in np.flatnonzero(start[1:] < reach[:-1]) + 1:
        low, high = int(start[at]), int(min(end[at], reach[at - 1]))
        yield RangeFinding(Kind.RECEIPT_OVERLAP, low, high, "two receipts claim these offsets")


def _missing(row: tuple[Tile, int, int, int]) -> RangeFinding:
    return RangeFinding(
        Kind.RECEIPT_MISSING, row[1], row[2], "the group has committed these offsets, and no receipt claims them"
    )


def _crossing(low: int, high: int, bounds: Bounds) -> RangeFinding:
    detail = f"the group's committed offset {bounds.committed} lies inside the receipt of [{low}, {high}): it was set by hand"
    return RangeFinding(Kind.OFFSETS_UNKNOWN, bounds.committed, bounds.committed + 1, detail)


def _expired(rows: list[tuple[Tile, int, int, int]]) -> list[RangeFinding]:
    gone = [row for row in rows if row[0] is Tile.EXPIRED]
    if not gone:
        return []
    detail = "the source's records are gone, retention or a deletion took them before they were audited"
    return [RangeFinding(Kind.SOURCE_EXPIRED, gone[0][1], gone[-1][2], detail)]
