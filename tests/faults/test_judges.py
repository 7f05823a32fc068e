"""The judges of a round: what they do not take for an answer. Without brokers; on broken workers: test_mutants."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

from devkit.verify import StoredRecord
from spark_batch.model import Cut, Depth, Finding, Judgement, Kind, Verdict
from tests.faults import campaign, judges
from tests.faults.console import ConsoleError
from tests.faults.model import Fault
from tests.faults.outside import OUTSIDE
from tests.faults.workloads import WORKLOADS, Line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devkit.verify import Partition
    from tests.faults.model import Opinion

SOURCES = [
    StoredRecord("p.in", n % 2, n // 2, b"k", json.dumps({"n": n}).encode() if n else b"no json", (), 1)
    for n in range(20)
]
"""Ten in each of two partitions; the oracle of "aborts" filters two of them, and one goes to the dead letters."""
TRUE = {Verdict.EXACTLY_ONCE: 17, Verdict.FILTERED: 2, Verdict.DEAD_LETTERED: 1}
AFTER_LAST = 3
"""Offsets with markers after the last record of partition 0."""
ALL = {("p.in", 0): 10, ("p.in", 1): 10}
"""What the group has committed when every record is done."""


def line(committed: Mapping[Partition, int] = ALL) -> Any:
    fake: Any = SimpleNamespace(
        workload=WORKLOADS[0], sink="p.out", dead_letters="p.dead-letters", partitions=[("p.in", 0), ("p.in", 1)]
    )
    fake.path, fake.sources, fake.committed = Path("p.yaml"), lambda: SOURCES, lambda: {**committed}
    fake.all_expected = lambda source: Line.all_expected(fake, source)
    return fake


def audited(totals: Mapping[Verdict, int], *findings: Finding, committed: Mapping[Partition, int] = ALL) -> Opinion:
    ends = {("p.in", 0): 10 + AFTER_LAST, ("p.in", 1): 10}
    cut = Cut(0, "p", {("p.in", 0): 10, ("p.in", 1): 10}, {}, ends, {}, {}, frozenset(), 0.0)
    counts = Counter(finding.kind for finding in findings)
    judgement = Judgement("p", "", Depth.CONTENT, cut, {}, (), findings, counts, totals=dict(totals))
    return judges.audit(line(committed), lambda _path, _depth: judgement)


def test_the_audit_is_believed_where_its_figures_are_those_of_the_oracle() -> None:
    """Offsets after the last record are no records in flight."""
    opinion = audited(TRUE | {Verdict.IN_FLIGHT: AFTER_LAST})
    assert (opinion.problems, opinion.records, opinion.verdict) == ([], 20, "COMPLETE")
    passed = {**ALL, ("p.in", 0): 10 + AFTER_LAST - 1}  # what a worker has passed has been dealt with
    assert audited(TRUE | {Verdict.IN_FLIGHT: 1}, committed=passed).problems == []
    assert audited(TRUE | {Verdict.IN_FLIGHT: 1}).problems == ["1 records are in flight, not 3 as by the oracle"]
    # A record that nobody has committed is in flight, and may not be.
    behind = {**ALL, ("p.in", 1): 9}
    few = TRUE | {Verdict.EXACTLY_ONCE: 16, Verdict.IN_FLIGHT: AFTER_LAST + 1}
    assert len(audited(few, committed=behind).problems) == 2


@pytest.mark.parametrize(
    ("totals", "problems"),
    [
        (
            {},
            [
                "it had no record to judge",
                "0 records are dead-lettered, not 1 as by the oracle",
                "0 records are exactly once, not 17 as by the oracle",
                "0 records are filtered, not 2 as by the oracle",
                "0 records are in flight, not 3 as by the oracle",
            ],
        ),
        (
            TRUE | {Verdict.EXACTLY_ONCE: 16, Verdict.IN_FLIGHT: AFTER_LAST + 1},
            [
                "16 records are exactly once, not 17 as by the oracle",
                "4 records are in flight, not 3 as by the oracle",
            ],
        ),
        (
            TRUE | {Verdict.EXACTLY_ONCE: 16, Verdict.FILTERED: 3, Verdict.IN_FLIGHT: AFTER_LAST},
            ["16 records are exactly once, not 17 as by the oracle", "3 records are filtered, not 2 as by the oracle"],
        ),
    ],
)
def test_a_complete_audit_of_other_records_than_the_oracles_is_a_problem(
    totals: Mapping[Verdict, int], problems: list[str]
) -> None:
    """Of none, of all but one, of one with another verdict: "complete" is not enough."""
    opinion = audited(totals)
    assert opinion.verdict == "COMPLETE"
    assert sorted(opinion.problems) == sorted(problems)


def test_an_audit_that_could_not_judge_names_no_kind_of_fault() -> None:
    """It is a problem as well, and told from a fault."""
    totals = TRUE | {Verdict.IN_FLIGHT: AFTER_LAST}
    doubt = audited(totals, Finding(Kind.OPEN_TRANSACTION, "p.out", 0, 1))
    fault = audited(totals, Finding(Kind.DUPLICATE, "p.out", 0, 1), Finding(Kind.COMPACTED, "p.out", 0, None))
    assert (doubt.verdict, doubt.fault_kinds) == ("CANNOT_JUDGE", [])
    assert (fault.verdict, fault.fault_kinds) == ("FINDINGS", ["duplicate"])
    assert doubt.problems
    assert fault.problems


def test_a_console_without_records_has_no_opinion_that_counts() -> None:
    """Not even where nothing is expected."""
    idle = line()
    idle.sources = list
    assert judges.console(idle, []).problems == ["it had no record to judge"]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> dict[str, MagicMock]:
    """A round in which everything is played by nobody, and goes well."""
    stubs = {name: MagicMock(name=name) for name in ("lines_of", "Watch", "ConsoleReader", "Feed", "Crew")}
    for name, stub in stubs.items():
        monkeypatch.setattr(campaign, name, stub)
        stub.return_value.__enter__.return_value = stub.return_value
        stub.return_value.__exit__.return_value = None
    one = MagicMock()
    one.__exit__.return_value = None
    stubs["lines_of"].return_value = [one]
    watch, crew = stubs["Watch"].return_value, stubs["Crew"].return_value
    watch.problems, watch.commits, crew.problems, crew.faults, crew.unproven = [], [], [], [], []
    stubs["Feed"].return_value.sent = 10
    for name in ("_await_drained", "_await_read", "_judge"):
        stubs[name] = MagicMock(name=name)
        monkeypatch.setattr(campaign, name, stubs[name])
    return stubs


def played(outside: tuple[str, ...] = ()) -> campaign.Result:
    return campaign.play(
        campaign.Round(0, WORKLOADS[0], "classic", 1, (), outside), MagicMock(bootstrap="", proxied=""), Path(), None
    )


def test_what_nobody_can_see_is_a_bad_round_and_the_campaign_goes_on(stage: dict[str, MagicMock]) -> None:
    """A console that regrets a record, a watch that is blind, a judge that cannot read."""
    assert played().problems == []
    stage["ConsoleReader"].return_value.records.side_effect = ConsoleError("read twice, and not the same")
    stage["Watch"].return_value.problems = ["the watch is blind: why"]
    stage["_judge"].side_effect = LookupError("no topic")
    assert played().problems == [
        "ConsoleError('read twice, and not the same')",
        "the watch is blind: why",
        "a judge could not judge: LookupError('no topic')",
    ]


def test_no_output_after_a_fault_from_outside_is_a_bad_round(
    stage: dict[str, MagicMock], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that changes nothing does not count."""
    first = [1.0]
    stage["Watch"].return_value.all_move_on_s.side_effect = lambda *_: first.pop() if first else None
    killed = Fault("broker kill", "any node", "1", 0.0, "ended by signal 9")
    monkeypatch.setitem(OUTSIDE, "kill", lambda *_: [killed])
    monkeypatch.setitem(OUTSIDE, "nothing", lambda *_: [])
    result = played(("nothing", "kill"))
    assert result.faults == [killed]
    assert result.unproven == ["0, nothing: nothing took place"]
    assert result.problems == ["no output within 90 s after broker kill (any node) of 1"]
