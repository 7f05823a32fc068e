"""Whether a receipt that differs from what must be has counted faulty records as they stand."""

from __future__ import annotations

import numpy as np
import pytest

from spark_batch.figures import WAYS, explained, readings, unlike
from spark_batch.model import Kind, Verdict
from spark_batch.outcomes import Expected, Outcome, Stored
from spark_batch.plan import DEAD_LETTERS

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


@pytest.mark.parametrize(
    ("holds", "hidden", "kind"),
    [
        ([9, 3, 1, 4, 2, 0], set(), None),
        ([9, 4, 1, 3, 2, 0], set(), Kind.MISSING),
        ([9, 4, 1, 3, 2, 0], {DEAD_LETTERS, 1}, Kind.MISSING),
        ([9, 4, 1, 3, 2, 0], {0}, None),
        ([9, 5, 0, 4, 1, 0], {1}, Kind.MISSING),
        ([9, 5, 0, 4, 1, 0], {DEAD_LETTERS, 1}, None),
        ([9, 3, 1, 3, 3, 0], {0}, Kind.RECEIPT_MISMATCH),
        ([8, 3, 1, 4, 2, 0], {0, 1, DEAD_LETTERS}, Kind.RECEIPT_MISMATCH),
    ],
)
def test_what_another_transforms_receipt_claims_and_is_not_there_is_missing_unless_it_may_be_hidden_or_removed(
    holds: list[int], hidden: set[int], kind: Kind | None
) -> None:
    """Outputs to topics that the pipeline file no longer names, five of them, were looked for by nobody."""
    assert unlike(np.array([9, 3, 1, 4, 2, 5]), np.array(holds), hidden) == kind


def test_a_record_without_a_trace_may_be_counted_as_dead_but_not_where_it_yields_nothing_and_is_called_filtered() -> (
    None
):
    """Else a receipt that claims a dead letter which is not there would be explained, and nobody told."""
    output = Stored(0, 0, 0, -1, b"", -1)
    lost = readings(Outcome(Verdict.MISSING, became=Expected([output])), [], [], 1)
    assert [each.tolist() for each in lost] == [[1, 0, 0, 1, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0]]
    filtered = readings(Outcome(Verdict.FILTERED), [], [], 1)
    assert [each.tolist() for each in filtered] == [[1, 1, 0, 0, 0]] * 2
    expired = readings(Outcome(Verdict.EXPIRED), [], [], 1)
    assert expired[-1].tolist() == [1, 0, 1, 0, 0]
