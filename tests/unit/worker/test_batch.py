from __future__ import annotations

from tests.unit.worker.fakes import message
from worker.batch import Batch


def test_runs_grow_in_order_and_are_counted() -> None:
    """Records and bytes of the values are added up over all partitions; runs of one partition are joined."""
    first, second, third = message(1, b"a"), message(5, b"bcd"), message(2, b"", partition=1)
    batch = Batch()
    assert not batch

    batch.add(("in", 0), [first])
    batch.add(("in", 1), [third])
    batch.add(("in", 0), [second])

    assert batch
    assert {("in", 0): [first, second], ("in", 1): [third]} == batch.runs
    assert (batch.records, batch.bytes) == (3, 4)


def test_r1_dropped_partitions_are_gone_with_their_figures() -> None:
    """Dropping a partition without records is harmless."""
    kept = message(2, b"xy", partition=1)
    batch = Batch()
    batch.add(("in", 0), [message(1, b"a"), message(2, b"bc")])
    batch.add(("in", 1), [kept])

    batch.drop([("in", 0), ("in", 9)])

    assert {("in", 1): [kept]} == batch.runs
    assert (batch.records, batch.bytes) == (1, 2)
    batch.drop([("in", 1)])
    assert not batch
