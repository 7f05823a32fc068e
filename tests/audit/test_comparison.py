"""The comparison that the sensitivity tests rest on sees what is missing, what is too much, and what lies elsewhere. No broker."""

from __future__ import annotations

from collections import Counter

from spark_batch.model import Depth, Finding, Kind
from tests.audit.planting import Expected, found
from tests.audit.sensitivity import Outcome

_HERE = Expected(Kind.DUPLICATE, "out", 1, 7, source=("in", 0, 5))


def _outcome(expected: list[Expected], findings: list[Finding]) -> Outcome:
    return Outcome("world", Depth.CONTENT, Counter(), Counter(expected), Counter(found(findings)))


def _finding(offset: int = 7, *, kind: Kind = Kind.DUPLICATE, source: int = 5) -> Finding:
    return Finding(kind, "out", 1, offset, source=("in", 0, source), detail="prose")


def test_the_very_finding_is_no_problem() -> None:
    assert _outcome([_HERE], [_finding()]).lines() == []


def test_a_finding_that_was_not_made_is_missed() -> None:
    outcome = _outcome([_HERE], [])
    assert (outcome.missed, outcome.extra) == ([_HERE], [])


def test_a_finding_of_nothing_is_extra() -> None:
    outcome = _outcome([], [_finding()])
    assert (outcome.missed, outcome.extra) == ([], [_HERE])


def test_a_finding_made_twice_is_extra_once() -> None:
    outcome = _outcome([_HERE], [_finding(), _finding()])
    assert (outcome.missed, outcome.extra) == ([], [_HERE])


def test_another_offset_kind_or_source_is_another_finding() -> None:
    for wrong in (_finding(8), _finding(kind=Kind.ORPHAN), _finding(source=6)):
        outcome = _outcome([_HERE], [wrong])
        assert (outcome.missed, len(outcome.extra)) == ([_HERE], 1)
