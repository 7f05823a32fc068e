"""Order: the outputs of one source partition stand in its order in every output partition; by offset, and by index within a record.

The scan notices where that does not hold (scan.py), also between a record that is judged and one in flight. Only there is read once more.
What is at fault for another reason is left out: a copy that came late, or an orphan, would make everything around it look displaced.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from spark_batch.plan import output_ranges
from spark_batch.records import lineage_of_output
from spark_batch.scan import OutputScan
from spark_batch.tasks import in_batches, in_groups
from spark_batch.topics import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet
    from typing import Any

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from spark_batch.context import Context
    from spark_batch.plan import Plan

Pair: TypeAlias = "tuple[int, int, int]"
"""(number of an output topic, its partition, number of a source partition)"""

PLACES = "topic int, partition int, source int, offset bigint, index bigint, place bigint"
_ARROW = pa.schema(
    [
        ("topic", pa.int32()),
        ("partition", pa.int32()),
        ("source", pa.int32()),
        ("offset", pa.int64()),
        ("index", pa.int64()),
        ("place", pa.int64()),
    ]
)


def displaced(offset: NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the fewest elements without which (offset, index) does not descend; of two that changed places, the one that came late.

    That is what a longest ascending subsequence leaves over. Elements with nothing greater before and nothing less behind them are in every
    such subsequence, so only the others are looked at one by one.
    """
    order = np.lexsort((index, offset))
    changes = (offset[order][1:] != offset[order][:-1]) | (index[order][1:] != index[order][:-1])
    rank = np.empty(len(offset), np.int64)
    rank[order] = np.concatenate(([0], np.cumsum(changes))) if len(order) else []
    before = np.maximum.accumulate(rank)
    behind = np.minimum.accumulate(rank[::-1])[::-1]
    unsure = np.flatnonzero((before > rank) | (behind < rank))
    # Backwards, so that of two equally long subsequences the one is kept that has the elements which came early.
    values = (-rank[unsure][::-1]).tolist()
    tails: list[int] = []
    at: list[int] = []
    previous: list[int] = []
    for number, value in enumerate(values):
        length = bisect_right(tails, value)
        previous.append(at[length - 1] if length else -1)
        tails[length:] = [value, *tails[length + 1 :]] if length < len(tails) else [value]
        at[length:] = [number, *at[length + 1 :]] if length < len(at) else [number]
    kept = np.zeros(len(values), np.bool_)
    number = at[-1] if at else -1
    while number >= 0:
        kept[number] = True
        number = previous[number]
    return unsure[::-1][~kept][::-1]


def reordered(context: Context, plan: Plan, pairs: AbstractSet[Pair], faulty: DataFrame) -> DataFrame:
    """The displaced ones among the outputs of `pairs`: rows as in PLACES.

    `faulty`: columns source, offset of source records whose outputs are left out.

    Memory: 24 bytes per output of a pair, in the task that looks at it.
    """
    parts = []
    for number in sorted({topic for topic, _, _ in pairs}):
        topic = plan.topic_of(number)
        wanted = {(partition, source) for each, partition, source in pairs if each == number}
        partitions = {partition for partition, _ in wanted}
        ranges = {p: r for p, r in output_ranges(context, topic).items() if p[1] in partitions}
        lineage = lineage_of_output()
        records = read_topic(context.spark, context.kafka, ranges).select(
            "partition", "offset", lineage.alias("lineage")
        )
        parts.append(in_batches(records.where("lineage IS NOT NULL"), _locator(plan, number, wanted), PLACES))
    places = reduce(lambda one, other: one.unionByName(other), parts)
    rest = places.join(faulty, ["source", "offset"], "left_anti").select(*_ARROW.names)
    return in_groups(rest.groupBy("topic", "partition", "source"), _late(plan), PLACES)


def _locator(plan: Plan, topic: int, wanted: set[tuple[int, int]]) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    def locate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        scan = OutputScan(plan, topic)
        for batch in filter(len, batches):
            partition = batch.column("partition").to_numpy()
            source, offset, index = scan.locate(batch.column("lineage"))
            mine = [source for each, source in wanted if each == partition[0]]
            _, flying, judged = scan.judged(source, offset)
            take = (judged | flying) & np.isin(source, mine)
            columns = [np.full(len(source), topic), partition, source, offset, index, batch.column("offset").to_numpy()]
            arrays = [pa.array(column[take], field.type) for column, field in zip(columns, _ARROW, strict=True)]
            yield pa.record_batch(arrays, schema=_ARROW)

    return locate


def _late(plan: Plan) -> Callable[[pa.Table], pa.Table]:
    def find(table: pa.Table) -> pa.Table:
        table = table.sort_by("place")
        columns = (table[name].to_numpy() for name in ("source", "offset", "index"))
        return table.take(pa.array(displaced(*OutputScan(plan, table["topic"][0].as_py()).ranks(*columns))))

    return find
