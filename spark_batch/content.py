"""Depth content: the transform runs again over ranges of the source, and what it yields is held against what stands in the topics.

    source ranges --(the transform, in the tasks that read Kafka)--> what must be        \
    outputs, dead letters whose lineage falls into the ranges -----> prints of what is    > by source partition and bucket: a verdict each
    pieces of tiles -----------------------------------------------> whose figures       /

Only prints (48 bytes) are shuffled. Memory: the prints of 32,768 source records at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.bitmaps import SHIFT
from spark_batch.figures import readings
from spark_batch.outcomes import Expected, Stored, judge_record
from spark_batch.plan import DEAD_LETTERS
from spark_batch.sides import EXPECTED, NOTHING, PIECE, Ranges, expected_rows, found_rows, to_batch
from spark_batch.tasks import in_groups
from spark_batch.tiling import width
from spark_batch.unsure import shortage
from spark_batch.verdicts import FIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from spark_batch.context import Context
    from spark_batch.model import Verdict
    from spark_batch.plan import Plan
    from spark_batch.unsure import Unsure

Sides: TypeAlias = "tuple[Expected | None, list[Stored], list[Stored]]"
"""Of a source record: what must be, outputs, dead letters."""

CONTENT = (
    "what string, kind string, source int, offset bigint, topic int, partition int, place bigint, n bigint, detail string, tile bigint, "
    "start bigint, end bigint, current boolean, figures array<bigint>, expected array<bigint>, found array<bigint>"
)
"""Three kinds of rows. "count": n records got the verdict `kind` in the stretch from `start`. "fault": a finding `kind` about the output at
topic, partition, place, or about the source record where topic is null. "figures": of a piece: what the receipt of its tile says, what a
right one would say of the piece, and what the topics hold of it. "doubt": how (in `expected`) the figures would change if the receipt had
counted the source record at `offset` as it stands, not as it must be."""
_ARROW = pa.schema(
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


def both_sides(context: Context, plan: Plan, ranges: Ranges) -> DataFrame:
    """What must be and what is, by lineage: rows as in sides.ROWS."""
    topics = [*range(len(plan.outputs)), DEAD_LETTERS]
    return expected_rows(context, plan, ranges).unionByName(found_rows(context, plan, ranges, topics))


def judge_content(plan: Plan, rows: DataFrame, drills: DataFrame, unsure: Unsure) -> DataFrame:
    """Rows as in CONTENT. `rows`: as in sides.ROWS, EXPECTED and FOUND; `drills`: rows "drill" of records.JUDGED, pieces of what `rows`
    are of.
    """
    pieces = drills.select(
        F.lit(PIECE).alias("what"),
        "source",
        F.shiftright("start", SHIFT).alias("bucket"),
        "tile",
        "start",
        "end",
        "current",
        "figures",
    )
    both = rows.unionByName(pieces, allowMissingColumns=True)
    return in_groups(both.groupBy("source", "bucket"), _judge_bucket(plan, unsure), CONTENT)


def _judge_bucket(plan: Plan, unsure: Unsure) -> Callable[[pa.Table], pa.Table]:
    topics = len(plan.outputs)

    def judge(table: pa.Table) -> pa.Table:
        source = table["source"][0].as_py()
        pieces = table.filter(pa.compute.equal(table["what"], PIECE)).sort_by("start")
        starts, ends = pieces["start"].to_numpy(), pieces["end"].to_numpy()
        tiles, current = pieces["tile"].to_pylist(), pieces["current"].to_pylist()
        figures_of = pieces["figures"].to_pylist()
        figures = np.zeros((2, len(starts), FIXED + topics + 1), np.int64)
        step = width(plan.begin[source], plan.committed[source])
        counts: dict[tuple[int, Verdict], int] = {}
        rows: list[tuple[Any, ...]] = []
        records = _in_pieces(_by_offset(table), starts, ends)
        short = _short(records, tiles, figures_of) if unsure else {}
        for offset, piece, (expected, outputs, letters) in records:
            at = unsure.at(source, offset, short.get(tiles[piece])) if unsure else {}
            outcome = judge_record(expected, outputs, letters, at, current=current[piece])
            for kind, output, detail in outcome.faults:
                place = (None,) * 3 if output is None else (output.topic, output.partition, output.place)
                rows.append(("fault", str(kind), source, offset, *place, 1, detail, *(None,) * 7))
            if outcome.verdict is None:
                continue
            stretch = max(offset // step * step, plan.begin[source])
            counts[stretch, outcome.verdict] = counts.get((stretch, outcome.verdict), 0) + 1
            must, holds, *others = readings(outcome, outputs, letters, topics)
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
        batch = to_batch(rows, _ARROW)
        return pa.Table.from_batches([batch], _ARROW)

    return judge


def _in_pieces(every: Mapping[int, Sides], starts: Any, ends: Any) -> list[tuple[int, int, Sides]]:
    """(source offset, index of its piece, both sides) of what lies in a piece."""
    pieces = np.searchsorted(starts, np.fromiter(every, np.int64, len(every)), side="right") - 1
    return [
        (offset, piece, sides)
        for (offset, sides), piece in zip(every.items(), pieces.tolist(), strict=True)
        if piece >= 0 and offset < ends[piece]
    ]


def _short(
    records: list[tuple[int, int, Sides]], tiles: list[int], figures_of: list[list[int]]
) -> dict[int, frozenset[int]]:
    """Per tile with a receipt, see unsure.shortage. Of a tile in several buckets too much is said to be short, never too little."""
    of_tile: dict[int, list[Sides]] = {}
    for _, piece, sides in records:
        of_tile.setdefault(tiles[piece], []).append(sides)
    claimed = {tile: figures for tile, figures in zip(tiles, figures_of, strict=True) if figures}
    return {tile: shortage(figures, of_tile.get(tile, [])) for tile, figures in claimed.items()}


def _by_offset(table: pa.Table) -> dict[int, Sides]:
    """Per source offset what must be and what is: outputs, dead letters."""
    rows = table.filter(pa.compute.not_equal(table["what"], PIECE))
    names = ("what", "offset", "index", "topic", "partition", "place", "print", "time_ms", "error")
    must: dict[int, tuple[list[Stored], list[Stored]]] = {}
    found: dict[int, tuple[list[Stored], list[Stored]]] = {}
    for what, offset, *fields in zip(*(rows[name].to_pylist() for name in names), strict=True):
        stored = Stored(*fields)
        side = (must if what == EXPECTED else found).setdefault(offset, ([], []))
        if stored.nth != NOTHING:
            side[stored.topic == DEAD_LETTERS].append(stored)
    every = {}
    for offset in sorted(must.keys() | found.keys()):
        outputs, letters = must.get(offset, ([], []))
        expected = Expected(sorted(outputs), letters[0] if letters else None) if offset in must else None
        every[offset] = (expected, *found.get(offset, ([], [])))
        every[offset][2].sort(key=lambda each: (each.partition, each.place))
    return every
