"""Which outputs are out of place."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

pytest.importorskip("pyspark")

from spark_batch.order import _ARROW, _late, displaced
from spark_batch.plan import Plan


def late(*offsets: int) -> list[int]:
    """Positions of what is displaced among outputs of these source offsets."""
    places: list[int] = displaced(np.array(offsets, np.int64), np.zeros(len(offsets), np.int64)).tolist()
    return places


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([], []),
        ([1, 2, 3], []),
        ([1, 3, 2, 4], [2]),
        ([2, 3, 4, 1], [3]),
        ([4, 1, 2, 3], [0]),
        ([1, 9, 4, 5, 3, 10], [1, 4]),
        ([1, 1, 2], []),
        ([10, 20, 15, 30, 25, 40], [2, 4]),
    ],
)
def test_the_fewest_that_explain_it_are_named(offsets: list[int], expected: list[int]) -> None:
    assert late(*offsets) == expected


def test_outputs_of_one_record_stand_by_their_index() -> None:
    assert displaced(np.array([1, 1, 1, 2]), np.array([0, 2, 1, 0])).tolist() == [2]


def test_what_is_judged_behind_what_is_in_flight_is_out_of_place() -> None:
    """C is 5. In whatever order those in flight stand among themselves, that is for the next audit."""
    plan = Plan((("in", 0),), (0,), (5,), (99,), (0,), (0,), ("out",), "dead")
    stored = [(1, 1), (1, 2), (1, 0), (7, 1), (7, 0), (3, 0), (9, 0), (6, 0), (8, 0)]
    rows = [
        {"topic": 0, "partition": 0, "source": 0, "offset": offset, "index": index, "place": place}
        for place, (offset, index) in enumerate(stored)
    ]
    found = _late(plan)(pa.Table.from_pylist(rows[::-1], _ARROW))
    assert [(row["place"], row["offset"]) for row in found.to_pylist()] == [(2, 1), (5, 3)]


def test_no_smaller_set_would_do() -> None:
    for seed in range(200):
        dice = Random(seed)
        offsets = [dice.randrange(8) for _ in range(7)]
        found = late(*offsets)
        rest = [offset for at, offset in enumerate(offsets) if at not in found]
        assert rest == sorted(rest)
        smaller = combinations(range(len(offsets)), len(found) - 1) if found else ()
        for left_out in smaller:
            others = [offset for at, offset in enumerate(offsets) if at not in left_out]
            assert others != sorted(others), (offsets, left_out)
