from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.unit.worker.fakes import settings
from worker.orphans import GRACE_S, Orphans

if TYPE_CHECKING:
    from worker.offsets import Partition

A: Partition = ("in", 0)
B: Partition = ("in", 1)
STATIC = {"group.instance.id": "a", "session.timeout.ms": 10_000}


class Group:
    """A group whose orphans can be set, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, config: dict[str, object]) -> None:
        self.now = 1000.0
        self.orphans: set[Partition] | None = set()
        """None: the broker does not tell."""
        self.asked: list[str] = []
        monkeypatch.setattr("worker.orphans.time", SimpleNamespace(monotonic=lambda: self.now))
        given = settings()
        self.look = Orphans(replace(given, consumer={**given.consumer, **config}), self._unassigned)

    def _unassigned(self, member_id: str) -> set[Partition] | None:
        self.asked.append(member_id)
        return self.orphans

    def found_after(self, seconds: float) -> set[Partition]:
        self.look.assigned()
        self.now += seconds
        return set(self.look.found(lambda: "m"))


def test_the_group_is_asked_once_after_each_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before the members had the time to give up what they must, and not again without another generation."""
    group = Group(monkeypatch, STATIC)
    group.orphans = {A}

    assert group.found_after(9.9 + GRACE_S) == set()
    assert group.asked == []
    assert group.found_after(10 + GRACE_S) == {A}
    group.now += 1000
    assert group.look.found(lambda: "m") == set()
    assert group.asked == ["m"]


def test_a_group_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the partitions would stand still until the next generation, whenever that is."""
    group = Group(monkeypatch, STATIC)
    group.orphans = None
    assert group.found_after(10 + GRACE_S) == set()

    group.orphans = {A}
    assert group.look.found(lambda: "m") == set()
    assert group.asked == ["m"]
    group.now += GRACE_S
    assert group.look.found(lambda: "m") == {A}
    assert group.asked == ["m", "m"]


def test_a_join_that_was_of_no_use_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the group leaves out on purpose would have it rebalance for ever; other orphans are another matter."""
    group = Group(monkeypatch, STATIC)
    group.orphans = {A}
    assert group.found_after(100) == {A}
    assert group.found_after(100) == set()
    group.orphans = {A, B}
    assert group.found_after(100) == {A, B}
    group.orphans = set()
    assert group.found_after(100) == set()
    group.orphans = {A, B}
    assert group.found_after(100) == {A, B}


def test_a_join_that_did_not_come_about_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who could not leave has not found out yet whether it is of use."""
    group = Group(monkeypatch, STATIC)
    group.orphans = {A}
    assert group.found_after(100) == {A}
    group.look.forget()
    assert group.found_after(100) == {A}
    assert group.found_after(100) == set()


@pytest.mark.parametrize(
    "config", [{"session.timeout.ms": 10_000}, {**STATIC, "group.protocol": "consumer"}], ids=["dynamic", "KIP-848"]
)
def test_others_need_not_look(monkeypatch: pytest.MonkeyPatch, config: dict[str, object]) -> None:
    group = Group(monkeypatch, config)
    group.orphans = {A}

    assert group.found_after(10_000) == set()
    assert group.asked == []
