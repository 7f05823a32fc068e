"""Whether a receipt that differs from what must be has counted faulty records as they stand."""

from __future__ import annotations

import pytest

from spark_batch.figures import WAYS, explained

LOST, DENIED, MOVED = [0, 0, 0, -1], [0, 1, 0, -1], [0, 0, -1, 1]
"""How figures change when a record is counted as it stands: two outputs instead of three; filtered; in the other topic."""


@pytest.mark.parametrize(
    ("difference", "steps", "expected"),
    [
        ([0, 1, 0, -1], [[DENIED]], True),
        ([0, 1, 0, -1], [[LOST], [DENIED]], True),
        ([0, 1, -1, 0], [[MOVED], [LOST], [DENIED]], True),
        ([0, 2, 0, -2], [[DENIED]], False),
        ([0, 2, 0, -2], [[DENIED, LOST]], False),
        ([0, 2, 0, -2], [[DENIED], [DENIED, LOST]], True),
        ([1, 0, 0, 0], [[LOST], [DENIED], [MOVED]], False),
        ([0, 0, 1, 0], [], False),
    ],
)
def test_each_faulty_record_is_counted_in_one_way(
    difference: list[int], steps: list[list[list[int]]], *, expected: bool
) -> None:
    assert explained(difference, steps) is expected


def test_many_records_that_are_wrong_in_the_same_way_are_no_riddle() -> None:
    assert explained([0, 700, 0, -700], [[DENIED]] * 1000)
    assert not explained([0, 700, 0, -701], [[DENIED]] * 1000)


def test_where_there_are_too_many_ways_the_receipt_is_not_accused() -> None:
    steps = [[[2**n, 0, 0, 0]] for n in range(WAYS.bit_length())]
    assert explained([-1, 0, 0, 0], steps)
