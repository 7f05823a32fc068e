from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from worker.drain import Drain
from worker.offsets import Offsets

if TYPE_CHECKING:
    from worker.offsets import Partition

A: Partition = ("in", 0)
B: Partition = ("in", 1)


def owning(starts: dict[Partition, int]) -> Offsets:
    offsets = Offsets()
    offsets.assign(starts)
    return offsets


@pytest.mark.parametrize(
    ("starts", "reached", "drained"),
    [
        pytest.param({}, {}, False, id="owns nothing: waits for what the others leave"),
        pytest.param({A: 10}, {}, True, id="read to the end"),
        pytest.param({A: 9}, {}, False, id="one record to go"),
        pytest.param({A: 12}, {}, True, id="records that came later were read too"),
        pytest.param({A: 10, B: 4}, {}, False, id="another partition is not at its end"),
        pytest.param({A: 10, B: 4}, {B: 5}, True, id="only a commit marker was left, the event tells"),
        pytest.param({A: 8}, {A: 9}, False, id="the event came before the end known at the start"),
        pytest.param({A: 10, ("in", 2): 0}, {}, True, id="a partition that was created later"),
    ],
)
def test_drained_means_every_owned_partition_is_at_its_end(
    starts: dict[Partition, int],
    reached: dict[Partition, int],
    drained: bool,  # noqa: FBT001 - a table
) -> None:
    """Against ends of 10 and 5 at the start."""
    assert Drain({A: 10, B: 5})(owning(starts), reached) is drained


def test_what_is_written_after_the_start_does_not_count() -> None:
    ends = {A: 10}
    drain = Drain(ends)
    ends[A] = 11

    assert drain(owning({A: 10}), {})
