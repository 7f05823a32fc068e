"""One pass over a Kafka partition's records, in Arrow batches: which source records they name, which they should not name. Numpy only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from spark_batch.latency import Slices
from spark_batch.lineage import parse
from spark_batch.plan import DEAD_LETTERS, SOURCE
from spark_batch.scanned import Rows, What

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from spark_batch.latency import Sample
    from spark_batch.plan import Plan

_WHOLE = r"^(?P<topic>[^/]+)/\d{1,18}/\d{1,18}/\d{1,18}$"


class SourceScan:
    """Scans source partitions: columns partition, offset, time_ms (negative: none), key (its hash, null: none)."""

    def __init__(self, plan: Plan, topic: str, sample: Sample) -> None:
        self._numbers = {partition: number for number, (name, partition) in enumerate(plan.sources) if name == topic}
        self._sample = sample
        self._slices = {partition: parts for (name, partition), parts in sample.slices.items() if name == topic}

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, slices = Rows(SOURCE), Slices(self._slices)
        for batch in filter(len, batches):
            partition = _only_partition(batch)
            number = self._numbers[partition]
            offsets, times = batch.column("offset").to_numpy(), batch.column("time_ms").to_numpy()
            zeros = np.zeros(len(offsets), np.int64)
            rows.see(partition, zeros + number, zeros, offsets, offsets)
            drawn = self._sample.drawn(offsets) & (times >= 0)
            rows.times(partition, number, offsets[drawn], times[drawn])
            slices.look(partition, batch)
            yield from rows.overflow()
        slices.rest()
        for partition, found in slices.found.items():
            rows.tardy(partition, self._numbers[partition], *found)
        yield from rows.rest()


class OutputScan:
    """Scans partitions of an output topic, or of the dead letters: columns partition, offset, lineage (binary)."""

    def __init__(self, plan: Plan, topic: int) -> None:
        self._topic = topic
        self._topics = plan.source_topics
        highest = max((number for _, number in plan.sources), default=0)
        self._number = np.full((len(self._topics) + 1, highest + 2), -1, np.int64)
        """[topic, partition] -> number of the source partition; what is unknown ends in the last row or column."""
        for number, (name, partition) in enumerate(plan.sources):
            self._number[self._topics.index(name), partition] = number
        self._begin = np.array([*plan.begin, 0])
        self._committed = np.array([*plan.committed, 0])
        self._end = np.array([*plan.end, 0])
        self._lowest = np.array([*plan.never_claimed_below, 0])
        self._judged_below = np.array([*(plan.judged_below or (0,) * len(plan.sources)), 0])
        self._others = pa.array([name.encode() for name in sorted(plan.others)], pa.binary())
        name = plan.topic_of(topic)
        self._seen = {partition: end for (other, partition), end in plan.seen.items() if other == name}
        self._removed = {partition for other, partition in plan.removed if other == name}

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = Rows(self._topic)
        last: dict[int, tuple[int, int]] = {}
        for batch in filter(len, batches):
            partition = _only_partition(batch)
            places = batch.column("offset").to_numpy()
            texts = batch.column("lineage")
            rows.tally(What.COMMITTED, partition, len(places), int(places[0]))
            if texts.null_count:
                stamped = texts.is_valid()
                rows.tally(What.FOREIGN, partition, texts.null_count, int(places[0]))
                places, texts = places[stamped.to_numpy(zero_copy_only=False)], texts.filter(stamped)
            self._judge(partition, places, texts, rows, last)
            yield from rows.overflow()
        yield from rows.rest()

    def locate(self, texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(number of the source partition or -1, offset, index) of each lineage."""
        lineage = parse(texts, self._topics)
        column = np.minimum(lineage.partition, self._number.shape[1] - 1)
        return self._number[lineage.topic, column], lineage.offset, lineage.index

    def judged(
        self, source: NDArray[np.int64], offset: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """(orphans whatever the source holds, in flight, to be judged); the rest was judged before, or is not asked for."""
        orphan = (source < 0) | (offset >= self._end[source]) | (offset < self._lowest[source])
        flying = ~orphan & (offset >= self._committed[source])
        return orphan, flying, ~orphan & ~flying & (offset >= self._begin[source])

    def _of_others(self, texts: pa.Array) -> NDArray[np.bool_]:
        """Which lineages that are none of ours are whole and name a topic that there is: another pipeline writes here, too."""
        topics = pa.compute.struct_field(pa.compute.extract_regex(texts, _WHOLE), "topic")
        flags: NDArray[np.bool_] = pa.compute.is_in(topics, self._others).to_numpy(zero_copy_only=False)
        return flags

    def _judge(
        self,
        partition: int,
        places: NDArray[np.int64],
        texts: pa.Array,
        rows: Rows,
        last: dict[int, tuple[int, int]],
    ) -> None:
        source, offset, index = self.locate(texts)
        orphan, flying, judged = self.judged(source, offset)
        if (strange := np.flatnonzero(source < 0)).size:
            foreign = strange[self._of_others(texts.take(pa.array(strange)))]
            rows.tally(What.FOREIGN, partition, len(foreign), int(places[0]))
            orphan[foreign] = False
        for at in np.flatnonzero(orphan):
            rows.stray(What.ORPHAN, partition, int(places[at]), texts[int(at)].as_py())
        if partition in self._seen:
            late = ~orphan & ~flying & (offset < self._judged_below[source]) & (places >= self._seen[partition])
            for at in np.flatnonzero(late):
                rows.stray(What.LATE, partition, int(places[at]), texts[int(at)].as_py())
        if partition in self._removed:
            self._note_firsts(partition, np.flatnonzero(~orphan & (source >= 0)), places, source, offset, rows)
        if flying.any():
            rows.tally(What.IN_FLIGHT, partition, int(flying.sum()), int(places[flying][0]))
        if not (kept := judged | flying).all():
            places, source, offset, index = places[kept], source[kept], offset[kept], index[kept]
        if not len(places):
            return
        order = np.argsort(source, kind="stable")
        places, source, offset, index = places[order], source[order], offset[order], index[order]
        if self._topic != DEAD_LETTERS:  # theirs stand as they were noticed: refused outputs come last
            self._watch_order(partition, source, *self.ranks(source, offset, index), rows, last)
        if flying.any():
            judged = offset < self._committed[source]
            places, source, offset, index = places[judged], source[judged], offset[judged], index[judged]
        if len(places):
            rows.see(partition, source, index, offset, places)

    def _note_firsts(
        self,
        partition: int,
        ours: NDArray[np.int64],
        places: NDArray[np.int64],
        source: NDArray[np.int64],
        offset: NDArray[np.int64],
        rows: Rows,
    ) -> None:
        """The first output of each source partition. What the last audit judged does not count: driven again, it may stand before outputs
        of higher offsets that were removed. `ours`: positions of outputs of our sources.
        """
        known = ours[offset[ours] >= self._judged_below[source[ours]]]
        for number in np.flatnonzero(np.bincount(source[known])).tolist():
            if not rows.has_first(partition, number):
                at = known[np.argmax(source[known] == number)]
                rows.first(partition, number, int(offset[at]), int(places[at]))

    def ranks(
        self, source: NDArray[np.int64], offset: NDArray[np.int64], index: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(offset, index) by which outputs must ascend: those in flight behind all others, and in whatever order among themselves. Whether
        what is judged now stands behind them no later audit looks at: it judges the others.
        """
        end = self._committed[source]
        return np.minimum(offset, end), np.where(offset < end, index, 0)

    def _watch_order(
        self,
        partition: int,
        source: NDArray[np.int64],
        offset: NDArray[np.int64],
        index: NDArray[np.int64],
        rows: Rows,
        last: dict[int, tuple[int, int]],
    ) -> None:
        """Note source partitions whose outputs do not ascend here. What exactly is wrong with them, order.py finds out."""
        same = source[1:] == source[:-1]
        down = same & ((offset[1:] < offset[:-1]) | ((offset[1:] == offset[:-1]) & (index[1:] < index[:-1])))
        wrong = set(source[1:][down].tolist())
        heads = np.flatnonzero(np.concatenate(([True], ~same)))
        tails = np.append(heads[1:], len(source)) - 1
        for head, tail in zip(heads.tolist(), tails.tolist(), strict=True):
            number = int(source[head])
            if (int(offset[head]), int(index[head])) < last.get(number, (-1, -1)):
                wrong.add(number)
            last[number] = int(offset[tail]), int(index[tail])
        for number in wrong:
            rows.disorder(partition, number)


def _only_partition(batch: pa.RecordBatch) -> int:
    """A task reads one Kafka partition, or a part of one: its order is the partition's order."""
    partitions = batch.column("partition").to_numpy()
    assert (partitions == partitions[0]).all(), "a batch of records of several Kafka partitions"
    return int(partitions[0])
