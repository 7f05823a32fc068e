"""Who a worker is for the group, what it may commit, and how it leaves."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError

from tests.unit.worker.fakes import failure, metadata_bytes
from tests.unit.worker.fakes import settings as plain_settings
from worker.membership import LEAVE_S, Membership, NotAMemberError, as_member_for, leave

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

    assert leave(cast("Consumer", consumer)) is True

    assert consumer.calls == ["unsubscribe"] + ["consume"] * polls


def test_leaving_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that does not answer cannot hold a worker that wants to stop."""
    consumer = FakeConsumer(float("inf"))
    now = iter([0.0, LEAVE_S / 2, LEAVE_S, LEAVE_S + 0.1])
    monkeypatch.setattr("worker.membership.time", SimpleNamespace(monotonic=lambda: next(now)))

    assert leave(cast("Consumer", consumer)) is False

    assert consumer.calls == ["unsubscribe", "consume"]


def test_a_fenced_member_has_nothing_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka refuses the call after a fatal error; stopping goes on."""
    consumer = FakeConsumer(1)
    monkeypatch.setattr(consumer, "unsubscribe", lambda: (_ for _ in ()).throw(failure(KafkaError._FATAL)))

    assert leave(cast("Consumer", consumer)) is False

    assert consumer.calls == []


def test_t3_with_kip_848_epochs_rise_without_an_assignment() -> None:
    """What brings an assignment there is the broker's affair; a commit goes out with the epoch of now."""
    given = plain_settings()
    membership = Membership(
        replace(given, consumer={**given.consumer, "group.protocol": "consumer"}), lambda: metadata_bytes(4, "member-1")
    )

    assert membership.for_commit() == metadata_bytes(4, "member-1")


def test_t3_another_member_id_of_the_same_generation_is_refused() -> None:
    """A static member that comes back into a stable group keeps its generation."""
    told = [metadata_bytes(3, "member-1"), metadata_bytes(3, "member-2")]
    membership = Membership(plain_settings(), lambda: told.pop(0))
    assert membership.note() is False

    with pytest.raises(NotAMemberError, match=r"our partitions are of \('member-1', 3\)$"):
        membership.for_commit()
