from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.records import Record
from transforms.errors import TimeBudgetExceeded
from transforms.records import Failure, Result, Transform
from worker.budget import TimeBudget
from worker.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from transforms.records import SourceRecord

# pytest-timeout's other way uses the very timer that is tested here.
pytestmark = pytest.mark.timeout(240, method="thread")

BUDGET_MS = 200


def transform(process: Callable[[SourceRecord], None]) -> Transform:
    """Outputs nothing; a record that runs out of its budget is a failure, as the compiled pipelines have it."""

    def run(records: Iterable[SourceRecord]) -> Result:
        failures = []
        passed = 0
        for record in records:
            try:
                process(record)
                passed += 1
            except TimeBudgetExceeded:
                failures.append(Failure(record, "TimeBudgetExceeded", "", "", 0))
        return Result([], failures, passed)

    return Transform(run, "sha256:00", (), "")


def watchdog() -> Watchdog:
    return Watchdog(grace_s=600, call_limit_s=600)


def hang() -> None:
    while True:
        pass


def test_e9_a_record_on_which_the_transform_hangs_fails_alone() -> None:
    """The second and the last record hang: they fail, the others are processed, each once."""
    records = [Record(b"%d" % n) for n in range(4)]
    seen = []

    def process(record: SourceRecord) -> None:
        seen.append(record.value())
        if record.value() in (b"1", b"3"):
            hang()

    with TimeBudget(transform(process), BUDGET_MS, watchdog()) as budget:
        result = budget.run(records)

    assert [records[1], records[3]] == [failure.record for failure in result.failures]
    assert (result.filtered, seen) == (2, [b"0", b"1", b"2", b"3"])


def test_e9_a_slow_batch_that_goes_on_is_not_hit() -> None:
    """Together the records take several budgets, each by itself no more than one: a tick of the timer falls into each record.

    The ticks are sent by hand, so that no pause of this process adds one.
    """
    records = [Record(b"") for _ in range(20)]
    tick = partial(signal.raise_signal, signal.SIGALRM)

    with TimeBudget(transform(lambda _: tick()), 600_000, watchdog()) as budget:
        result = budget.run(records)

    assert (result.filtered, result.failures) == (20, [])


def test_e9_a_second_tick_on_the_same_record_hits_it() -> None:
    """By then it has had a whole budget; the records around it, of one tick each, have not."""
    records = [Record(b"%d" % n) for n in range(5)]

    def process(record: SourceRecord) -> None:
        for _ in range(2 if record.value() == b"2" else 1):
            signal.raise_signal(signal.SIGALRM)

    with TimeBudget(transform(process), 600_000, watchdog()) as budget:
        result = budget.run(records)

    assert (result.filtered, [failure.record for failure in result.failures]) == (4, [records[2]])


def test_e9_a_tick_between_two_records_runs_the_transform_again() -> None:
    """Where no record is to blame, the pure transform simply runs again over all records."""
    records = [Record(b"0"), Record(b"1")]
    runs: list[list[SourceRecord]] = []

    def run(given: Iterable[SourceRecord]) -> Result:
        runs.append(list(given))
        if len(runs) == 1:
            raise TimeBudgetExceeded
        return Result([], [], 2)

    with TimeBudget(Transform(run, "sha256:00", (), ""), BUDGET_MS, watchdog()) as budget:
        result = budget.run(records)

    assert (result, runs) == (Result([], [], 2), [records, records])


def test_e9_the_timer_runs_only_during_the_transform() -> None:
    """Not between batches, where there is no record to blame, also not after an error; and the handler goes with the budget."""

    def fail(_: SourceRecord) -> None:
        armed.append(signal.getitimer(signal.ITIMER_REAL)[1])
        raise LookupError

    armed: list[float] = []
    with TimeBudget(transform(fail), 10_000, watchdog()) as budget:
        with pytest.raises(LookupError):
            budget.run([Record(b"")])
        between = signal.getitimer(signal.ITIMER_REAL)

    assert (armed, between) == ([10.0], (0.0, 0.0))
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
