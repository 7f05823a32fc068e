"""From a record's timestamp to the commit of what it became, per hour; and records that came late within their key.

Outputs keep the source's timestamp, so the other end of the interval is the receipt's `time_ms`: taken by the worker's clock just
before the commit. The commit itself (some milliseconds) is not in the figure, and where the producer's clock runs ahead of the worker's
it can be negative: it is told as it is.

Nothing is read for it: the scan of the source (scan.py) takes the timestamps along, in the buckets of the bitmaps, and where those are held
against the receipts, so are these. Beyond `SAMPLE` offsets a sample of them is drawn, the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from spark_batch.bitmaps import SHIFT
from spark_batch.model import LatencyRow, Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa  # type: ignore[import-untyped]
    from numpy.typing import NDArray

    from spark_batch.model import Partition

SAMPLE = 1_000_000
"""Source records whose latency is measured, at most: 10 bytes each to shuffle, and 8 to collect."""
_SLICES = 12
"""Per partition, where order within keys is looked at. They lie elsewhere in each partition, so that two partitions look into each hour of
a day."""
_GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, spread evenly however many there are; _SPREAD: the same of 2^64 (Fibonacci hashing)."""
_SPREAD = 0x9E3779B97F4A7C15
_HOUR_MS = 3_600_000
_RANKS = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Sample:
    """Which source records are looked at."""

    shift: int = 0
    """Of latency: one in 2**shift, drawn by a hash of the offset, so that every hour and every transaction gives its share."""
    slices: Mapping[Partition, tuple[Range, ...]] = field(default_factory=dict)
    """Of order within keys: all that lie in these ranges. To tell what came late, records must be seen that stand together."""

    def drawn(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not self.shift:
            return np.ones(len(offsets), np.bool_)
        high = (offsets.astype(np.uint64) * np.uint64(_SPREAD)) >> np.uint64(64 - self.shift)
        drawn: NDArray[np.bool_] = high == 0
        return drawn

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence where not all are looked at."""
        if not self.shift:
            return ()
        latency = f"latency is of a sample, one source record in {2**self.shift}, drawn by a hash of its offset"
        return (
            f"{latency}; late records were looked for in slices of each source partition, {SAMPLE:,} offsets together",
        )


def sample_of(ranges: Mapping[Partition, Range], most: int = SAMPLE) -> Sample:
    """All of `ranges` up to `most` offsets; of more, the largest share 1/2^n with no more than that, and as many offsets in slices."""
    total = sum(bounds.end - bounds.start for bounds in ranges.values())
    shift = max(0, -(-total // most) - 1).bit_length()
    return Sample(shift, slices(ranges, most))


def slices(ranges: Mapping[Partition, Range], most: int = SAMPLE) -> dict[Partition, tuple[Range, ...]]:
    """Every range as a whole up to `most` offsets, else equally long slices of each, spread evenly."""
    wanted = {partition: bounds for partition, bounds in sorted(ranges.items()) if bounds.start < bounds.end}
    total = sum(bounds.end - bounds.start for bounds in wanted.values())
    if total <= most:
        return {partition: (bounds,) for partition, bounds in wanted.items()}
    parts = {}
    for index, (partition, bounds) in enumerate(wanted.items()):
        step = (bounds.end - bounds.start) / _SLICES
        length = step * most / total
        shift = (index + 1) * _GOLDEN % 1 * (step - length)
        firsts = [bounds.start + int(number * step + shift) for number in range(_SLICES)]
        made = [Range(first, min(first + max(1, int(length)), bounds.end)) for first in firsts]
        parts[partition] = tuple(made)
    return parts


def late(keys: NDArray[np.int64], times_ms: NDArray[np.int64]) -> tuple[int, int]:
    """(records with a lower timestamp than one before them with the same key, by how many milliseconds at most)."""
    if not len(keys):
        return 0, 0
    values, rank = np.unique(times_ms, return_inverse=True)
    order = np.argsort(keys, kind="stable")
    group = np.concatenate(([0], np.cumsum(keys[order][1:] != keys[order][:-1])))
    height = (
        group * len(values) + rank[order]
    )  # every key above the one before it: a running maximum never crosses over
    top = np.maximum.accumulate(height)
    wrong = top > height
    by = values[top[wrong] % len(values)] - values[rank[order][wrong]]
    return int(np.count_nonzero(wrong)), int(by.max(initial=0))


class Slices:
    """Looks, in one task, at the records of its part of the slices; batches come in the order of the partition."""

    def __init__(self, slices: Mapping[int, tuple[Range, ...]]) -> None:
        self._slices = slices
        self._open: dict[tuple[int, Range], list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {}
        self.found: dict[int, tuple[int, int, int]] = {}
        """Per partition: records with a key and a timestamp, how many of them were late, by how many milliseconds at most."""

    def look(self, partition: int, batch: pa.RecordBatch) -> None:
        """Columns offset, time_ms, key (null: none). Slices that are over are done with: memory is that of one slice."""
        offsets = batch.column("offset").to_numpy()
        for part in self._slices.get(partition, ()):
            low, high = np.searchsorted(offsets, [part.start, part.end])
            if low < high:
                inside = batch.slice(low, high - low)
                times, keys = inside.column("time_ms").to_numpy(), inside.column("key")
                known = keys.is_valid().to_numpy(zero_copy_only=False) & (times >= 0)
                pair = keys.fill_null(0).to_numpy()[known], times[known]
                self._open.setdefault((partition, part), []).append(pair)
        for key in [key for key in self._open if key[1].end <= offsets[-1]]:
            self._close(*key)

    def rest(self) -> None:
        for key in list(self._open):
            self._close(*key)

    def _close(self, partition: int, part: Range) -> None:
        keys, times = (np.concatenate(columns) for columns in zip(*self._open.pop((partition, part)), strict=True))
        wrong, by = late(keys, times)
        records, before, most = self.found.get(partition, (0, 0, 0))
        self.found[partition] = records + len(keys), before + wrong, max(most, by)


def pack_times(positions: NDArray[np.int64], times_ms: NDArray[np.int64]) -> bytes:
    """Ascending positions in a bucket, and the timestamp at each."""
    return positions.astype("<u2").tobytes() + times_ms.astype("<i8").tobytes()


def unpack_times(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    count = len(data) // 10
    return np.frombuffer(data, "<u2", count).astype(np.int64), np.frombuffer(data, "<i8", count, 2 * count)


def by_hour(
    bucket: int, packed: Iterable[bytes], start: NDArray[np.int64], end: NDArray[np.int64], time_ms: NDArray[np.int64]
) -> dict[int, bytes]:
    """Hour of the source's timestamp -> latencies ("<i8", in ms) of a bucket's records.

    `packed`: see pack_times; the others: pieces of tiles, ascending, and when their receipt was written, -1: no single receipt claims them.
    Records of no such piece are left out.
    """
    parts = [unpack_times(each) for each in packed]
    if not parts or not len(start):
        return {}
    offsets = np.concatenate([positions for positions, _ in parts]) + (bucket << SHIFT)
    times = np.concatenate([times for _, times in parts])
    piece = np.searchsorted(start, offsets, side="right") - 1
    known = (piece >= 0) & (offsets < end[piece]) & (time_ms[piece] >= 0)
    times, piece = times[known], piece[known]
    hours = times - times % _HOUR_MS
    latencies = time_ms[piece] - times
    return {int(hour): latencies[hours == hour].astype("<i8").tobytes() for hour in np.unique(hours)}


def percentiles(hours: Iterable[tuple[int, bytes]]) -> tuple[LatencyRow, ...]:
    """From pairs as by_hour gives them, several of an hour perhaps: values that occur, the lowest that so many records do not exceed."""
    parts: dict[int, list[NDArray[np.int64]]] = {}
    for hour, latencies in hours:
        parts.setdefault(hour, []).append(np.frombuffer(latencies, "<i8"))
    rows = []
    for hour in sorted(parts):
        ordered = np.sort(np.concatenate(parts[hour]))
        at = [max(0, -(-len(ordered) * rank // 100) - 1) for rank in _RANKS]
        rows.append(LatencyRow(hour, len(ordered), *(float(ordered[each]) for each in at)))
    return tuple(rows)
