"""Workers with a fault that plausible code could have: the campaign's judges must see every one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from spark_batch.model import ExitCode, Kind
from tests.faults.campaign import Round, play
from tests.faults.supervisor import Plan
from tests.faults.workloads import WORKLOADS
from tests.support.mutants import MUTANTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from spark_batch.model import Depth, Judgement
    from tests.faults.arena import Arena

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("arena"), pytest.mark.timeout(900)]

_ABORTS = {"FAULT_ABORT_SHARE": "0.33"}
_KILLS = tuple(Plan("worker kill", "at random", after_s=0.1 * n) for n in range(6))
_ZOMBIES = tuple(Plan("zombie", "before_begin", 2 + n % 2) for n in range(4))

CASES: dict[str, tuple[str, Mapping[str, str], tuple[Plan, ...], str]] = {
    # mutant: (workload, what the workers do to themselves, plans, what the oracle's judges must find)
    "no-rewind": ("aborts", _ABORTS, _KILLS[:1], "missing"),
    "outputs-outside": ("aborts", _ABORTS, _KILLS[:1], "duplicated"),
    "offsets-early": (
        "aborts",
        {},
        tuple(Plan("worker kill", "before_commit", 2 + n % 3) for n in range(4)),
        "missing",
    ),
    # Enough commits before each kill that some outcomes are unknown, also on a slow machine.
    "unknown-is-failed": (
        "aborts",
        {"FAULT_UNKNOWN_SHARE": "0.5"},
        tuple(Plan("worker kill", "before_commit", 6) for _ in range(4)),
        "duplicated",
    ),
    "dead-letters-outside": ("dead-letters", _ABORTS, _KILLS[:1], "duplicated"),
    "offsets-first": ("aborts", {}, tuple(Plan("worker kill", "after_commit", 2 + n % 3) for n in range(4)), "missing"),
    # Brokers ask static members for their ids also without a generation, so that this mutant then commits nothing at all.
    "cached-metadata": ("aborts", {"RECKON_CONSUMER_GROUP_INSTANCE_ID": ""}, _ZOMBIES, "duplicated"),
    # Twice as many: what one of them skips may be markers, or records that are filtered.
    "position-ahead": ("aborts", {}, (*_KILLS, *_KILLS), "missing"),
    "lost-ignored": ("order", {}, _ZOMBIES, "duplicated"),
}

KINDS = {"missing": Kind.MISSING, "duplicated": Kind.DUPLICATE}
"""What the audit calls the oracle's findings."""

CONTROLS = [
    mutant
    for number, (mutant, case) in enumerate(CASES.items())
    if case[:3] not in [other[:3] for other in list(CASES.values())[:number]]
]
"""One mutant of each round that is played."""


def test_every_mutant_has_a_case() -> None:
    assert MUTANTS.keys() == CASES.keys()


def _round(case: str, mutant: str) -> Round:
    name, faults, plans, _ = CASES[case]
    workload = next(replace(workload, faults=faults, instances=2) for workload in WORKLOADS if workload.name == name)
    return Round(0, workload, "classic", 1, plans, mutant=mutant)


@pytest.mark.parametrize("mutant", CASES)
def test_every_judge_sees_the_mutant(
    arena: Arena, auditor: Callable[[Path, Depth], Judgement], tmp_path: Path, mutant: str
) -> None:
    """The audit, too, says that it is a fault and of which kind, and not that it could not judge."""
    finding = CASES[mutant][3]
    result = play(_round(mutant, mutant), arena, tmp_path, auditor)

    assert not result.ok
    found = {opinion.judge: opinion for opinion in result.opinions}
    for judge in ("verifier", "console consumer"):
        assert [problem for problem in found[judge].problems if problem.startswith(finding)], found
    assert found["audit"].verdict == ExitCode.FINDINGS.name
    assert KINDS[finding] in found["audit"].fault_kinds


@pytest.mark.parametrize("case", CONTROLS)
def test_without_the_mutation_every_judge_says_exactly_once(
    arena: Arena, auditor: Callable[[Path, Depth], Judgement], tmp_path: Path, case: str
) -> None:
    """The control of the test above: the same round, with the worker as it is. So what they see is the mutation."""
    result = play(_round(case, ""), arena, tmp_path, auditor)

    assert result.problems == []
    assert {opinion.judge: opinion.problems for opinion in result.opinions} == {
        "verifier": [],
        "console consumer": [],
        "audit": [],
    }
    assert {opinion.verdict for opinion in result.opinions if opinion.judge == "audit"} == {ExitCode.COMPLETE.name}
