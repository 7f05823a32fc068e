"""The exit code of a judgement: what counts as complete."""

from __future__ import annotations

import pytest

from spark_batch.model import Cut, Depth, ExitCode, Finding, Judgement, Kind, Verdict

CUT = Cut(0, "group", {}, {}, {}, {}, {}, frozenset(), 0.0)
FAULTS = {Verdict.MISSING, Verdict.DUPLICATE, Verdict.ALTERED, Verdict.ORPHAN}
UNJUDGED = {Verdict.EXPIRED, Verdict.UNVERIFIABLE, Verdict.UNKNOWN}


def exit_code(
    totals: dict[Verdict, int] | None = None,
    counts: dict[Kind, int] | None = None,
    findings: tuple[Finding, ...] = (),
) -> ExitCode:
    return Judgement("p", "digest", Depth.RECORDS, CUT, {}, (), findings, counts or {}, totals=totals or {}).exit_code


@pytest.mark.parametrize("verdict", Verdict)
def test_what_records_got_decides_also_where_no_finding_says_so(verdict: Verdict) -> None:
    """Complete is impossible with a single record that is wrong, or was not judged; a count of zero says nothing."""
    expected = (
        ExitCode.FINDINGS if verdict in FAULTS else ExitCode.CANNOT_JUDGE if verdict in UNJUDGED else ExitCode.COMPLETE
    )
    assert expected == exit_code({Verdict.EXACTLY_ONCE: 5, verdict: 1})
    assert exit_code({Verdict.EXACTLY_ONCE: 5, verdict: 0}) == ExitCode.COMPLETE


@pytest.mark.parametrize("kind", Kind)
def test_a_finding_decides_whether_it_is_counted_or_shown(kind: Kind) -> None:
    expected = ExitCode.FINDINGS if kind.is_fault else ExitCode.CANNOT_JUDGE
    assert expected == exit_code(counts={kind: 1})
    assert expected == exit_code(findings=(Finding(kind, "topic", 0, 1),))
    assert exit_code(counts={kind: 0}) == ExitCode.COMPLETE


def test_a_fault_outweighs_what_could_not_be_judged() -> None:
    assert exit_code({Verdict.UNKNOWN: 1, Verdict.MISSING: 1}) == ExitCode.FINDINGS
    assert exit_code({Verdict.UNKNOWN: 1}, {Kind.REORDERED: 1}) == ExitCode.FINDINGS
