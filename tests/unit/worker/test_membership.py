"""Static membership: who a worker is for the group, and how it leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError

from tests.unit.worker.fakes import SpyWatchdog, failure
from tests.unit.worker.fakes import settings as plain_settings
from worker.errors import ConsumerFencedError, FencedByTwinError
from worker.membership import LEAVE_S, TWIN_WINDOW_S, Fencings, as_member_for, leave

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from worker.settings import Origin, Settings

STATIC = "group.instance.id"


def settings(static_id: str | None = "a", origin: Origin = "default") -> Settings:
    plain = plain_settings()
    own: dict[str, Any] = {} if static_id is None else {STATIC: static_id}
    return replace(plain, consumer=plain.consumer | own, origins={f"consumer.{STATIC}": origin})


def static_id(sources: dict[str, int], **changes: Any) -> str:
    return str(as_member_for(replace(settings(), **changes), sources).consumer[STATIC])


def test_the_default_id_is_the_same_for_the_same_sources_only() -> None:
    """It begins with the instance id. Another partition, topic, pipeline or instance: another member."""
    same = static_id({"a": 3, "b": 1})

    assert same.startswith("a-")
    assert len(same) == len("a-") + 8
    assert same == static_id({"b": 1, "a": 3})
    others = {
        static_id({"a": 4, "b": 1}),
        static_id({"a": 3}),
        static_id({"a": 3, "b": 1}, pipeline="other"),
        static_id({"a": 3, "b": 1}, instance_id="b"),
    }
    assert len(others | {same}) == 5


@pytest.mark.parametrize(
    "given", [settings("mine", "environment"), settings("mine", "pipeline file"), settings(None)], ids=str
)
def test_what_the_user_set_is_left_alone(given: Settings) -> None:
    """A static id of his, or none."""
    assert as_member_for(given, {"a": 1}) is given


class FakeConsumer:
    """A member until so many polls after it unsubscribed."""

    def __init__(self, polls: float) -> None:
        self.calls: list[str] = []
        self._polls = polls

    def unsubscribe(self) -> None:
        self.calls.append("unsubscribe")

    def memberid(self) -> str:
        return "a-1" if self._polls > 0 else ""

    def consume(self, _most: int, _wait_s: float) -> list[Any]:
        self.calls.append("consume")
        self._polls -= 1
        return []


@pytest.mark.parametrize("polls", [0, 3])
def test_leaving_polls_until_there_is_no_member_id(polls: int) -> None:
    """At once where the group was never joined; else the revocation is served by polls."""
    consumer = FakeConsumer(polls)

    leave(cast("Consumer", consumer))

    assert consumer.calls == ["unsubscribe"] + ["consume"] * polls


def test_leaving_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that does not answer cannot hold a worker that wants to stop."""
    consumer = FakeConsumer(float("inf"))
    now = iter([0.0, LEAVE_S / 2, LEAVE_S, LEAVE_S + 0.1])
    monkeypatch.setattr("worker.membership.time.monotonic", lambda: next(now))

    leave(cast("Consumer", consumer))

    assert consumer.calls == ["unsubscribe", "consume"]


def test_a_fenced_member_has_nothing_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka refuses the call after a fatal error; stopping goes on."""
    consumer = FakeConsumer(1)
    monkeypatch.setattr(consumer, "unsubscribe", lambda: (_ for _ in ()).throw(failure(KafkaError._FATAL)))

    leave(cast("Consumer", consumer))

    assert consumer.calls == []


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        monkeypatch.setattr("worker.membership.time.monotonic", lambda: self.now)
        monkeypatch.setattr("worker.membership.time.sleep", self.slept.append)


FENCED = ConsumerFencedError("fenced")


def test_three_fencings_in_a_minute_are_a_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are not, nor are three in more than a minute; each is followed by a pause."""
    clock = Clock(monkeypatch)
    fencings = Fencings(settings(), SpyWatchdog())
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
    fencings = Fencings(settings(), SpyWatchdog())
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
    fencings = Fencings(settings(), watchdog)
    watchdog.woke_at = clock.now = 1010.0
    clock.now += 1
    fencings.proven()
    fencings.count(FENCED)

    watchdog.woke_at = 1020.0
    fencings.session_ended()
    with pytest.raises(FencedByTwinError):
        fencings.count(FENCED)
