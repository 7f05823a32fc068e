"""Depth content: the transform runs again over ranges of the source, and what it yields is held against what stands in the topics.

    source ranges --(the transform, in the tasks that read Kafka)--> what must be       \
    outputs, dead letters whose lineage falls into the ranges -----> prints of what is   > by source partition and bucket: verdict per record
    pieces of tiles ----------------------------------------------> whose figures       /

Only prints (48 bytes) are shuffled. Memory: the prints of 32,768 source records at a time.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.bitmaps import SHIFT
from spark_batch.model import Kind, Range, Verdict
from spark_batch.outcomes import Expected, Stored, fingerprint, judge_record
from spark_batch.plan import DEAD_LETTERS, output_ranges
from spark_batch.records import lineage_of_dead_letter, lineage_of_output
from spark_batch.retransform import expectations, headers_of, load, records_of, ship
from spark_batch.scan import OutputScan
from spark_batch.tiling import width
from spark_batch.topics import read_topic
from spark_batch.verdicts import FIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from spark_batch.context import Context
    from spark_batch.outcomes import Outcome
    from spark_batch.plan import Plan
    from spark_batch.retransform import Shipped

_EXPECTED, _FOUND, _PIECE = 1, 2, 3
_ROWS = (
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
WAYS = 5000
"""That the faulty records of one receipt's range may have been counted."""
_NOTHING = -1
"""Index of the row of a source record that yields nothing."""

