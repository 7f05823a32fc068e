"""What the ledger's own figures say against each other."""

from __future__ import annotations

from dataclasses import replace

from spark_batch.ledger import imbalances
from spark_batch.model import Kind, LedgerRow

_ROW = LedgerRow("out", 1, "output", 10, 30, committed=12, aborted=5, markers=3, in_flight=0, foreign=0)


def test_a_partition_whose_counts_add_up_is_no_finding() -> None:
    assert imbalances([_ROW, replace(_ROW, aborted=0, markers=8)]) == []


def test_a_count_below_zero_is_a_finding_with_its_place() -> None:
    """More committed records than there are records, or more records than offsets."""
    more_committed = replace(_ROW, committed=18, aborted=-1)
    more_records = replace(_ROW, partition=2, aborted=9, markers=-1)

    found = imbalances([_ROW, more_committed, more_records])

    assert [(one.kind, one.topic, one.partition, one.offset, one.end) for one in found] == [
        (Kind.LEDGER, "out", 1, 10, 30),
        (Kind.LEDGER, "out", 2, 10, 30),
    ]
    assert "18 committed + -1 aborted + 3 markers" in found[0].detail
