"""What the report counts: no fault is left out, whatever became of it; and the campaign says when there were too few."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

import pytest
import typer
from typer.testing import CliRunner

import tests.faults.__main__ as command
from tests.faults import recovery, report
from tests.faults.campaign import Result, Round, summary
from tests.faults.model import Fault, Opinion, Stand
from tests.faults.watch import Commit
from tests.faults.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOAD_ENDED = 1000.0


def killed(at: float, healed_at: float | None, phase: str = "at random", kind: str = "worker kill") -> Fault:
    return Fault(kind, phase, "p-w0", at, "ended by signal 9", healed_at)


def measured(fault: Fault, *commits: tuple[float, float], others: tuple[Fault, ...] = ()) -> Fault:
    """Commits as (made, seen)."""
    seen = [Commit(at, made_at, "p-w0", frozenset()) for made_at, at in commits]
    recovery.measure(fault, seen, [fault, *others], LOAD_ENDED)
    return fault


def result(
    *faults: Fault, judges: tuple[str, ...] = ("verifier", "console consumer", "audit"), protocol: str = "classic"
) -> Result:
    played = Result(Round(3, WORKLOADS[0], protocol, 1, ()), 0.0, sent=10, faults=list(faults))
    played.opinions = [Opinion(judge, 10) for judge in judges]
    return played


@pytest.mark.parametrize(
    ("fault", "commits", "others", "found"),
    [
        # A commit made before the restart does not count, one of another instance neither (see Commit); the next one does.
        (killed(10, 11), [(10.5, 12.0), (13.0, 13.5)], (), (2.5, None, "", True)),
        (killed(10, 11), [(16.0, 16.5)], (), (5.5, None, "", False)),
        (killed(10, None), [], (), (None, 0.0, recovery.ROUND_OVER, None)),
        (killed(10, 998), [], (), (None, 2.0, recovery.ROUND_OVER, None)),
        (killed(10, 1001), [], (), (None, 0.0, recovery.ROUND_OVER, None)),
        (killed(10, 11), [], (killed(13, 14),), (None, 2.0, recovery.HIT_AGAIN, None)),
        # What is committed after the next kill is the recovery of that one alone; what was committed before it counts, seen when it may be.
        (killed(10, 11), [(15.0, 15.5)], (killed(13, 14),), (None, 2.0, recovery.HIT_AGAIN, None)),
        (killed(10, 11), [(12.9, 13.5)], (killed(13, 14),), (2.5, None, "", True)),
        # Watched for longer than the bound: whatever came later, the bound was not held.
        (killed(10, 11), [], (killed(20, 21),), (None, 9.0, recovery.HIT_AGAIN, False)),
        (killed(10, 900), [], (), (None, 100.0, "no output within 90 s", False)),
    ],
)
def test_a_recovery_is_seen_or_could_not_be_seen_or_did_not_come(
    fault: Fault, commits: list[tuple[float, float]], others: tuple[Fault, ...], found: tuple[Any, ...]
) -> None:
    """Its time; or for how long one could have seen it, and why no longer; and whether the bound of 3 s was held."""
    measured(fault, *commits, others=others)
    assert (fault.recovery_s, fault.waited_s, fault.why_not, recovery.held(fault, 3.0)) == found


def test_output_that_never_came_is_a_problem_and_one_that_could_not_be_seen_is_none() -> None:
    never, over = measured(killed(10, 900, "after_commit")), measured(killed(10, 999))
    assert recovery.stuck([never, over]) == ["no output within 90 s after worker kill (after_commit) of p-w0"]


def test_every_fault_is_counted_in_the_bound_and_in_the_table(tmp_path: Path) -> None:
    """In the words, the JSON and the page: those that held, those that did not, those that never came, and those not measured, and why."""
    faults = [
        measured(killed(10, 11), (11, 12.0)),
        measured(killed(10, 11), (11, 15.0)),
        measured(killed(10, 11), others=(killed(20, 21),)),
        measured(killed(10, 900)),
        measured(killed(10, 999)),
        measured(killed(10, None)),
    ]
    played = [result(*faults)]
    words = (
        "worker kill, no other kind of fault going on: 1 of 4 within 3 s, 1 not within 90 s, "
        "1 later than that, but hit again or the round over before it was seen; "
        "not measured: 2 (the round was over, after 1.0 s) (of those measured: median 2.50, worst 4.00)"
    )
    assert report.liveness(played)[0] == words
    page = report.write(played, tmp_path, seed=1, wanted=7, plans=20).read_text()
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["liveness"][0] == words
    assert words in page
    (bound,) = told["bounds"]
    assert (bound["held"], bound["not_held"], bound["not_measured"]) == (1, 3, 2)
    (row,) = told["faults"]
    why = "1 (it was hit again, after 9.0 s); 2 (the round was over, after 1.0 s)"
    assert (row["count"], row["measured"], row["never"], row["not_measured"]) == (6, 2, 1, why)
    assert why in page
    assert [fault["waited_s"] for fault in told["rounds"][0]["faults"]] == [None, None, 9.0, 100.0, 1.0, 0.0]
    assert "Only 6 of the 7 faults took place that were wanted" in page


def test_a_worker_of_kip_848_is_told_by_itself() -> None:
    """Its partitions wait for its session to end, whatever we do."""
    slow, quick = measured(killed(10, 11), (11, 15.0)), measured(killed(10, 11), (11, 12.0))
    lines = report.liveness([result(quick), result(slow, protocol="consumer")])
    assert lines[0].startswith("worker kill, no other kind of fault going on: 1 of 1 within 3 s")
    assert lines[1].startswith("worker kill, no other kind of fault going on, KIP-848: 0 of 1 within 3 s")


def test_a_worker_killed_amid_other_faults_has_the_bound_of_brokers() -> None:
    """Amid: one of another kind began before its output was back, and was not over before it died. In the same round only."""
    slow = measured(killed(10, 11), (11, 15.0))  # 4 s, over at 15

    def going_on(at: float, over_at: float | None, kind: str = "broker kill") -> Fault:
        fault = killed(at, at, kind=kind)
        fault.recovery_s, fault.over_at = 1.0, over_at
        return fault

    for other in (going_on(1, 10), going_on(15, 20), going_on(11, 12, "zombie"), going_on(1, None)):
        assert report.liveness([result(slow, other)])[0].startswith(
            "worker kill amid faults of other kinds: 1 of 1 within 15 s"
        )
    for other in (going_on(1, 9.9), going_on(15.1, 20), going_on(11, 12, "worker kill")):
        assert report.liveness([result(slow, other)])[0].startswith("worker kill, no other kind of fault going on: ")
    assert "0 of 1 within 3 s" in report.liveness([result(slow), result(going_on(11, 12))])[0]
    for aborts, amid in (([("p-w0", 12.0)], True), ([("p-w1", 12.0), ("p-w0", 9.9), ("p-w0", 15.1)], False)):
        failing = result(slow)
        failing.aborts = aborts
        assert report.liveness([failing])[0].startswith("worker kill amid faults of other kinds: 1 of 1") is amid
    unproven = result(slow)
    unproven.disturbed = [(14.0, 30.0)]
    assert "1 of 1 within 15 s" in report.liveness([unproven])[0]


def test_stable_offsets_that_stood_are_told_by_whether_brokers_were_well() -> None:
    """Faults of workers are no excuse: their transactions are ended when their time is up."""
    played = result(killed(10, 11))
    played.disturbed = [(90.0, 95.0)]
    played.stands = [
        Stand("out[0] at 7", 11, 3.4),
        Stand("out[1] at 8", 30, 3.6),
        Stand("out[2] at 9", 89, 2.0),
        Stand("out[0] at 9", 80, 9.9),
    ]
    assert report.liveness([played])[-2:] == [
        "last stable offset, all brokers well: 1 of 3 that stood for 1 s within 3.5 s (worst 9.9, out[0] at 9)",
        "last stable offset, amid faults of brokers or the network: 1 of 1 that stood for 1 s within 15 s (worst 2.0, out[2] at 9)",
    ]
    assert report.liveness([result()])[-1].endswith(": none stood for 1 s")


def test_the_judges_that_did_not_judge_are_not_named() -> None:
    """By those that all rounds have in common."""
    whole, part = result(), result(judges=("verifier", "console consumer"))
    assert summary([whole]).endswith("order kept, by verifier, console consumer and audit")
    assert summary([whole, part]).endswith("order kept, by verifier and console consumer")


class _NoArena:
    bootstrap = ""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """The command with rounds of two faults each; returns its exit code and what it prints."""
    monkeypatch.setattr(command, "Arena", _NoArena)
    monkeypatch.setattr(
        command, "play", lambda *_: result(measured(killed(1, 2), (2, 3)), measured(killed(1, 2), (2, 3)))
    )
    monkeypatch.setenv("RECKON_BOOTSTRAP_SERVERS", "")

    def call(*arguments: str) -> tuple[int, str]:
        app = typer.Typer()
        app.command()(command.main)
        done = CliRunner().invoke(app, ["--no-audit", "--out", str(tmp_path), *arguments])
        return done.exit_code, done.output

    return call


def test_too_few_faults_are_a_failure(run: Callable[..., tuple[int, str]]) -> None:
    """When the time is up and not all of them took place; and only then, and not where one round is played alone."""
    code, output = run("--faults", "5", "--minutes", "0")
    assert code == 1
    assert "Only 2 of the 5 faults took place that were wanted: after 0 minutes no further round was begun" in output
    for enough in (["--faults", "4"], ["--faults", "2", "--minutes", "0"], ["--faults", "5", "--only", "2"]):
        code, output = run(*enough)
        assert code == 0, output
        assert "Only" not in output