CONTENT = (
    "what string, kind string, source int, offset bigint, topic int, partition int, place bigint, n bigint, detail string, tile bigint, "
    "start bigint, end bigint, current boolean, figures array<bigint>, expected array<bigint>, found array<bigint>"
)
"""Three kinds of rows. "count": n records got the verdict `kind` in the stretch from `start`. "fault": a finding `kind` about the output at
topic, partition, place, or about the source record where topic is null. "figures": of a piece: what the receipt of its tile says, what a
right one would say of the piece, and what the topics hold of it. "doubt": how (in `expected`) the figures would change if the receipt had
counted the source record at `offset` as it stands, not as it must be."""
_CONTENT_ARROW = pa.schema(
    [
        ("what", pa.string()),
        ("kind", pa.string()),
        ("source", pa.int32()),
        ("offset", pa.int64()),
        ("topic", pa.int32()),
        ("partition", pa.int32()),
        ("place", pa.int64()),
        ("n", pa.int64()),
        ("detail", pa.string()),
        ("tile", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("current", pa.bool_()),
        ("figures", pa.list_(pa.int64())),
        ("expected", pa.list_(pa.int64())),
        ("found", pa.list_(pa.int64())),
    ]
)

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


def judge_content(
    context: Context, plan: Plan, ranges: Ranges, drills: DataFrame, unsure: Mapping[int, Verdict]
) -> DataFrame:
    """Rows as in CONTENT. `drills`: rows "drill" of records.JUDGED, which lie in `ranges`; `unsure`: see outcomes.judge_record."""
    parts = [_expected(context, plan, ranges), _found(context, plan, ranges)]
    rows = reduce(lambda one, other: one.unionByName(other), parts)
    pieces = drills.select(
        F.lit(_PIECE).alias("what"),
        "source",
        F.shiftright("start", SHIFT).alias("bucket"),
        "tile",
        "start",
        "end",
        "current",
        "figures",
    )
    both = rows.unionByName(pieces, allowMissingColumns=True)
    return both.groupBy("source", "bucket").applyInArrow(_judge_bucket(plan, dict(unsure)), CONTENT)


def _columns(lineage: Column | None = None) -> list[Column]:
    columns = [F.col(name) for name in ("partition", "offset", "key", "value", "headers")]
    columns += [F.unix_millis("timestamp").alias("time_ms"), F.col("timestampType").alias("time_type")]
    return columns if lineage is None else [*columns, lineage.alias("lineage")]


def _expected(context: Context, plan: Plan, ranges: Ranges) -> DataFrame:
    shipped = ship(context.loaded)
    splits = 2 * context.spark.sparkContext.defaultParallelism
    envelope = ranges.envelope(plan)
    parts = []
    for topic in plan.source_topics:
        of_topic = {partition: bounds for partition, bounds in envelope.items() if partition[0] == topic}
        records = read_topic(context.spark, context.kafka, of_topic, splits=splits).select(*_columns())
        parts.append(records.mapInArrow(_transformer(plan, ranges, topic, shipped), _ROWS))
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
                where = (_EXPECTED, sources[record.partition()], offset >> SHIFT, offset)
                rows += [(*where, *each) for each in outputs]
                if letter is not None:
                    rows.append((*where, *letter))
                elif not outputs:
                    rows.append((*where, _NOTHING, 0, -1, -1, b"", -1, ""))
            yield _batch(rows, _ARROW)

    return transform


def _found(context: Context, plan: Plan, ranges: Ranges) -> DataFrame:
    parts = []
    for number, topic in [*enumerate(plan.outputs), (DEAD_LETTERS, plan.dead_letters)]:
        records = read_topic(context.spark, context.kafka, output_ranges(context, topic))
        lineage = lineage_of_dead_letter() if number == DEAD_LETTERS else lineage_of_output()
        columns = records.select(*_columns(lineage)).where("lineage IS NOT NULL")
        parts.append(columns.mapInArrow(_printer(plan, ranges, number), _ROWS))
    return reduce(lambda one, other: one.unionByName(other), parts)


def _printer(plan: Plan, ranges: Ranges, topic: int) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    def print_outputs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        scan = OutputScan(plan, topic)
        for batch in filter(len, batches):
            source, offset, index = scan.locate(batch.column("lineage"))
            _, _, judged = scan.judged(source, offset)
            wanted = judged & ranges.contain(source, offset)
            chosen = batch.filter(pa.array(wanted))
            names = ("partition", "offset", "key", "value", "time_ms", "time_type")
            columns = (chosen.column(name).to_pylist() for name in names)
            origins = zip(source[wanted].tolist(), offset[wanted].tolist(), index[wanted].tolist(), strict=True)
            rows: list[tuple[Any, ...]] = []
            for origin, record, headers in zip(origins, zip(*columns, strict=True), headers_of(chosen), strict=True):
                partition, place, key, value, time_ms, time_type = record
                kept, error = _own_off(headers or [], topic)
                stored = Stored(
                    origin[2],
                    topic,
                    partition,
                    place,
                    fingerprint(value, key, kept),
                    -1 if time_type else time_ms,
                    error,
                )
                rows.append((_FOUND, origin[0], origin[1] >> SHIFT, origin[1], *stored))
            yield _batch(rows, _ARROW)

    return print_outputs


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


def _judge_bucket(plan: Plan, unsure: dict[int, Verdict]) -> Callable[[pa.Table], pa.Table]:
    topics = len(plan.outputs)

    def judge(table: pa.Table) -> pa.Table:
        source = table["source"][0].as_py()
        pieces = table.filter(pa.compute.equal(table["what"], _PIECE)).sort_by("start")
        starts, ends = pieces["start"].to_numpy(), pieces["end"].to_numpy()
        tiles, current = pieces["tile"].to_pylist(), pieces["current"].to_pylist()
        figures_of = pieces["figures"].to_pylist()
        figures = np.zeros((2, len(starts), FIXED + topics + 1), np.int64)
        step = width(plan.begin[source], plan.committed[source])
        counts: dict[tuple[int, Verdict], int] = {}
        rows: list[tuple[Any, ...]] = []
        for offset, (expected, outputs, letters) in _by_offset(table).items():
            piece = int(np.searchsorted(starts, offset, side="right")) - 1
            if piece < 0 or offset >= ends[piece]:
                continue
            outcome = judge_record(expected, outputs, letters, unsure, current=current[piece])
            for kind, output, detail in outcome.faults:
                place = (None,) * 3 if output is None else (output.topic, output.partition, output.place)
                rows.append(("fault", str(kind), source, offset, *place, 1, detail, *(None,) * 7))
            if outcome.verdict is None:
                continue
            stretch = max(offset // step * step, plan.begin[source])
            counts[stretch, outcome.verdict] = counts.get((stretch, outcome.verdict), 0) + 1
            must, holds, *others = _readings(outcome, outputs, letters, topics)
            figures[0, piece] += must
            figures[1, piece] += holds
            if figures_of[piece]:
                steps = {tuple((other - must).tolist()) for other in (holds, *others)} - {(0,) * len(must)}
                tile = tiles[piece], int(starts[piece]), int(ends[piece]), current[piece], None
                rows += [("doubt", None, source, offset, *(None,) * 5, *tile, list(step), None) for step in steps]
        rows += [
            ("count", str(verdict), source, None, None, None, None, n, None, None, stretch, *(None,) * 5)
            for (stretch, verdict), n in counts.items()
        ]
        rows += [
            (
                "figures",
                None,
                source,
                *(None,) * 4,
                1,
                None,
                tile,
                int(low),
                int(high),
                now,
                claimed,
                one.tolist(),
                two.tolist(),
            )
            for tile, low, high, now, claimed, one, two in zip(
                tiles, starts, ends, current, figures_of, *figures, strict=True
            )
            if claimed
        ]
        batch = _batch(rows, _CONTENT_ARROW)
        return pa.Table.from_batches([batch], _CONTENT_ARROW)

    return judge


def _by_offset(table: pa.Table) -> dict[int, tuple[Expected | None, list[Stored], list[Stored]]]:
    """Per source offset what must be and what is: outputs, dead letters."""
    rows = table.filter(pa.compute.not_equal(table["what"], _PIECE))
    names = ("what", "offset", "index", "topic", "partition", "place", "print", "time_ms", "error")
    must: dict[int, tuple[list[Stored], list[Stored]]] = {}
    found: dict[int, tuple[list[Stored], list[Stored]]] = {}
    for what, offset, *fields in zip(*(rows[name].to_pylist() for name in names), strict=True):
        stored = Stored(*fields)
        side = (must if what == _EXPECTED else found).setdefault(offset, ([], []))
        if stored.nth != _NOTHING:
            side[stored.topic == DEAD_LETTERS].append(stored)
    every = {}
    for offset in sorted(must.keys() | found.keys()):
        outputs, letters = must.get(offset, ([], []))
        expected = Expected(sorted(outputs), letters[0] if letters else None) if offset in must else None
        every[offset] = (expected, *found.get(offset, ([], [])))
        every[offset][2].sort(key=lambda each: (each.partition, each.place))
    return every


def _readings(outcome: Outcome, outputs: Sequence[Stored], letters: Sequence[Stored], topics: int) -> list[Any]:
    """A record as the figures of a receipt may count it: as it must be, as it stands, and where nothing stands, as a dead letter."""
    there = {(each.nth, each.topic): each for each in outputs}.values()
    readings = [(outcome.became.outputs, outcome.became.letter is not None), (there, bool(letters))]
    if not outputs and not letters:
        readings.append(((), True))  # it may have been one whose outputs could not be delivered
    counted = []
    for written, dead in readings:
        figures = np.zeros(FIXED + topics + 1, np.int64)
        figures[:FIXED] = 1, not written and not dead, dead
        for each in written:
            figures[FIXED + each.topic] += 1
        counted.append(figures)
    return counted


def explained(difference: Sequence[int], steps: Iterable[Iterable[Sequence[int]]]) -> bool:
    """Whether a receipt that differs so from what must be has counted some of the faulty records otherwise: one step per record, or none.

    Where there are too many ways to try, it is taken for explained: the records themselves are findings anyway.
    """
    reached = {tuple(difference)}
    for alternatives in steps:
        reached |= {
            tuple(have - step for have, step in zip(one, other, strict=True))
            for one in reached
            for other in alternatives
        }
        if len(reached) > WAYS:
            return True
    return (0,) * len(difference) in reached


def mismatches(rows: DataFrame) -> DataFrame:
    """Receipts whose figures cannot be told from what must be and what is there: columns kind, source, start, end, detail."""

    def look(table: pa.Table) -> pa.Table:
        doubts: dict[int, dict[int, list[list[int]]]] = {}
        doubtful = table.filter(pa.compute.equal(table["what"], "doubt"))
        columns = (doubtful[name].to_pylist() for name in ("tile", "offset", "expected"))
        for tile, offset, step in zip(*columns, strict=True):
            doubts.setdefault(tile, {}).setdefault(offset, []).append(step)
        table = table.filter(pa.compute.equal(table["what"], "figures"))
        table = table.sort_by([("tile", "ascending"), ("start", "ascending")])
        tile_of = table["tile"].to_numpy()
        _, first = np.unique(tile_of, return_index=True)
        claimed, expected, found = (
            np.array(table[name].to_pylist(), np.int64) for name in ("figures", "expected", "found")
        )
        wrong: list[tuple[Any, ...]] = []
        for low, high in pairwise([*first.tolist(), len(tile_of)]):
            says, must, holds = claimed[low], expected[low:high].sum(axis=0), found[low:high].sum(axis=0)
            now = table["current"][low].as_py()
            if (says == must).all() or (not now and (says == holds).all()):
                continue
            steps = doubts.get(int(tile_of[low]), {})
            if now and explained((says - must).tolist(), steps.values()):
                continue
            lacking = not now and (holds[2:] < says[2:]).any() and not (holds[2:] > says[2:]).any()
            kind = Kind.MISSING if lacking else Kind.RECEIPT_MISMATCH
            rest = (
                f", there should be {_sentence(must)}" if now else "; which ones another transform wrote is not known"
            )
            detail = f"the receipt says {_sentence(says)}; there are {_sentence(holds)}{rest}"
            span = table["start"][low].as_py(), table["end"][high - 1].as_py()
            wrong.append((str(kind), table["source"][0].as_py(), *span, detail))
        return pa.Table.from_batches([_batch(wrong, _MISMATCHES)], _MISMATCHES)

    ddl = "kind string, source int, start bigint, end bigint, detail string"
    return rows.where("what IN ('figures', 'doubt')").groupBy("source").applyInArrow(look, ddl)


_MISMATCHES = pa.schema(
    [("kind", pa.string()), ("source", pa.int32()), ("start", pa.int64()), ("end", pa.int64()), ("detail", pa.string())]
)


def _sentence(figures: Any) -> str:
    read, filtered, dead, *written = figures.tolist()
    return f"{read} read, {filtered} filtered, {dead} dead-lettered, {sum(written)} written"


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )
