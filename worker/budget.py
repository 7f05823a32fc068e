"""The time budget of a record (E9): a transform that does not come to an end on a record is a poison pill like any other.

Costs nothing per record: an interval timer looks at how far the list iterator has come, and only when it has not moved for a whole
budget does it raise TimeBudgetExceeded inside the transform, which makes a dead letter of that record. Python code is interrupted; a
single call into C is not. One that lets others run meanwhile and does not come back within the watchdog's limit ends the process; one that
does not let them is a limit of Python's, and of ours (docs/running.md).

Time in which the process stood still (SIGSTOP, a frozen machine, starved) is not the record's: after it a tick is late, and the thread has
used no processor time meanwhile, which tells it from a long call into C.
"""

from __future__ import annotations

import signal
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Self

from transforms.errors import TimeBudgetExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from transforms.records import Result, SourceRecord, Transform
    from worker.watchdog import Watchdog

_LATE = 1.5
"""A tick that comes so many budgets after the one before is late: the process stood still, or was in a long call into C."""
_ENOUGH = 0.9
"""So many budgets make a record fail: ticks are not exactly one budget apart."""
_LEAST = 0.125
"""So many budgets a late tick counts at least: a row of calls that wait, deaf to signals, comes to an end too."""


class TimeBudget:
    """Runs a transform with a budget per record. For the main thread only: Python delivers signals there."""

    def __init__(self, transform: Transform, budget_ms: int, watchdog: Watchdog | None = None) -> None:
        """``watchdog``: where one runs; ``reckon test`` and ``try`` do without."""
        self._transform = transform
        self._watchdog = watchdog
        self._budget_s = budget_ms / 1000
        self._rest: object = iter(())
        self._armed = False
        self._seen = -1
        """What was left at the last tick, -1 before the first one and after a failure."""
        self._taken_s = 0.0
        """By that record, since the first tick that fell into it."""
        self._ticked_s = 0.0
        self._worked_s = 0.0
        """Both at the last tick: time.monotonic() and time.thread_time()."""

    def __enter__(self) -> Self:
        signal.signal(signal.SIGALRM, self._tick)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def run(self, records: Sequence[SourceRecord]) -> Result:
        """The transform's result; the transform is pure, so a tick that falls between two records is answered by running it again."""
        while True:
            self._rest = rest = iter(records)
            self._seen = -1
            signal.setitimer(signal.ITIMER_REAL, self._budget_s, self._budget_s)
            try:
                self._armed = True
                with self._watchdog.guard("transform") if self._watchdog else nullcontext():
                    return self._transform.run(rest)
            except TimeBudgetExceeded:
                continue
            finally:
                # First, and no call: a tick during a call in here would raise out of this method.
                self._armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _tick(self, _signal: int, _frame: FrameType | None) -> None:
        if not self._armed:
            return
        left = self._rest.__length_hint__()  # type: ignore[attr-defined]
        now_s, work_s = time.monotonic(), time.thread_time()
        gap_s, worked_s = now_s - self._ticked_s, work_s - self._worked_s
        self._ticked_s, self._worked_s = now_s, work_s
        if left != self._seen:
            self._seen, self._taken_s = left, 0.0
        else:
            late = gap_s > _LATE * self._budget_s
            self._taken_s += max(worked_s, _LEAST * self._budget_s) if late else gap_s
            if self._taken_s >= _ENOUGH * self._budget_s:
                self._seen = -1
                raise TimeBudgetExceeded
        if self._watchdog is not None:
            self._watchdog.extend()
