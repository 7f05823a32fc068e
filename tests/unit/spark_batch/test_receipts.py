"""The tiles of one source partition, as the rows that a task makes of its receipts; and what receipts do not tell: of which topic they are,
and what expired before they were read.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from spark_batch.context import Begin
from spark_batch.model import Cut, Range
from spark_batch.receipts import _of_other_topic, _tiler, expired_until_ms, truncated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_batch.context import Context
    from spark_batch.model import Partition

A = ("in", 0)
_CLAIMS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("from", pa.int64()),
        ("to", pa.int64()),
        ("figures", pa.list_(pa.int64())),
        ("time_ms", pa.int64()),
        ("transform", pa.string()),
        ("unstamped", pa.bool_()),
        ("topic_id", pa.string()),
        ("at_partition", pa.int32()),
        ("at_offset", pa.int64()),
    ]
)


def made(
    committed: int | None,
    receipts: Sequence[tuple[int, int, int, int]],
    *,
    seen: dict[Partition, int],
    mark: int | None = 100,
    begin: Begin = Begin.CONTINUED,
    until_ms: int = -1,
) -> list[tuple[str, str | None, int, int]]:
    """`receipts`: from, to, and where each stands (partition, offset). Rows (what, kind, start, end) but pieces."""
    cut = Cut(0, "g", {}, {A: 0}, {A: 999}, {}, {"in": "1"}, frozenset(), 0.0)
    spec = SimpleNamespace(receipts_topic="r", source=SimpleNamespace(start="earliest"))
    first = 0 if mark is None else mark
    context = SimpleNamespace(
        cut=cut,
        audited={} if committed is None else {A: Range(min(first, committed), committed)},
        marks={} if mark is None else {A: mark},
        seen=seen,
        begin={A: begin},
        loaded=SimpleNamespace(spec=spec, transform=SimpleNamespace(topics=["out"], digest="now")),
    )
    rows = [
        {
            "topic": A[0],
            "partition": A[1],
            "from": low,
            "to": high,
            "figures": [high - low, 0, 0, high - low, 0],
            "time_ms": 50,
            "transform": "now",
            "unstamped": False,
            "topic_id": "1",
            "at_partition": partition,
            "at_offset": place,
        }
        for low, high, partition, place in receipts
    ]
    table = _tiler(cast("Any", context), until_ms)(pa.Table.from_pylist(rows, _CLAIMS))
    told = [row for row in table.to_pylist() if row["what"] != "piece"]
    assert sum(row["figures"][0] for row in told if row["what"] == "summary") == len(told) - 1
    return [(row["what"], row["kind"], row["start"], row["end"]) for row in told if row["what"] != "summary"]


def test_receipts_that_came_late_are_told_whatever_the_groups_offset_is() -> None:
    """Set back to 40 and done again from there to 70, or gone, or beyond what was audited again: the next audit has seen them."""
    late = ("late", "receipt-overlap", 40, 70)
    receipts = [(0, 40, 0, 3), (40, 70, 0, 9)]
    for committed in (70, None):
        assert made(committed, receipts, seen={("r", 0): 9}) == [late]
    assert made(130, [*receipts, (70, 130, 0, 10)], seen={("r", 0): 9}) == [
        late,
        ("late", "receipt-overlap", 70, 100),
    ]
    assert made(70, receipts, seen={("r", 0): 10}) == []


def test_receipts_in_a_partition_that_was_added_are_all_late_for_what_was_judged_before() -> None:
    assert made(100, [(20, 30, 1, 0)], seen={("r", 0): 9, ("r", 1): 0}) == [("late", "receipt-overlap", 20, 30)]


def test_where_receipts_expired_a_gap_proves_nothing_unless_the_last_audit_judged_up_to_it() -> None:
    missing = [("finding", "receipt-missing", 100, 110)]
    assert made(120, [(110, 120, 0, 9)], seen={("r", 0): 9}, until_ms=10**6) == missing
    assert made(120, [(110, 120, 0, 9)], seen={("r", 0): 9}, mark=None, begin=Begin.BEGINNING, until_ms=10**6) == []


ZERO = "A" * 22


@pytest.mark.parametrize(
    ("ids", "topic_id", "others", "unknown"),
    [
        (["now", "now"], "now", "", 0),
        (["now", None, ZERO, ""], "now", "", 3),
        (["then", "now", None], "now", "then", 1),
        (["then", "now"], ZERO, "", 2),
        (["then"], None, "", 1),
        ([], "now", "", 0),
    ],
)
def test_receipts_without_an_id_are_counted_and_those_of_another_topic_told(
    ids: list[str | None], topic_id: str | None, others: str, unknown: int
) -> None:
    """An id of zeros is none: a broker without topic ids."""
    told, nameless = _of_other_topic(pa.table({"topic_id": pa.array(ids, pa.string())}), topic_id)
    assert (others in told, bool(told), nameless) == (True, bool(others), unknown)


def test_receipts_that_expired_between_two_audits_are_truncated_those_before_the_last_one_are_not() -> None:
    def look(begin: int) -> Context:
        spec = SimpleNamespace(receipts_topic="r")
        cut = SimpleNamespace(outputs={("r", 0): Range(7, 9), ("out", 0): Range(90, 99)})
        loaded, begins = SimpleNamespace(spec=spec), {("in", 0): Begin.CONTINUED}
        made = SimpleNamespace(loaded=loaded, cut=cut, outputs_from={("r", 0): begin}, previous={}, begin=begins)
        return cast("Context", made)

    assert [truncated(look(begin)) for begin in (0, 6, 7, 8)] == [True, True, False, False]
    assert expired_until_ms(look(7), None) == -1  # type: ignore[arg-type] # it need not look at receipts
