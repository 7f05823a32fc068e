"""What is said often is written once in ten seconds."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import structlog

from worker.logs import LIMIT_S, LibrdkafkaLog, Limiter

FAIL = "FAIL [w#producer-{}] [thrd:x/1]: x/1: Connect to x failed: Connection refused (after {}ms in state CONNECT{})"
MORE = ", 3 identical error(s) suppressed"


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("worker.logs.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_the_same_text_passes_once_in_ten_seconds_and_counts_the_rest(now: list[float]) -> None:
    """Another text is not held back by it."""
    limiter = Limiter()
    assert [limiter.passes("a"), limiter.passes("a"), limiter.passes("a"), limiter.passes("b")] == [{}, None, None, {}]
    now[0] += LIMIT_S
    assert [limiter.passes("a"), limiter.passes("a"), limiter.passes("b")] == [{"suppressed": 2}, None, {}]
    now[0] += LIMIT_S
    assert limiter.passes("a") == {"suppressed": 1}


@pytest.mark.parametrize("text", [FAIL.format(7, 3, ""), FAIL.format(7, 306, MORE), FAIL.format(12, 1, "")])
def test_texts_that_differ_in_times_counts_and_clients_are_the_same(text: str) -> None:
    """What librdkafka says each time that it tries to connect."""
    limiter = Limiter()
    assert limiter.passes(FAIL.format(7, 0, "")) == {}
    assert limiter.passes(text) is None
    assert limiter.passes(text.replace("CONNECT", "APIVERSION_QUERY")) == {}
    assert limiter.passes(text.replace("x/1", "x/2")) == {}


def test_it_does_not_grow_for_ever() -> None:
    """Where each text is another one."""
    limiter = Limiter()
    for number in range(2000):
        assert limiter.passes(f"text {number}") == {}
    assert len(limiter._said) < 300


def test_e3_a_notice_is_never_suppressed() -> None:
    """Each broken connection counts, be it written or not."""
    broken: list[int] = []
    log = LibrdkafkaLog({"FAIL ": lambda _: broken.append(1)})
    with structlog.testing.capture_logs() as lines:
        for milliseconds in range(20):
            log.log(30, FAIL.format(7, milliseconds, ""))
        log.log(30, "%s %d", "OTHER", 1)
    assert len(broken) == 20
    assert [line["event"] for line in lines] == [FAIL.format(7, 0, ""), "OTHER 1"]
