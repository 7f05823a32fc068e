"""The sentence at the top of the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_batch.model import Depth, Judgement, Kind, Verdict
from spark_batch.report.words import KINDS, MEANING, headline, subline
from tests.audit.samples import SAMPLES, complete, empty

ONE = replace(complete(), totals={Verdict.EXACTLY_ONCE: 1})
FOUND = replace(
    complete(),
    totals={Verdict.EXACTLY_ONCE: 10, Verdict.MISSING: 2, Verdict.DUPLICATE: 1},
    finding_counts={Kind.DUPLICATE: 1, Kind.MISSING: 2},
)
EXPIRED = replace(complete(), totals={Verdict.EXACTLY_ONCE: 10, Verdict.EXPIRED: 1200})


@pytest.mark.parametrize(
    ("judgement", "expected"),
    [
        (complete(), "Complete: 1,248,000 source records, each accounted for"),
        (ONE, "Complete: 1 source record, each accounted for"),
        (empty(), "Nothing to judge: no source records in the audited offsets"),
        (
            replace(complete(), depth=Depth.OFFSETS, totals={Verdict.CLAIMED: 7}),
            "Complete at depth offsets: 7 source records, each claimed by one receipt",
        ),
        (FOUND, "3 findings: 2 missing, 1 duplicate"),
        (replace(FOUND, finding_counts={Kind.ORPHAN: 1}), "1 finding: 1 orphan"),
        (
            replace(FOUND, finding_counts={kind: n for n, kind in enumerate(Kind, 1) if kind.is_fault}),
            "55 findings: 7 missing receipts, 8 receipt overlaps, 9 receipt mismatches, 10 ledger differences, 21 of other kinds",
        ),
        (EXPIRED, "Cannot judge: 1,200 records expired-unaudited"),
        (
            replace(complete(), finding_counts={Kind.HANGING_TRANSACTION: 2}),
            "Cannot judge: 2 hanging transactions",
        ),
        (
            replace(EXPIRED, finding_counts={Kind.SOURCE_EXPIRED: 1}),
            "Cannot judge: 1 expired source range; 1,200 records expired-unaudited",
        ),
    ],
)
def test_the_headline_says_what_the_exit_code_means(judgement: Judgement, expected: str) -> None:
    """Complete is only said of what was looked at, and no more of it than the depth shows."""
    assert expected == headline(judgement)


def test_the_subline_divides_the_records_up_and_names_what_was_not_judged() -> None:
    """In flight is told apart; with findings, what could not be judged is told, too."""
    assert (
        subline(complete())
        == "1,033,984 exactly once, 213,959 filtered, 57 dead-lettered. 1,500 more in flight, not judged"
    )
    both = replace(FOUND, finding_counts={Kind.MISSING: 2, Kind.OPEN_TRANSACTION: 1})
    assert subline(both) == "10 exactly once, 2 missing, 1 duplicate. Not judged: 1 open transaction"
    assert subline(empty()) == ""
    assert subline(replace(empty(), totals={Verdict.IN_FLIGHT: 3})) == "3 more in flight, not judged"


def test_every_verdict_and_kind_has_words() -> None:
    """A new one cannot be forgotten."""
    assert set(Verdict) == set(MEANING)
    assert set(Kind) == set(KINDS)


@pytest.mark.parametrize("name", SAMPLES)
def test_complete_is_never_said_of_another_exit_code(name: str) -> None:
    """The sentence and the exit code cannot contradict each other."""
    judgement = SAMPLES[name]()
    starts = {0: ("Complete", "Nothing to judge"), 1: tuple("123456789"), 2: ("Cannot judge: ",)}
    assert headline(judgement).startswith(starts[int(judgement.exit_code)])
