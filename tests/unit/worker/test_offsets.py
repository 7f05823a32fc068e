from __future__ import annotations

import pytest

from worker.offsets import Offsets, Partition

A: Partition = ("in", 0)
B: Partition = ("in", 1)


def owning() -> Offsets:
    offsets = Offsets()
    offsets.assign({A: 10, B: 20})
    return offsets


def test_assign_starts_where_it_is_told() -> None:
    """Both positions begin at the start offset, and there is no range to commit."""
    offsets = owning()

    assert frozenset({A, B}) == offsets.owned
    assert (offsets.wanted(A), offsets.wanted(B)) == (10, 20)
    assert offsets.ranges() == {}


def test_assign_twice_is_an_error() -> None:
    """A partition that is owned cannot be assigned again: its position would be lost."""
    with pytest.raises(ValueError, match=r"^\('in', 0\) is assigned twice$"):
        owning().assign({A: 0})


def test_wanted_is_none_for_a_partition_of_others() -> None:
    """There is no offset to read of a partition that is not ours."""
    assert owning().wanted(("in", 2)) is None


def test_t1_range_ends_after_the_last_record_read() -> None:
    """The offset to commit is the last record's plus one, whatever gaps lie before it; other partitions have none."""
    offsets = owning()

    offsets.read(A, 10)
    offsets.read(A, 17)

    assert offsets.ranges() == {A: (10, 18)}
    assert offsets.wanted(A) == 18


@pytest.mark.parametrize("last", [9, 14])
def test_reading_backwards_is_an_error(last: int) -> None:
    """A record that was read before is refused: it would be processed twice."""
    offsets = owning()
    offsets.read(A, 14)

    with pytest.raises(ValueError, match=rf"offset {last} was read before; 15 or later was expected$"):
        offsets.read(A, last)


def test_committed_moves_the_start_of_the_next_range() -> None:
    """After a commit the next range begins where the last one ended."""
    offsets = owning()
    offsets.read(A, 14)

    offsets.committed()

    assert offsets.ranges() == {}
    offsets.read(A, 15)
    assert offsets.ranges() == {A: (15, 16)}


def test_t2_rewind_goes_to_our_first_uncommitted_offset() -> None:
    """Only partitions with records in the batch are sought in, to the first offset that is not committed."""
    offsets = owning()
    offsets.read(A, 14)
    offsets.committed()
    offsets.read(A, 19)

    assert offsets.rewind() == {A: 15}
    assert offsets.wanted(A) == 15
    assert offsets.ranges() == {}
    assert offsets.rewind() == {}


def test_r2_released_partitions_have_no_range_and_no_rewind() -> None:
    """Nothing of a partition that is gone is committed or sought; releasing it again, or one never owned, is harmless."""
    offsets = owning()
    offsets.read(A, 14)
    offsets.read(B, 24)

    offsets.release([A, ("in", 9)])
    offsets.release([A])

    assert frozenset({B}) == offsets.owned
    assert offsets.ranges() == {B: (20, 25)}
    assert offsets.rewind() == {B: 20}


@pytest.mark.parametrize(
    ("committed", "seeks", "wanted"),
    [
        pytest.param({A: 15}, {}, 15, id="it took place"),
        pytest.param({A: 10}, {A: 10}, 10, id="it did not"),
        pytest.param({}, {A: 10}, 10, id="it did not, and the group had committed nothing before"),
        pytest.param({A: 3}, {A: 10}, 10, id="the group's offset is behind where we were told to start"),
        pytest.param({A: 40}, {A: 40}, 40, id="another owner went on"),
    ],
)
def test_e4_an_unknown_commit_is_resolved_by_the_brokers_offsets(
    committed: dict[Partition, int], seeks: dict[Partition, int], wanted: int
) -> None:
    """The broker's committed offset decides where reading goes on; nothing is left to commit."""
    offsets = owning()
    offsets.read(A, 14)

    assert seeks == offsets.resolve(committed)
    assert (wanted, 20) == (offsets.wanted(A), offsets.wanted(B))
    assert offsets.ranges() == {}
