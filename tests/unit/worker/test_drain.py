from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from worker.drain import Drain, Drained
from worker.offsets import Offsets

if TYPE_CHECKING:
    from collections.abc import Collection

    from worker.offsets import Partition

A: Partition = ("in", 0)
B: Partition = ("in", 1)
EMPTY: Partition = ("in", 2)


def owning(starts: dict[Partition, int]) -> Offsets:
    offsets = Offsets()
    offsets.assign(starts)
    return offsets


@pytest.mark.parametrize(
    ("starts", "reached", "drained"),
    [
        pytest.param({A: 10, B: 5}, {}, Drained.ALL, id="read to the end"),
        pytest.param({A: 9, B: 5}, {}, Drained.NO, id="one record to go"),
        pytest.param({A: 12, B: 7}, {}, Drained.ALL, id="records that came later were read too"),
        pytest.param({A: 10, B: 4}, {}, Drained.NO, id="another partition is not at its end"),
        pytest.param({A: 10, B: 4}, {B: 5}, Drained.ALL, id="only a commit marker was left, the event tells"),
        pytest.param({A: 8, B: 5}, {A: 9}, Drained.NO, id="the event came before the end known at the start"),
        pytest.param({A: 10, B: 5, ("in", 3): 0}, {}, Drained.ALL, id="a partition that was created later"),
    ],
)
def test_our_partitions_are_at_their_ends(
    starts: dict[Partition, int], reached: dict[Partition, int], drained: Drained
) -> None:
    """Against ends of 10 and 5 at the start, and a third partition that was empty. Nobody has committed anything."""
    assert Drain({A: 10, B: 5, EMPTY: 0}, lambda _: {})(owning(starts), reached) is drained


@pytest.mark.parametrize(
    ("starts", "committed", "drained"),
    [
        ({}, {}, Drained.OURS),
        ({}, {A: 10, B: 4}, Drained.OURS),
        ({}, {A: 10, B: 5}, Drained.ALL),
        ({A: 10}, {}, Drained.OURS),
        ({A: 10}, {B: 4}, Drained.OURS),
        ({A: 10}, {B: 6}, Drained.ALL),
        ({A: 9}, {B: 6}, Drained.NO),
    ],
)
def test_of_the_others_partitions_the_groups_offsets_tell(
    starts: dict[Partition, int], committed: dict[Partition, int], drained: Drained
) -> None:
    """Also for a worker that owns none: they come to it, should their owners die."""
    asked: list[set[Partition]] = []

    def look(partitions: Collection[Partition]) -> dict[Partition, int]:
        asked.append(set(partitions))
        return committed

    assert Drain({A: 10, B: 5, EMPTY: 0}, look)(owning(starts), {}) is drained
    assert asked == ([] if drained is Drained.NO else [{A, B} - set(starts)])


def test_a_pattern_that_matches_nothing_is_drained() -> None:
    assert Drain({}, lambda _: {})(owning({}), {}) is Drained.ALL


def test_what_is_written_after_the_start_does_not_count() -> None:
    ends = {A: 10}
    drain = Drain(ends, lambda _: {})
    ends[A] = 11

    assert drain(owning({A: 10}), {}) is Drained.ALL
