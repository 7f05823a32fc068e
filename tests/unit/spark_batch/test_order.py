"""Which outputs are out of place."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest

pytest.importorskip("pyspark")

from spark_batch.order import displaced


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
