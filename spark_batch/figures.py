"""Receipts' figures against content: whether a receipt is wrong, or the records that it counts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from spark_batch.model import Kind
from spark_batch.sides import to_batch
from spark_batch.tasks import in_groups
from spark_batch.verdicts import FIXED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

    from spark_batch.outcomes import Outcome, Stored

WAYS = 5000
"""That the faulty records of one receipt's range may have been counted."""


def readings(outcome: Outcome, outputs: Sequence[Stored], letters: Sequence[Stored], topics: int) -> list[Any]:
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
        return pa.Table.from_batches([to_batch(wrong, _MISMATCHES)], _MISMATCHES)

    ddl = "kind string, source int, start bigint, end bigint, detail string"
    return in_groups(rows.where("what IN ('figures', 'doubt')").groupBy("source"), look, ddl)


_MISMATCHES = pa.schema(
    [("kind", pa.string()), ("source", pa.int32()), ("start", pa.int64()), ("end", pa.int64()), ("detail", pa.string())]
)


def _sentence(figures: Any) -> str:
    read, filtered, dead, *written = figures.tolist()
    return f"{read} read, {filtered} filtered, {dead} dead-lettered, {sum(written)} written"
