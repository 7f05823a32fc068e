"""Verdicts of single records: what must be against what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_batch.model import Kind, Verdict
from spark_batch.outcomes import Expected, Outcome, Stored, fingerprint, judge_record
from spark_batch.plan import DEAD_LETTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

CLEAN, LARGE = 0, 1
VALUE, OTHER = fingerprint(b"value", b"key", []), fingerprint(b"another", b"key", [])


def output(place: int = -1, *, nth: int = 0, topic: int = CLEAN, print_: bytes = VALUE, partition: int = 0) -> Stored:
    return Stored(nth, topic, partition, place, print_, 1000)


def letter(place: int = -1, *, error: str = "CelError", print_: bytes = VALUE) -> Stored:
    return Stored(0, DEAD_LETTERS, 0, place, print_, 1000, error)


ONE = Expected([output()])
TWO = Expected([output(), output(nth=1, topic=LARGE)])
DEAD = Expected((), letter())


def judged(
    expected: Expected | None,
    *found: Stored,
    unsure: Mapping[int, Verdict] | None = None,
    current: bool = True,
) -> tuple[Verdict | None, list[tuple[Kind, int | None]]]:
    """(verdict, faults with the place of the output)."""
    outputs = [each for each in found if each.topic != DEAD_LETTERS]
    letters = [each for each in found if each.topic == DEAD_LETTERS]
    outcome = judge_record(expected, outputs, letters, unsure or {}, current=current)
    return outcome.verdict, [(kind, each and each.place) for kind, each, _ in outcome.faults]


@pytest.mark.parametrize(
    ("expected", "found", "verdict", "faults"),
    [
        (ONE, [output(7)], Verdict.EXACTLY_ONCE, []),
        (TWO, [output(7), output(8, nth=1, topic=LARGE)], Verdict.EXACTLY_ONCE, []),
        (Expected(), [], Verdict.FILTERED, []),
        (DEAD, [letter(3)], Verdict.DEAD_LETTERED, []),
        (DEAD, [letter(3, error="RecursionError")], Verdict.DEAD_LETTERED, []),
        (ONE, [letter(3, error="UndeliverableOutput")], Verdict.DEAD_LETTERED, []),
        (Expected(), [letter(3, error="TimeBudgetExceeded")], Verdict.DEAD_LETTERED, []),
        # missing
        (ONE, [], Verdict.MISSING, [(Kind.MISSING, None)]),
        (TWO, [output(7)], Verdict.MISSING, [(Kind.MISSING, None)]),
        (TWO, [], Verdict.MISSING, [(Kind.MISSING, None)]),
        (DEAD, [], Verdict.MISSING, [(Kind.MISSING, None)]),
        # duplicate
        (ONE, [output(7), output(9)], Verdict.DUPLICATE, [(Kind.DUPLICATE, 9)]),
        (ONE, [output(9), output(7)], Verdict.DUPLICATE, [(Kind.DUPLICATE, 9)]),
        (ONE, [output(2, partition=1), output(7)], Verdict.DUPLICATE, [(Kind.DUPLICATE, 2)]),
        (ONE, [output(7, topic=LARGE), output(9)], Verdict.DUPLICATE, [(Kind.DUPLICATE, 7)]),
        (ONE, [output(7, print_=OTHER), output(9)], Verdict.DUPLICATE, [(Kind.DUPLICATE, 7)]),
        (ONE, [output(7), output(8), output(9)], Verdict.DUPLICATE, [(Kind.DUPLICATE, 8), (Kind.DUPLICATE, 9)]),
        (DEAD, [letter(3), letter(4)], Verdict.DUPLICATE, [(Kind.DUPLICATE, 4)]),
        (ONE, [letter(3, error="UndeliverableOutput"), letter(4)], Verdict.DUPLICATE, [(Kind.DUPLICATE, 4)]),
        # one doubled and one missing do not cancel
        (TWO, [output(7), output(8)], Verdict.MISSING, [(Kind.DUPLICATE, 8), (Kind.MISSING, None)]),
        # altered, misrouted
        (ONE, [output(7, print_=OTHER)], Verdict.ALTERED, [(Kind.ALTERED, 7)]),
        (ONE, [output(7, print_=OTHER, topic=LARGE)], Verdict.ALTERED, [(Kind.ALTERED, 7)]),
        (ONE, [output(7, topic=LARGE)], Verdict.ALTERED, [(Kind.MISROUTED, 7)]),
        (ONE, [output(7)._replace(time_ms=1001)], Verdict.ALTERED, [(Kind.ALTERED, 7)]),
        (ONE, [output(7)._replace(time_ms=-1)], Verdict.EXACTLY_ONCE, []),
        (DEAD, [letter(3, print_=OTHER)], Verdict.ALTERED, [(Kind.ALTERED, 3)]),
        (DEAD, [letter(3, error="DecodeError")], Verdict.ALTERED, [(Kind.ALTERED, 3)]),
        (ONE, [letter(3)], Verdict.ALTERED, [(Kind.ALTERED, 3)]),
        # orphans change nothing about what became of the record
        (Expected(), [output(7)], Verdict.FILTERED, [(Kind.ORPHAN, 7)]),
        (Expected(), [letter(3)], Verdict.FILTERED, [(Kind.ORPHAN, 3)]),
        (ONE, [output(7), output(8, nth=5)], Verdict.EXACTLY_ONCE, [(Kind.ORPHAN, 8)]),
        (ONE, [output(7), letter(3)], Verdict.EXACTLY_ONCE, [(Kind.ORPHAN, 3)]),
        (DEAD, [letter(3), output(7)], Verdict.DEAD_LETTERED, [(Kind.ORPHAN, 7)]),
        (None, [output(7), letter(3)], None, [(Kind.ORPHAN, 7), (Kind.ORPHAN, 3)]),
    ],
)  # fmt: skip
def test_a_record_gets_its_verdict_and_what_is_at_fault_is_named(
    expected: Expected | None, found: list[Stored], verdict: Verdict | None, faults: list[tuple[Kind, int | None]]
) -> None:
    assert judged(expected, *found) == (verdict, faults)


def test_what_is_not_found_in_a_topic_that_cannot_be_read_whole_is_no_finding() -> None:
    unsure = {LARGE: Verdict.UNKNOWN}
    assert judged(TWO, output(7), unsure=unsure) == (Verdict.UNKNOWN, [])
    assert judged(TWO, output(7), output(8, nth=1, topic=LARGE), unsure=unsure) == (Verdict.EXACTLY_ONCE, [])
    assert judged(TWO, unsure=unsure) == (Verdict.MISSING, [(Kind.MISSING, None)])


def test_of_a_record_without_any_trace_a_dead_letter_that_cannot_be_seen_may_have_stood_in_for_what_it_yields() -> None:
    unsure = {DEAD_LETTERS: Verdict.EXPIRED}
    for expected in (TWO, ONE, Expected(), DEAD):
        assert judged(expected, unsure=unsure) == (Verdict.EXPIRED, [])
    assert judged(TWO, output(7), unsure=unsure) == (Verdict.MISSING, [(Kind.MISSING, None)])
    assert judged(ONE, output(7), unsure=unsure) == (Verdict.EXACTLY_ONCE, [])


def test_of_another_transform_only_what_is_there_twice_is_known() -> None:
    assert judged(ONE, current=False) == (Verdict.UNVERIFIABLE, [])
    assert judged(ONE, output(7, print_=OTHER, topic=LARGE), output(8, nth=1), current=False) == (
        Verdict.UNVERIFIABLE,
        [],
    )
    assert judged(ONE, output(7), output(9), current=False) == (Verdict.DUPLICATE, [(Kind.DUPLICATE, 9)])
    assert judged(None, output(7), current=False) == (None, [(Kind.ORPHAN, 7)])


def test_a_dead_letter_in_place_of_outputs_is_what_a_right_receipt_counts() -> None:
    found = letter(3, error="UndeliverableOutput")
    assert judge_record(TWO, [], [found], {}, current=True) == Outcome(Verdict.DEAD_LETTERED, [], Expected((), found))


@pytest.mark.parametrize(
    ("value", "key", "headers", "names"),
    [
        (None, b"k", [("h", b"1")], "value"),
        (b"", b"k", [("h", b"1")], "value"),
        (b"v", None, [("h", b"1")], "key"),
        (b"v", b"", [("h", b"1")], "key"),
        (b"v", b"k", [("h", None)], "headers"),
        (b"v", b"k", [("h", b"")], "headers"),
        (b"v", b"k", [("h1", b"")], "headers"),
        (b"v", b"k", [("h", b"1"), ("h", b"1")], "headers"),
        (b"vk", b"", [], "value, key, headers"),
    ],
)
def test_null_is_not_empty_and_what_differs_is_named(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes | None]], names: str
) -> None:
    right = output(print_=fingerprint(b"v", b"k", [("h", b"1")]))
    wrong = output(7, print_=fingerprint(value, key, headers))
    faults = judge_record(Expected([right]), [wrong], [], {}, current=True).faults
    assert faults == [(Kind.ALTERED, wrong, f"differs from what the transform yields: {names}")]
