"""The time budget of a record (E9): a transform that does not come to an end on a record is a poison pill like any other.

Costs nothing per record: an interval timer looks at how far the list iterator has come, and only when it has not moved for a whole
budget does it raise TimeBudgetExceeded inside the transform, which makes a dead letter of that record. Python code is interrupted; a
single call into C is not. One that lets others run meanwhile and does not come back within the watchdog's limit ends the process; one that
does not let them is a limit of Python's, and of ours (docs/running.md).
"""

from __future__ import annotations

import signal
from contextlib import nullcontext
from typing import TYPE_CHECKING, Self

from transforms.errors import TimeBudgetExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from transforms.records import Result, SourceRecord, Transform
    from worker.watchdog import Watchdog


class TimeBudget:
    """Runs a transform with a budget per record. For the main thread only: Python delivers signals there."""

    def __init__(self, transform: Transform, budget_ms: int, watchdog: Watchdog | None = None) -> None:
        """``watchdog``: where one runs; ``reckon test`` and ``try`` do without."""
        self._transform = transform
        self._watchdog = watchdog
        self._budget_s = budget_ms / 1000
        self._left = -1
        self._seen = -2
        self._rest: object = iter(())

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
                with self._watchdog.guard("transform") if self._watchdog else nullcontext():
                    return self._transform.run(rest)
            except TimeBudgetExceeded:
                continue
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _tick(self, _signal: int, _frame: FrameType | None) -> None:
        left = self._rest.__length_hint__()  # type: ignore[attr-defined]
        if left == self._seen:
            self._seen = -1
            raise TimeBudgetExceeded
        self._seen = left
        if self._watchdog is not None:
            self._watchdog.extend()
