"""Receipts' figures against content: whether a receipt is wrong, or the records that it counts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from spark_batch.model import Kind, Verdict
from spark_batch.plan import DEAD_LETTERS
from spark_batch.sides import to_batch
from spark_batch.tasks import in_groups
from spark_batch.verdicts import FIXED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from spark_batch.outcomes import Outcome, Stored
    from spark_batch.unsure import Unsure

WAYS = 5000
"""That the faulty records of one receipt's range may have been counted."""


def readings(outcome: Outcome, outputs: Sequence[Stored], letters: Sequence[Stored], topics: int) -> list[Any]:
    """A record as the figures of a receipt may count it: as it must be, as it stands, and where nothing stands, as a dead letter."""
    there = {(each.nth, each.topic): each for each in outputs}.values()
    readings = [(outcome.became.outputs, outcome.became.letter is not None), (there, bool(letters))]
    if not outputs and not letters and outcome.verdict is not Verdict.FILTERED:
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


def unlike(says: NDArray[np.int64], holds: NDArray[np.int64], hidden: AbstractSet[int]) -> Kind | None:
    """How the figures of another transform's receipt and what the topics hold contradict each other; None: they need not.

    `hidden`: numbers of topics in which records may be, or have been, that are not found. The last figure is of topics that the pipeline
    file does not name: nobody has looked there.
    """
    says, holds = says[:-1], holds[:-1]
    if (says == holds).all():
        return None
    written = says[FIXED - 1 :] - holds[FIXED - 1 :]
    if (written < 0).any() or not written.any():
        return Kind.RECEIPT_MISMATCH
    topics = {DEAD_LETTERS if at == 0 else at - 1 for at in np.flatnonzero(written).tolist()}
    return None if topics <= hidden else Kind.MISSING


def mismatches(rows: DataFrame, unsure: Unsure) -> DataFrame:
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
            source, start = table["source"][0].as_py(), table["start"][low].as_py()
            steps = doubts.get(int(tile_of[low]), {})
            if (says == must).all() or (now and explained((says - must).tolist(), steps.values())):
                continue
            topics = range(DEAD_LETTERS, len(says) - FIXED - 1)
            hidden = {topic for topic in topics if unsure.hides(topic, source, start)}
            kind = Kind.RECEIPT_MISMATCH if now else unlike(says, holds, hidden)
            if kind is None:
                continue
            rest = (
                f", there should be {_sentence(must)}" if now else "; which ones another transform wrote is not known"
            )
            detail = f"the receipt says {_sentence(says)}; there are {_sentence(holds)}{rest}"
            wrong.append((str(kind), source, start, table["end"][high - 1].as_py(), detail))
        return pa.Table.from_batches([to_batch(wrong, _MISMATCHES)], _MISMATCHES)

    ddl = "kind string, source int, start bigint, end bigint, detail string"
    return in_groups(rows.where("what IN ('figures', 'doubt')").groupBy("source"), look, ddl)


_MISMATCHES = pa.schema(
    [("kind", pa.string()), ("source", pa.int32()), ("start", pa.int64()), ("end", pa.int64()), ("detail", pa.string())]
)


def _sentence(figures: Any) -> str:
    read, filtered, dead, *written = figures.tolist()
    return f"{read} read, {filtered} filtered, {dead} dead-lettered, {sum(written)} written"
