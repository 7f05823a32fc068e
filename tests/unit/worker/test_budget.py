from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.support.records import Record
from transforms.errors import TimeBudgetExceeded
from transforms.records import Failure, Result, Transform
from worker.budget import TimeBudget
from worker.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from transforms.records import SourceRecord

# pytest-timeout's other way uses the very timer that is tested here.
pytestmark = pytest.mark.timeout(240, method="thread")

BUDGET_MS = 200

NEVER_MS = 600_000
"""A budget of which the timer itself sends no tick in a test; ticks are sent by hand, so that no pause of this process adds one."""
NEVER_S = NEVER_MS / 1000


class Clock:
    """What the budget takes for the time and for its thread's processor time."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.worked_s = 5.0

    def tick_after(self, elapsed_s: float, *, worked_s: float = 0.0) -> None:
        """A tick of the timer, so long after the one before."""
        self.now_s += elapsed_s
        self.worked_s += worked_s
        signal.raise_signal(signal.SIGALRM)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    fake = SimpleNamespace(monotonic=lambda: clock.now_s, thread_time=lambda: clock.worked_s)
    monkeypatch.setattr("worker.budget.time", fake)
    return clock


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


def test_e9_a_slow_batch_that_goes_on_is_not_hit(clock: Clock) -> None:
    """Together the records take several budgets, each by itself no more than one: a tick of the timer falls into each record."""
    records = [Record(b"") for _ in range(20)]

    with TimeBudget(transform(lambda _: clock.tick_after(NEVER_S)), NEVER_MS, watchdog()) as budget:
        result = budget.run(records)

    assert (result.filtered, result.failures) == (20, [])


@pytest.mark.parametrize("worked", [0, 1], ids=["waiting", "working"])
def test_e9_a_second_tick_on_the_same_record_hits_it(clock: Clock, worked: float) -> None:
    """By then it has had a whole budget; the records around it, of one tick each, have not."""
    records = [Record(b"%d" % n) for n in range(5)]

    def process(record: SourceRecord) -> None:
        for _ in range(2 if record.value() == b"2" else 1):
            clock.tick_after(NEVER_S, worked_s=worked * NEVER_S)

    with TimeBudget(transform(process), NEVER_MS, watchdog()) as budget:
        result = budget.run(records)

    assert (result.filtered, [failure.record for failure in result.failures]) == (4, [records[2]])


def hit_by(clock: Clock, ticks: Sequence[tuple[float, float]]) -> list[int]:
    """The ticks that hit a record which swallows what they raise. Of each: budgets since the tick before, and budgets worked meanwhile."""
    hits = []

    def process(_: SourceRecord) -> None:
        for number, (elapsed, worked) in enumerate(ticks, 1):
            try:
                clock.tick_after(elapsed * NEVER_S, worked_s=worked * NEVER_S)
            except TimeBudgetExceeded:
                hits.append(number)

    with TimeBudget(transform(process), NEVER_MS, watchdog()) as budget:
        assert budget.run([Record(b"")]) == Result([], [], 1)
    return hits


def test_e9_a_record_in_which_the_process_stood_still_is_not_hit(clock: Clock) -> None:
    """Stopped, frozen or starved for 12 budgets, of which the record had a fraction; once more; and a tick that comes soon after."""
    assert hit_by(clock, [(1, 1), (12, 0.01), (12, 0.01), (0.1, 0.1)]) == []


def test_e9_a_record_that_goes_on_too_long_after_a_standstill_is_hit(clock: Clock) -> None:
    """One budget after it, as others."""
    assert hit_by(clock, [(1, 1), (12, 0), (1, 0)]) == [3]


def test_e9_a_tick_soon_after_one_that_came_late_does_not_hit(clock: Clock) -> None:
    """The late one fell into this record, which has had a tenth of its budget since; with the third one it has had more than one."""
    assert hit_by(clock, [(1.9, 1.9), (0.1, 0.1), (1, 1)]) == [3]


def test_e9_ticks_that_are_not_quite_a_budget_apart_hit(clock: Clock) -> None:
    """The timer's own are early and late by what it takes to deliver them."""
    assert hit_by(clock, [(1, 0), (0.95, 0), (1, 0), (1.4, 0)]) == [2, 4]


def test_e9_a_record_that_swallows_what_hits_it_is_hit_again(clock: Clock) -> None:
    """By every second tick, until it comes to an end."""
    assert hit_by(clock, [(1, 1)] * 7) == [2, 4, 6]


def test_e9_a_long_call_into_c_is_the_records_own_time(clock: Clock) -> None:
    """The tick is late there too, as soon as the call is back; but the thread has worked."""
    assert hit_by(clock, [(1, 1), (12, 11.5)]) == [2]


def test_e9_a_process_that_is_given_little_time_hits_a_record_by_what_it_worked(clock: Clock) -> None:
    """As one of a container with a quota, where every tick is late: three times a third is a budget."""
    assert hit_by(clock, [(1, 0.5), (3, 0.33), (3, 0.33), (3, 0.33)]) == [4]


def test_e9_a_row_of_calls_that_wait_and_delay_the_ticks_comes_to_an_end(clock: Clock) -> None:
    """Nothing tells them from a process that stood still again and again; one record that is always there then is hit all the same."""
    assert hit_by(clock, [(1, 0)] + [(12, 0)] * 10) == [9]


def test_e9_a_tick_while_the_timer_is_taken_away_does_nothing(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """All records are done, and nobody is left who would catch what it raises; the last record had a tick already, so it would hit."""
    ticked: list[float] = []

    def setitimer(which: int, seconds: float, interval: float = 0.0) -> None:
        signal.setitimer(which, seconds, interval)
        if not seconds and not ticked:
            ticked.append(seconds)
            clock.tick_after(NEVER_S)

    with TimeBudget(transform(lambda _: clock.tick_after(NEVER_S)), NEVER_MS, watchdog()) as budget:
        names = {name: getattr(signal, name) for name in ("signal", "SIGALRM", "SIG_DFL", "ITIMER_REAL")}
        monkeypatch.setattr("worker.budget.signal", SimpleNamespace(**names, setitimer=setitimer))
        result = budget.run([Record(b"")])

    assert (result, ticked) == (Result([], [], 1), [0])


def test_e9_ticks_between_two_runs_do_nothing(clock: Clock) -> None:
    """Nor before the first one: no record is there to blame."""
    with TimeBudget(transform(lambda _: clock.tick_after(NEVER_S)), NEVER_MS, watchdog()) as budget:
        clock.tick_after(NEVER_S)
        clock.tick_after(NEVER_S)
        results = []
        for _ in range(2):
            results.append(budget.run([Record(b"")]))
            clock.tick_after(NEVER_S)
            clock.tick_after(NEVER_S)

    assert results == [Result([], [], 1)] * 2


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
