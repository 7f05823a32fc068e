"""When being fenced is a twin's doing. Of the producer's fencings tests/unit/worker/test_loop.py tells."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.unit.worker.fakes import SpyWatchdog, settings
from worker.errors import ConsumerFencedError, FencedByTwinError
from worker.fencings import TWIN_WINDOW_S, ConsumerFencings


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        # The module's own name, not the functions of `time`, which all threads call: py4j's, for one, sleeps once a second.
        monkeypatch.setattr(
            "worker.fencings.time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.slept.append)
        )


FENCED = ConsumerFencedError("fenced")


def test_three_fencings_in_a_minute_are_a_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are not, nor are three in more than a minute; each is followed by a pause."""
    clock = Clock(monkeypatch)
    fencings = ConsumerFencings(settings(), SpyWatchdog())
    fencings.count(FENCED)
    fencings.count(FENCED)
    clock.now += TWIN_WINDOW_S
    fencings.count(FENCED)
    fencings.count(FENCED)

    with pytest.raises(FencedByTwinError, match=r"^another live worker uses our instance id a and has taken our place"):
        fencings.count(FENCED)
    assert clock.slept == [1.0] * 5


def test_fencings_after_our_own_session_timeout_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late request of ours did it (#3437); a session timeout excuses one fencing."""
    Clock(monkeypatch)
    fencings = ConsumerFencings(settings(), SpyWatchdog())
    for _ in range(9):
        fencings.session_ended()
        fencings.count(FENCED)
    fencings.count(FENCED)
    fencings.count(FENCED)

    with pytest.raises(FencedByTwinError):
        fencings.count(FENCED)


def test_who_stood_still_and_is_fenced_has_a_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first fencing, whatever the reason; not where a transaction was committed since."""
    clock = Clock(monkeypatch)
    watchdog = SpyWatchdog()
    fencings = ConsumerFencings(settings(), watchdog)
    watchdog.woke_at = clock.now = 1010.0
    clock.now += 1
    fencings.proven()
    fencings.count(FENCED)

    watchdog.woke_at = 1020.0
    fencings.session_ended()
    with pytest.raises(FencedByTwinError):
        fencings.count(FENCED)


@pytest.mark.parametrize(
    ("consumer", "within_s", "beyond_s"),
    [({}, 90.0, 90.5), ({}, 5.0, 3600.0), ({"session.timeout.ms": 10_000}, 20.0, 20.5)],
    ids=["two of the default's 45 s", "an hour", "two of ten seconds"],
)
def test_a_successor_shows_within_two_session_timeouts(
    monkeypatch: pytest.MonkeyPatch, consumer: dict[str, int], within_s: float, beyond_s: float
) -> None:
    """An idle worker, whose last commit was before it stood still, is fenced long after it woke up: by its own late request (#3437)."""
    clock = Clock(monkeypatch)
    config = settings()
    config = replace(config, consumer=config.consumer | consumer)
    watchdog = SpyWatchdog()
    fencings = ConsumerFencings(config, watchdog)
    watchdog.woke_at = 1010.0

    clock.now = 1010.0 + beyond_s
    fencings.session_ended()
    fencings.count(FENCED)

    clock.now = 1010.0 + within_s
    with pytest.raises(FencedByTwinError):
        fencings.count(FENCED)
