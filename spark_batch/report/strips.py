"""The strips: one per source partition, from its first audited offset to the last, as rectangles that a template draws.

Bounded whatever the judgement holds: neighbours that look alike become one cell, and where that is not enough cells are
joined by equal numbers. Joining loses the place within a cell, never a fault: what any part of a cell has, the cell shows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from spark_batch.model import Verdict
from spark_batch.report.words import TROUBLE, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spark_batch.model import Judgement, Partition, Range, Stretch

CELLS = 6000
"""Cells on a page: about 1 MB."""
STRIPS = 400
"""Strips on a page: those with trouble come first."""
BODY = 20
"""Height of a strip's body, in pixels."""
_LETTER_EVERY = 3.5
"""Per cent of the width between two letters: nearer ones would overlap on a phone."""

LETTER: dict[Verdict, str] = {
    Verdict.MISSING: "M",
    Verdict.DUPLICATE: "D",
    Verdict.ALTERED: "A",
    Verdict.ORPHAN: "O",
    Verdict.UNKNOWN: "?",
    Verdict.UNVERIFIABLE: "U",
    Verdict.EXPIRED: "X",
}


@dataclass(frozen=True, slots=True)
class Layer:
    """One verdict's part of a cell, in pixels from the top of the body."""

    verdict: Verdict
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class Cell:
    """Offsets [start, end); x and width in per cent of the strip."""

    start: int
    end: int
    x: float
    width: float
    layers: tuple[Layer, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Flag:
    """Around neighbouring cells with the same worst verdict; `letter` is empty where the one before is too near."""

    verdict: Verdict
    x: float
    width: float
    letter: str


@dataclass(frozen=True, slots=True)
class Strip:
    topic: str
    partition: int
    start: int
    end: int
    committed: int | None
    cells: tuple[Cell, ...]
    flags: tuple[Flag, ...]
    counts: tuple[tuple[Verdict, int], ...]
    trouble: bool


@dataclass(slots=True)
class _Piece:
    start: int
    end: int
    counts: Counter[Verdict] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class TopicStrips:
    """`shown` are drawn at once, `folded` behind a click, `left_out` not at all: without trouble, as long as `STRIPS` suffices."""

    topic: str
    shown: tuple[Strip, ...]
    folded: tuple[Strip, ...]
    left_out: int


def strips_by_topic(judgement: Judgement, unfolded: int = 16) -> tuple[TopicStrips, ...]:
    """All strips of a page. A topic of more than `unfolded` partitions shows those with trouble and folds the others."""
    stretches: defaultdict[Partition, list[Stretch]] = defaultdict(list)
    for stretch in judgement.stretches:
        stretches[stretch.topic, stretch.partition].append(stretch)
    partitions = sorted(judgement.audited.keys() | stretches.keys())
    trouble = {p for p in partitions if any(s.counts.get(verdict) for s in stretches[p] for verdict in TROUBLE)}
    drawn = set(sorted(partitions, key=lambda p: (p not in trouble, p))[:STRIPS])
    most = max(CELLS // max(len(drawn), 1), 4)
    by_topic: defaultdict[str, list[Partition]] = defaultdict(list)
    for partition in partitions:
        by_topic[partition[0]].append(partition)
    topics = []
    for topic, members in by_topic.items():
        here = [_strip(p, stretches[p], judgement, min(most, 300)) for p in members if p in drawn]
        small = len(members) <= unfolded
        shown = tuple(strip for strip in here if small or strip.trouble)
        folded = tuple(strip for strip in here if not small and not strip.trouble)
        topics.append(TopicStrips(topic, shown, folded, len(members) - len(here)))
    return tuple(topics)


def _strip(partition: Partition, stretches: Sequence[Stretch], judgement: Judgement, most: int) -> Strip:
    whole = _whole(judgement.audited.get(partition), stretches)
    pieces = _joined(sorted(stretches, key=lambda stretch: stretch.start), most)
    counts = _sum(piece.counts for piece in pieces)
    return Strip(
        topic=partition[0],
        partition=partition[1],
        start=whole[0],
        end=whole[1],
        committed=judgement.cut.committed.get(partition),
        cells=tuple(_cell(piece, whole) for piece in pieces),
        flags=tuple(_flags(pieces, whole)),
        counts=tuple(in_order(counts)),
        trouble=any(counts[verdict] for verdict in TROUBLE),
    )


def _whole(audited: Range | None, stretches: Sequence[Stretch]) -> tuple[int, int]:
    starts = [stretch.start for stretch in stretches] + ([audited.start] if audited else [])
    ends = [stretch.end for stretch in stretches] + ([audited.end] if audited else [])
    return min(starts), max(ends)


def _joined(stretches: Sequence[Stretch], most: int) -> list[_Piece]:
    """Pieces of one look each, at most `most`."""
    pieces: list[_Piece] = []
    look = None
    for stretch in stretches:
        layers = _layers(stretch.counts)
        if pieces and layers == look:
            _absorb(pieces[-1], stretch)
        else:
            pieces.append(_Piece(stretch.start, stretch.end, Counter(stretch.counts)))
            look = layers
    step = -(-len(pieces) // most)
    if step <= 1:
        return pieces
    coarse = []
    for first in range(0, len(pieces), step):
        group = pieces[first : first + step]
        coarse.append(_Piece(group[0].start, group[-1].end, _sum(piece.counts for piece in group)))
    return coarse


def _absorb(piece: _Piece, stretch: Stretch) -> None:
    piece.end = stretch.end
    piece.counts.update(stretch.counts)


def _cell(piece: _Piece, whole: tuple[int, int]) -> Cell:
    said = ", ".join(f"{count:,} {verdict}" for verdict, count in in_order(piece.counts)) or "no records"
    text = f"offsets {piece.start:,} to {piece.end - 1:,}: {said}"
    x, width = _percent(piece.start, whole), _percent(piece.end, whole) - _percent(piece.start, whole)
    return Cell(piece.start, piece.end, x, round(width, 3), _layers(piece.counts), text)


def _flags(pieces: Sequence[_Piece], whole: tuple[int, int]) -> Iterator[Flag]:
    lettered = -100.0
    for verdict, run in groupby(pieces, key=_worst):
        if verdict is None:
            continue
        members = list(run)
        x, end = _percent(members[0].start, whole), _percent(members[-1].end, whole)
        middle = (x + end) / 2
        letter = LETTER[verdict] if middle - lettered >= _LETTER_EVERY else ""
        lettered = middle if letter else lettered
        yield Flag(verdict, x, round(end - x, 3), letter)


def _worst(piece: _Piece) -> Verdict | None:
    return next((verdict for verdict in TROUBLE if piece.counts[verdict]), None)


def _percent(offset: int, whole: tuple[int, int]) -> float:
    start, end = whole
    return round((offset - start) * 100 / max(end - start, 1), 3)


def _layers(counts: Mapping[Verdict, int]) -> tuple[Layer, ...]:
    """Shares of the body's height: whatever occurs gets two pixels at least, the most frequent pays for it."""
    occurring = in_order(counts)
    total = sum(count for _, count in occurring)
    if not total:
        return ()
    heights = {verdict: max(2, round(BODY * count / total)) for verdict, count in occurring}
    largest = max(heights, key=lambda verdict: heights[verdict])
    heights[largest] += BODY - sum(heights.values())
    layers, y = [], 0
    for verdict, height in heights.items():
        layers.append(Layer(verdict, y, height))
        y += height
    return tuple(layers)


def _sum(counts: Iterable[Mapping[Verdict, int]]) -> Counter[Verdict]:
    total: Counter[Verdict] = Counter()
    for each in counts:
        total.update(each)
    return total
