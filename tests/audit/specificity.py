"""Specificity: a pipeline in turmoil, audited again and again while it runs; any finding is a false alarm."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_batch.model import Depth, ExitCode, Verdict
from tests.audit.turmoil import Turmoil, Turns
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spark_batch.model import Judgement
    from tests.audit.auditor import Auditor

_LIMIT_S = 180.0
"""No more audits after that, beyond those asked for."""

Look = tuple[Depth, bool]
"""(depth, whether it goes on from the last state)"""

LOOKS: tuple[Look, ...] = (
    (Depth.RECORDS, True),
    (Depth.CONTENT, True),
    (Depth.OFFSETS, True),
    (Depth.RECORDS, False),
    (Depth.CONTENT, False),
)


@dataclass(slots=True)
class Report:
    audits: int = 0
    by_look: Counter[str] = field(default_factory=Counter)
    alarms: list[str] = field(default_factory=list)
    judged: int = 0
    """Source records that got a verdict, over all audits."""
    moved: int = 0
    """Audits that saw the group further on than the audit before: the pipeline was running."""
    waited: int = 0
    """Audits whose cut had to wait for an open transaction."""
    longest_wait_s: float = 0.0
    turns: Turns = field(default_factory=Turns)
    problems: list[str] = field(default_factory=list)
    """Of the pipeline itself, by the devkit's judge, in the end."""
    took_s: float = 0.0

    @property
    def lacking(self) -> list[str]:
        """What must take place for audits without findings to show anything, and has not."""
        there = {
            "an abort": self.turns.aborts > 0,
            "a kill": self.turns.kills > 0,
            "a rebalance": self.turns.rebalances > 0,
            "an audit that saw the group further on than the one before": self.moved > 1,  # the first one always does
        }
        return [what for what, it_did in there.items() if not it_did]

    def line(self) -> str:
        looks = ", ".join(f"{count} {look}" for look, count in sorted(self.by_look.items()))
        return (
            f"{self.audits} audits ({looks}) in {self.took_s:.0f} s, {len(self.alarms)} false alarms; {self.judged:,} verdicts; "
            f"{self.moved} saw the group move, {self.waited} waited (at most {self.longest_wait_s:.2f} s); took place: {self.turns}"
        )


def run(
    auditor: Auditor,
    bootstrap: str,
    folder: Path,
    seed: int,
    audits: int,
    *,
    rate: float = 300,
    change_s: float = 4.0,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    """Audit so many times, each kind of LOOKS in turn; each depth has a state of its own. In the end the devkit's judge has its say.

    When changes come is up to the machine: there are more audits until nothing is lacking any more, or _LIMIT_S seconds have passed.
    """
    report, last = Report(), 0
    began = time.monotonic()
    with Turmoil(bootstrap, folder, seed, rate=rate, change_s=change_s) as turmoil:
        for number in itertools.count():
            late = time.monotonic() - began > _LIMIT_S
            if number >= audits and (late or not report.lacking):
                break
            depth, goes_on = LOOKS[number % len(LOOKS)]
            state = folder / f"state-{depth}" if goes_on else None
            look = f"{depth}{' on from the last' if goes_on else ' from the beginning'}"
            judgement = auditor(turmoil.scene.path, depth, state=state, wait_s=PATIENCE_S)
            committed = sum(judgement.cut.committed.values())
            report.moved += committed > last
            last = committed
            _note(report, look, judgement)
            turmoil.check()
            report.turns = turmoil.count()
            tell(f"{number + 1}: {look}, {committed} committed, {len(report.alarms)} alarms, {report.turns}")
        turmoil.settle()
        judgement = auditor(turmoil.scene.path, Depth.CONTENT, wait_s=PATIENCE_S)
        _note(report, "content after all", judgement)
        report.problems = turmoil.scene.problems()
    report.took_s = time.monotonic() - began
    return report


def _note(report: Report, look: str, judgement: Judgement) -> None:
    report.audits += 1
    report.by_look[look] += 1
    report.waited += judgement.cut.waited_s > 0.04
    report.longest_wait_s = max(report.longest_wait_s, judgement.cut.waited_s)
    report.judged += sum(count for verdict, count in judgement.totals.items() if verdict is not Verdict.IN_FLIGHT)
    if judgement.exit_code is not ExitCode.COMPLETE or judgement.findings:
        report.alarms.append(f"{look}: {judgement.exit_code!r}, {judgement.findings[:5]}, {judgement.totals}")
