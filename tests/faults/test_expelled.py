"""What a member works on while the group, unknown to it, has given its partitions to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devkit.ports import HOST
from tests.faults.holding import JOIN_GROUP, HoldingProxy, broker_behind_proxy
from tests.support.pipelines import STEPS, Scene, events
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from devkit.workers import WorkerProcess

pytestmark = [pytest.mark.xdist_group("expelled"), pytest.mark.timeout(600)]

HELD = 240
"""Records in the hands of the member that is expelled: two minutes' work, and one piece of it, so that nothing is produced meanwhile."""

PATIENT = {
    "RECKON_CONSUMER_SESSION_TIMEOUT_MS": "6000",
    "RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": "5500",
    "RECKON_RECORD_BUDGET_MS": "5000",
}
"""Who is kept from running for some seconds by a busy machine is not expelled before its time, and half a second is not over its budget."""


@pytest.fixture
def place() -> Iterator[tuple[str, HoldingProxy]]:
    with broker_behind_proxy() as place:
        yield place


def test_r2_a_member_that_was_expelled_while_it_joined_commits_nothing_of_before(
    place: tuple[str, HoldingProxy], tmp_path: Path
) -> None:
    """Its JoinGroup comes too late: the broker knows it no more, and another has read on from what it works on.

    librdkafka (2.16.0) drops its member id, joins as a new member in the background, and keeps the partitions as long as nobody polls:
    with the new id the broker would take a commit of what was read under the old one. With static membership only; a dynamic member loses
    its partitions on the way (rd_kafka_cgrp_handle_JoinGroup, MEMBER_ID_REQUIRED).
    """
    bootstrap, proxy = place
    gate = tmp_path / "gate"
    steps = STEPS.replace("]", ", {python: tests.support.gate:passing}]")
    with Scene(bootstrap, tmp_path, partitions=1, steps=steps) as scene:
        env = {"RECKON_BOOTSTRAP_SERVERS": f"{HOST}:{proxy.port}", "GATE": str(gate), **PATIENT}
        late = scene.worker("late", env=env)
        scene.produce(100)
        scene.await_committed(100)
        gate.touch()
        # In a transaction, so that they come at once and as one batch, which takes it half a second a record until it is let go.
        scene.produce_in_transactions(HELD, size=HELD)
        await_true(gate.with_suffix(".reached").exists, "it has a batch in its hands", PATIENCE_S)

        joining = proxy.hold(JOIN_GROUP)
        heir = scene.worker("heir", env=PATIENT)
        assert joining.came.wait(PATIENCE_S)
        await_true(lambda: sum(scene.committed().values()) >= 100 + HELD, "another has read on", PATIENCE_S)
        joining.let_go()
        await_true(lambda: _is_back(scene, heir), "the late one is a member again, in a generation of both", PATIENCE_S)
        before = len(events(late, "aborting"))
        gate.unlink()
        await_true(
            lambda: len(events(late, "aborting")) > before, "it has tried to commit, and not done it", PATIENCE_S
        )

        scene.produce(100)
        scene.await_drained()
        for worker in (late, heir):
            worker.terminate()
            assert worker.wait(PATIENCE_S) == 0
        assert scene.problems() == []
        assert "the group has moved on to generation" in events(late, "aborting")[before]["reason"]


def _is_back(scene: Scene, heir: WorkerProcess) -> bool:
    """The assignor takes the heir's word for the partition, or that of the late one, whose then it is: the heir gives it up, and the next
    generation waits for the late one, which is at work.
    """
    both = {_name(scene, "late"), _name(scene, "heir")}
    return set(scene.reader.assignment(scene.name)) == both or bool(events(heir, "revoked"))


def _name(scene: Scene, instance: str) -> str:
    return f"{scene.name}/{instance}"
