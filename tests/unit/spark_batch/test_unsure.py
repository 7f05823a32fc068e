"""What is not found is missing only where it can have been nowhere else: neither hidden in its topic nor removed by retention."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from spark_batch.model import Range, Verdict
from spark_batch.outcomes import Expected, Stored
from spark_batch.plan import DEAD_LETTERS, Plan, removed
from spark_batch.unsure import Unsure, removal_note, shortage, unsure_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_batch.context import Context

OUT, LARGE = 0, 1
PLAN = Plan(
    sources=(("in", 0), ("in", 1)),
    begin=(0, 0),
    committed=(100, 100),
    end=(100, 100),
    log_start=(0, 0),
    never_claimed_below=(0, 0),
    outputs=("out", "large"),
    dead_letters="dead",
)
ALL = 10**18
"""Beyond every offset that there is."""


def context(**cut: Any) -> Context:
    made = {"compacted": frozenset(), "open_transactions": (), "outputs": {}} | cut
    return cast("Context", SimpleNamespace(cut=SimpleNamespace(**made), recreated=frozenset(), outputs_from={}))


def stored(nth: int, topic: int, error: str = "") -> Stored:
    return Stored(nth, topic, 0, 5, b"", -1, error)


def test_what_retention_has_removed_lies_between_where_the_last_audit_stopped_and_the_log_start() -> None:
    of = context(
        outputs={("out", 0): Range(7, 9), ("out", 1): Range(7, 9), ("large", 0): Range(0, 9), ("r", 0): Range(3, 9)}
    )
    of.outputs_from.update({("out", 0): 7, ("out", 1): 6, ("large", 0): 0, ("r", 0): 0})
    assert removed(of, ["out", "large"]) == {("out", 1): 7}
    assert removed(of, ["r"]) == {("r", 0): 3}


def test_outputs_up_to_the_first_one_that_is_left_may_have_been_removed_and_none_behind_it() -> None:
    """Of the partitions of a topic the one counts that is left from the highest offset on; where nothing is left, nothing is certain."""
    plan = replace(PLAN, removed={("out", 0): 9, ("out", 2): 9})
    found = unsure_of(context(), plan, {(OUT, 0, 0): 40, (OUT, 2, 0): 30, (OUT, 2, 1): 50})
    assert found.topics == {}
    hidden = [found.hides(OUT, source, offset) for source, offset in ((0, 40), (0, 41), (1, 51), (1, ALL))]
    assert hidden == [True, False, True, True]
    assert not any(found.hides(topic, 0, 0) for topic in (LARGE, DEAD_LETTERS))


def test_dead_letters_have_no_order_and_outputs_without_lineage_no_source() -> None:
    found = unsure_of(context(), replace(PLAN, removed={("dead", 1): 9, ("out", 0): 1}), {(DEAD_LETTERS, 1, 0): 3})
    assert [found.hides(topic, 0, ALL) for topic in (OUT, LARGE, DEAD_LETTERS)] == [True, False, True]


def test_topics_that_cannot_be_read_whole_hide_anything() -> None:
    held = SimpleNamespace(topic="dead")
    found = unsure_of(context(compacted=frozenset({"out"}), open_transactions=(held,)), PLAN, {})
    assert found.topics == {OUT: Verdict.UNVERIFIABLE, DEAD_LETTERS: Verdict.UNKNOWN}
    assert found.at(0, 5, None) == found.topics
    assert found.at(0, 5, frozenset()) == {OUT: Verdict.UNVERIFIABLE}, (
        "the receipt tells of no dead letter that is not there"
    )
    assert not Unsure()


def test_where_all_is_there_that_the_receipt_claims_nothing_was_removed() -> None:
    found = Unsure({}, {(OUT, 0): 40, (DEAD_LETTERS, 0): ALL})
    everything = {OUT: Verdict.EXPIRED, DEAD_LETTERS: Verdict.EXPIRED}
    assert found.at(0, 40, None) == found.at(0, 40, frozenset({OUT, DEAD_LETTERS})) == everything
    assert found.at(0, 40, frozenset({OUT})) == {OUT: Verdict.EXPIRED}
    assert found.at(0, 41, frozenset({OUT})) == {}
    assert found.at(1, 0, None) == {}
    assert found.at(0, 0, frozenset()) == {}


@pytest.mark.parametrize(
    ("claimed", "outputs", "letters", "short"),
    [
        ([2, 0, 0, 2, 1, 0], [stored(0, OUT), stored(1, LARGE)], [], {OUT}),
        ([2, 0, 0, 1, 1, 0], [stored(0, OUT), stored(1, LARGE)], [], set()),
        ([2, 0, 1, 1, 0, 0], [], [], {OUT, DEAD_LETTERS}),
        ([2, 0, 1, 0, 0, 0], [], [stored(0, DEAD_LETTERS, "TimeBudgetExceeded")], set()),
        # what must not be there makes up for nothing: neither a copy, nor the wrong topic, nor a dead letter of a sound record
        ([2, 0, 0, 2, 1, 0], [stored(0, OUT), stored(0, OUT), stored(1, OUT)], [], {OUT, LARGE}),
        ([2, 0, 1, 1, 1, 0], [stored(0, OUT), stored(1, LARGE)], [stored(0, DEAD_LETTERS, "CelError")], {DEAD_LETTERS}),
        ([2, 0, 0, 0, 0, 9], [], [], set()),
    ],
)  # fmt: skip
def test_a_receipt_claims_more_than_is_there(
    claimed: Sequence[int], outputs: Sequence[Stored], letters: Sequence[Stored], short: set[int]
) -> None:
    """Outputs to topics that the pipeline does not name, the last figure, are not looked for."""
    expected = Expected([stored(0, OUT), stored(1, LARGE)])
    assert shortage(claimed, [(expected, outputs, letters), (None, [stored(0, OUT)], [])]) == short


def test_a_note_says_where_retention_was_faster() -> None:
    note = removal_note(replace(PLAN, removed={("out", n): 10 + n for n in range(7)}), 3)
    assert "of 3 source records" in note
    assert "out 0 below offset 10, out 1 below offset 11" in note
    assert "out 4 below offset 14, and 2 more" in note
