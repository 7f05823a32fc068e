"""What receipts do not tell: of which topic they are, and what expired before they were read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from spark_batch.model import Range
from spark_batch.receipts import _of_other_topic, expired_until_ms, truncated

if TYPE_CHECKING:
    from spark_batch.context import Context

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
        made = SimpleNamespace(loaded=SimpleNamespace(spec=spec), cut=cut, outputs_from={("r", 0): begin}, previous={})
        return cast("Context", made)

    assert [truncated(look(begin)) for begin in (0, 6, 7, 8)] == [True, True, False, False]
    assert expired_until_ms(look(7), None) == -1  # type: ignore[arg-type] # it need not look at receipts
