"""The two sides of a comparison by content: what source records must become, and what stands in the topics. Prints only."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.bitmaps import SHIFT
from spark_batch.model import Range
from spark_batch.outcomes import fingerprint
from spark_batch.plan import DEAD_LETTERS, output_ranges
from spark_batch.records import lineage_of_dead_letter, lineage_of_output
from spark_batch.retransform import expectations, headers_of, load, records_of, ship
from spark_batch.scan import OutputScan
from spark_batch.tasks import in_batches
from spark_batch.topics import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from spark_batch.context import Context
    from spark_batch.model import Partition
    from spark_batch.plan import Plan
    from spark_batch.retransform import Shipped

EXPECTED, FOUND, PIECE, FLYING, BEFORE = 1, 2, 3, 4, 5
"""What a row of a comparison is. FLYING: as EXPECTED, of a source record at or beyond C; BEFORE: as FOUND, and perhaps of a source record
that the last audit judged. Both only without lineage (multiset.py)."""
ROWS = (
    "what int, source int, bucket bigint, offset bigint, index bigint, topic int, partition int, place bigint, print binary, "
    "time_ms bigint, error string"
)
_ARROW = pa.schema(
    [
        ("what", pa.int32()),
        ("source", pa.int32()),
        ("bucket", pa.int64()),
        ("offset", pa.int64()),
        ("index", pa.int64()),
        ("topic", pa.int32()),
        ("partition", pa.int32()),
        ("place", pa.int64()),
        ("print", pa.binary()),
        ("time_ms", pa.int64()),
        ("error", pa.string()),
    ]
)
NOTHING = -1
"""Index of the row of a source record that yields nothing."""


_OWN = (
    "reckon.error.class",
    "reckon.error.message",
    "reckon.step",
    "reckon.pipeline.line",
    "reckon.source.topic",
    "reckon.source.partition",
    "reckon.source.offset",
    "reckon.worker.version",
)


class Ranges:
    """Source offsets to look at: ascending ranges per number of a source partition."""

    def __init__(self, ranges: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        self.ranges = {number: tuple(each) for number, each in ranges.items() if each}
        self._borders = {number: np.array(each, np.int64).reshape(-1) for number, each in self.ranges.items()}

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def contain(self, source: Any, offset: Any) -> Any:
        """Flags for two arrays."""
        inside = np.zeros(len(source), np.bool_)
        for number, borders in self._borders.items():
            rows = source == number
            inside[rows] = np.searchsorted(borders, offset[rows], side="right") % 2 == 1
        return inside

    def envelope(self, plan: Plan) -> dict[tuple[str, int], Range]:
        available = plan.source_ranges()
        spans = {plan.sources[n]: (each[0][0], each[-1][1]) for n, each in self.ranges.items()}
        return {
            partition: Range(max(low, available[partition].start), min(high, available[partition].end))
            for partition, (low, high) in spans.items()
            if partition in available
        }


def _columns(lineage: Column | None = None) -> list[Column]:
    columns = [F.col(name) for name in ("partition", "offset", "key", "value", "headers")]
    columns += [F.unix_millis("timestamp").alias("time_ms"), F.col("timestampType").alias("time_type")]
    return columns if lineage is None else [*columns, lineage.alias("lineage")]


def expected_rows(context: Context, plan: Plan, ranges: Ranges) -> DataFrame:
    shipped = ship(context.loaded)
    splits = 2 * context.spark.sparkContext.defaultParallelism
    envelope = ranges.envelope(plan)
    parts = []
    for topic in plan.source_topics:
        of_topic = {partition: bounds for partition, bounds in envelope.items() if partition[0] == topic}
        records = read_topic(context.spark, context.kafka, of_topic, splits=splits).select(*_columns())
        parts.append(in_batches(records, _transformer(plan, ranges, topic, shipped), ROWS))
    return reduce(lambda one, other: one.unionByName(other), parts)


def _transformer(plan: Plan, ranges: Ranges, topic: str, shipped: Shipped) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    numbers = {name: number for number, name in enumerate(plan.outputs)}
    sources = {partition: number for number, (name, partition) in enumerate(plan.sources) if name == topic}

    def transform(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compiled = load(shipped)
        for batch in filter(len, batches):
            partition = batch.column("partition").to_numpy()
            number = np.array([sources[each] for each in partition.tolist()], np.int64)
            wanted = batch.filter(pa.array(ranges.contain(number, batch.column("offset").to_numpy())))
            rows: list[tuple[Any, ...]] = []
            for record, outputs, letter in expectations(compiled, records_of(wanted, topic), numbers):
                offset = record.offset()
                where = (EXPECTED, sources[record.partition()], offset >> SHIFT, offset)
                rows += [(*where, *each) for each in outputs]
                if letter is not None:
                    rows.append((*where, *letter))
                elif not outputs:
                    rows.append((*where, NOTHING, 0, -1, -1, b"", -1, ""))
            yield to_batch(rows, _ARROW)

    return transform


def found_rows(context: Context, plan: Plan, ranges: Ranges, topics: Sequence[int]) -> DataFrame:
    """Of the topics with these numbers: what names a source record within the ranges."""
    parts = []
    for number in topics:
        records = read_topic(context.spark, context.kafka, output_ranges(context, plan.topic_of(number)))
        lineage = lineage_of_dead_letter() if number == DEAD_LETTERS else lineage_of_output()
        columns = records.select(*_columns(lineage)).where("lineage IS NOT NULL")
        parts.append(in_batches(columns, _printer(plan, ranges, number), ROWS))
    return reduce(lambda one, other: one.unionByName(other), parts)


def _printer(plan: Plan, ranges: Ranges, topic: int) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    def print_outputs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        scan = OutputScan(plan, topic)
        for batch in filter(len, batches):
            source, offset, index = scan.locate(batch.column("lineage"))
            _, _, judged = scan.judged(source, offset)
            wanted = judged & ranges.contain(source, offset)
            chosen = batch.filter(pa.array(wanted))
            origins = zip(source[wanted].tolist(), offset[wanted].tolist(), index[wanted].tolist(), strict=True)
            rows = [
                (FOUND, number, at >> SHIFT, at, nth, *stored)
                for (number, at, nth), stored in zip(origins, _prints(chosen, topic), strict=True)
            ]
            yield to_batch(rows, _ARROW)

    return print_outputs


def unnamed_rows(context: Context, plan: Plan, settled: Mapping[Partition, int]) -> DataFrame:
    """All records of the output topics, whatever they name: source, bucket, offset and index are null. `settled`: see BEFORE, per output
    partition the offset below which its records are that.
    """
    parts = []
    for number, topic in enumerate(plan.outputs):
        below = {partition: end for (name, partition), end in settled.items() if name == topic}
        records = read_topic(context.spark, context.kafka, output_ranges(context, topic)).select(*_columns())
        parts.append(in_batches(records, _unnamed(number, below), ROWS))
    return reduce(lambda one, other: one.unionByName(other), parts)


def _unnamed(topic: int, below: Mapping[int, int]) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    def print_outputs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in filter(len, batches):
            rows = [
                (BEFORE if stored[2] < below.get(stored[1], 0) else FOUND, None, None, None, None, *stored)
                for stored in _prints(batch, topic)
            ]
            yield to_batch(rows, _ARROW)

    return print_outputs


def _prints(batch: pa.RecordBatch, topic: int) -> Iterator[tuple[int, int, int, bytes, int, str]]:
    """The fields of Stored, but its index, of each record."""
    names = ("partition", "offset", "key", "value", "time_ms", "time_type")
    columns = (batch.column(name).to_pylist() for name in names)
    for record, headers in zip(zip(*columns, strict=True), headers_of(batch), strict=True):
        partition, place, key, value, time_ms, time_type = record
        kept, error = _own_off(headers or [], topic)
        yield topic, partition, place, fingerprint(value, key, kept), -1 if time_type else time_ms, error


def _own_off(headers: list[tuple[str, Any]], topic: int) -> tuple[list[tuple[str, bytes | None]], str]:
    """(headers without what the worker added, error class of a dead letter). The worker's stand last: a source record may have had
    headers of the same names.
    """
    if topic != DEAD_LETTERS:
        return [each for each in headers if each[0] != "reckon.source"], ""
    own = {name: at for at, (name, _) in enumerate(headers) if name in _OWN}
    error = headers[own["reckon.error.class"]][1] if "reckon.error.class" in own else b""
    taken = set(own.values())
    return [each for at, each in enumerate(headers) if at not in taken], (error or b"").decode("utf-8", "replace")


def to_batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )
