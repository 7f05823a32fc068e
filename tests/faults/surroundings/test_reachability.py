"""Brokers that cannot be reached: at the start, for a while, or never; and what the log looks like meanwhile."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from devkit.ports import HOST
from tests.faults.surroundings.trouble import ending, goes_on, text
from tests.support.pipelines import Scene, events
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.surroundings.secured import SecuredCluster

pytestmark = pytest.mark.xdist_group("secured broker")

"""For whatever must come: nothing here waits so long unless it fails."""


@pytest.fixture
def scene(secured: SecuredCluster, tmp_path: Path) -> Iterator[Scene]:
    with Scene(secured.bootstrap, tmp_path, records=50) as scene:
        yield scene
    secured.node.start()
    del scene.reader


def test_a_broker_that_comes_late(secured: SecuredCluster, scene: Scene) -> None:
    """The worker waits and says for what and why; when the broker is there it starts by itself."""
    scene.produce(200)
    secured.node.stop()
    # Longer than the broker's start takes anywhere.
    worker = scene.worker(drain=True, env={"RECKON_START_TIMEOUT_S": "200"})
    await_true(lambda: len(events(worker, "waiting for a broker")) > 1, "it waits", PATIENCE_S)
    reason = events(worker, "waiting for a broker")[-1]["reason"]
    assert f"Connect to ipv4#{secured.bootstrap} failed: Connection refused" in reason
    assert events(worker, "waiting for a broker")[-1]["bootstrap"] == secured.bootstrap
    secured.node.start()
    code, _ = ending(worker)
    assert code == 0
    assert scene.problems() == []


@pytest.mark.long
def test_a_broker_that_goes_and_comes_back(secured: SecuredCluster, scene: Scene) -> None:
    """Killed under load and away for some seconds: the worker waits and says so, and nothing is lost or doubled."""
    worker = scene.worker(short=False)
    scene.produce(300)
    scene.await_committed(300)
    scene.produce(500)
    secured.node.kill()
    time.sleep(6)
    assert worker.alive
    secured.node.start()
    scene.produce(200)
    goes_on(scene, worker, 1000)
    assert "Disconnected: connection" in text(worker)  # told once the call at hand comes back
    assert scene.problems() == []


@pytest.mark.long
def test_an_address_that_takes_connections_and_never_answers(scene: Scene) -> None:
    """Exit code 5 within the start timeout and one attempt of 2 s."""
    with socket.create_server((HOST, 0)) as deaf:
        address = f"{HOST}:{deaf.getsockname()[1]}"
        env = {"RECKON_BOOTSTRAP_SERVERS": address, "RECKON_START_TIMEOUT_S": "3"}
        code, message = ending(scene.worker(env=env), 25)
    assert code == 5
    assert message.startswith(f"no broker answers at {address} within 3 s: ")


@pytest.mark.long
def test_a_name_that_does_not_exist(scene: Scene) -> None:
    """Exit code 5; the name is named (RFC 2606: .invalid never resolves)."""
    env = {"RECKON_BOOTSTRAP_SERVERS": "broker.invalid:9092", "RECKON_START_TIMEOUT_S": "3"}
    worker = scene.worker(env=env)
    code, message = ending(worker, 25)
    assert code == 5
    assert message.startswith("no broker answers at broker.invalid:9092 within 3 s: ")
    assert "Failed to resolve 'broker.invalid:9092'" in message
