"""What a task of the scan hands over, and how it is collected: bitmaps, times, tallies, strays. Memory: OPEN_BUCKETS bitmaps."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from spark_batch.bitmaps import SHIFT, SIZE, Seen, pack
from spark_batch.latency import pack_times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

OPEN_BUCKETS = 512
"""Buckets of bitmaps that a task keeps at a time: 32 KB each."""


class What(IntEnum):
    """What a row of a scan is."""

    BITS = 1
    """Of one bucket of a source partition: what was seen in outputs of one topic and index; n of them, at places low to high."""
    COMMITTED = 2
    IN_FLIGHT = 3
    """Outputs of source records at or beyond C; `low` is the first one's place."""
    FOREIGN = 4
    """Without lineage, or with another pipeline's."""
    ORPHAN = 5
    """One output, at place `low`, with its lineage as text: no source record can have been its source."""
    LATE = 7
    """As ORPHAN; its source record was judged by the last audit, and this stands behind all that that one has read."""
    DISORDER = 6
    """Outputs of one source partition that do not stand in its order, in this partition."""
    FIRST = 10
    """The first output of a source partition that retention left in a partition: its source offset is `high`, its place `low`."""
    TIMES = 8
    """Of one bucket of a source partition: timestamps of source records, see latency.pack_times."""
    TARDY = 9
    """Of a source partition: n records with a key were looked at, `low` of them came late within it, by `high` milliseconds at most."""


SCANNED = (
    "what int, topic int, partition int, source int, index bigint, bucket bigint, n bigint, low bigint, high bigint, once binary, "
    "twice binary, times binary, text string"
)
_ARROW = pa.schema(
    [
        ("what", pa.int32()),
        ("topic", pa.int32()),
        ("partition", pa.int32()),
        ("source", pa.int32()),
        ("index", pa.int64()),
        ("bucket", pa.int64()),
        ("n", pa.int64()),
        ("low", pa.int64()),
        ("high", pa.int64()),
        ("once", pa.binary()),
        ("twice", pa.binary()),
        ("times", pa.binary()),
        ("text", pa.string()),
    ]
)


_NONE = (None, None, None)
"""No bitmaps, no times."""


class Rows:
    """What one task has seen and not yet handed over."""

    def __init__(self, topic: int) -> None:
        self._topic = topic
        self._seen: dict[tuple[int, int, int, int], Seen] = {}
        self._tallies: dict[tuple[What, int], list[int]] = {}
        self._disorder: set[tuple[int, int]] = set()
        self._firsts: dict[tuple[int, int], tuple[int, int]] = {}
        self._ready: list[tuple[Any, ...]] = []

    def see(
        self,
        partition: int,
        source: NDArray[np.int64],
        index: NDArray[np.int64],
        offset: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> None:
        bucket = offset >> SHIFT
        changes = (source[1:] != source[:-1]) | (bucket[1:] != bucket[:-1]) | (index[1:] != index[:-1])
        if np.count_nonzero(changes) > len(offset) // 16:
            order = np.lexsort((index, bucket, source))
            source, index, offset, places, bucket = (
                source[order],
                index[order],
                offset[order],
                places[order],
                bucket[order],
            )
            changes = (source[1:] != source[:-1]) | (bucket[1:] != bucket[:-1]) | (index[1:] != index[:-1])
        starts = np.flatnonzero(np.concatenate(([True], changes)))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(offset)], strict=True):
            key = (partition, int(source[start]), int(index[start]), int(bucket[start]))
            seen = self._seen.get(key)
            if seen is None:
                seen = self._seen[key] = Seen()
            seen.add(offset[start:end] & (SIZE - 1), places[start:end])

    def tally(self, what: What, partition: int, count: int, low: int) -> None:
        entry = self._tallies.setdefault((what, partition), [0, low])
        entry[0] += count

    def disorder(self, partition: int, source: int) -> None:
        self._disorder.add((partition, source))

    def has_first(self, partition: int, source: int) -> bool:
        return (partition, source) in self._firsts

    def first(self, partition: int, source: int, offset: int, place: int) -> None:
        self._firsts[partition, source] = place, offset

    def stray(self, what: What, partition: int, place: int, text: bytes) -> None:
        shown = text[:300].decode("utf-8", "replace")
        self._ready.append((what, self._topic, partition, -1, 0, 0, 1, place, place, *_NONE, shown))

    def times(self, partition: int, source: int, offset: NDArray[np.int64], times_ms: NDArray[np.int64]) -> None:
        buckets = offset >> SHIFT
        for bucket in np.unique(buckets).tolist():
            low, high = np.searchsorted(buckets, [bucket, bucket + 1])
            packed = pack_times(offset[low:high] & (SIZE - 1), times_ms[low:high])
            place = (partition, source, 0, bucket)
            self._ready.append((What.TIMES, self._topic, *place, int(high - low), 0, 0, None, None, packed, None))

    def tardy(self, partition: int, source: int, records: int, late: int, most_ms: int) -> None:
        self._ready.append((What.TARDY, self._topic, partition, source, 0, 0, records, late, most_ms, *_NONE, None))

    def overflow(self) -> Iterator[pa.RecordBatch]:
        """What must be handed over so that memory stays flat: the buckets that were begun first."""
        if len(self._seen) > OPEN_BUCKETS:
            for key in list(self._seen)[: len(self._seen) - OPEN_BUCKETS // 2]:
                self._hand_over(key, self._seen.pop(key))
        if len(self._ready) >= OPEN_BUCKETS // 4:
            yield self._batch()

    def rest(self) -> Iterator[pa.RecordBatch]:
        for key, seen in self._seen.items():
            self._hand_over(key, seen)
        for (what, partition), (count, low) in self._tallies.items():
            self._ready.append((what, self._topic, partition, -1, 0, 0, count, low, low, *_NONE, None))
        for (partition, source), (place, offset) in self._firsts.items():
            self._ready.append((What.FIRST, self._topic, partition, source, 0, 0, 1, place, offset, *_NONE, None))
        for partition, source in self._disorder:
            self._ready.append((What.DISORDER, self._topic, partition, source, 0, 0, 1, 0, 0, *_NONE, None))
        yield self._batch()

    def _hand_over(self, key: tuple[int, int, int, int], seen: Seen) -> None:
        partition, source, index, bucket = key
        twice = None if seen.twice is None else pack(seen.twice)
        bits = (seen.count, seen.low, seen.high, pack(seen.once), twice, None, None)
        self._ready.append((What.BITS, self._topic, partition, source, index, bucket, *bits))

    def _batch(self) -> pa.RecordBatch:
        columns = list(zip(*self._ready, strict=True)) or [()] * len(_ARROW)
        self._ready = []
        return pa.record_batch(
            [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)], schema=_ARROW
        )
