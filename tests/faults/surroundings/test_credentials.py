"""Passwords and protocols that the broker does not take: said at once and clearly, never a secret in the log, nothing lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.surroundings.secured import PASSWORD, credentials, guard, needed
from tests.faults.surroundings.trouble import ending, goes_on, text
from tests.support.pipelines import Scene, events
from tests.support.waiting import await_true

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.surroundings.secured import SecuredCluster

pytestmark = pytest.mark.xdist_group("secured broker")


@pytest.fixture
def scene(secured: SecuredCluster, tmp_path: Path) -> Iterator[Scene]:
    """Its workers take credentials from the environment."""
    with Scene(secured.bootstrap, tmp_path, records=50) as scene:
        guard(scene)
        scene.produce(200)
        yield scene
    del scene.reader  # before its broker goes


@pytest.fixture
def user(secured: SecuredCluster, scene: Scene) -> str:
    """A user who may do what this scene's worker has to do, and no more."""
    name = secured.user()
    secured.allow(name, needed(scene).values())
    return name


@pytest.mark.parametrize(
    ("env", "said"),
    [
        pytest.param(
            {"KAFKA_PASSWORD": "wrong-42"}, "invalid credentials with SASL mechanism SCRAM-SHA-256", id="password"
        ),
        pytest.param({"KAFKA_USER": "nobody"}, "invalid credentials", id="user", marks=pytest.mark.long),
        pytest.param(
            {"RECKON_KAFKA_SASL_MECHANISMS": "SCRAM-SHA-512"},
            "Unsupported SASL mechanism: broker's supported mechanisms: SCRAM-SHA-256",
            id="mechanism",
            marks=pytest.mark.long,
        ),
    ],
)
def test_refused_credentials_end_the_start_at_once(
    secured: SecuredCluster, scene: Scene, user: str, env: dict[str, str], said: str
) -> None:
    """Exit code 2, long before the start timeout: the broker's own words, the address and the settings to look at, but no secret."""
    worker = scene.worker(env=credentials(secured, user) | env | {"RECKON_START_TIMEOUT_S": "600"})
    code, message = ending(worker)  # within two minutes, or it fails
    assert code == 2
    assert message.startswith(f"{secured.guarded} refuses our credentials: ")
    assert said in message
    assert message.endswith("check security.protocol, sasl.mechanisms, sasl.username and sasl.password")
    assert all(secret not in text(worker) for secret in (PASSWORD, "wrong-42", user))
    assert len(text(worker).splitlines()) < 40

    scene.drain(env=credentials(secured, user))
    assert scene.problems() == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("PLAINTEXT", "is security.protocol=PLAINTEXT what the broker expects?"),
        (
            "SASL_SSL",
            "SSL handshake failed: Disconnected: SSL connection closed by peer: connecting to a PLAINTEXT broker listener?",
        ),
    ],
)
def test_a_protocol_that_the_listener_does_not_speak(
    secured: SecuredCluster, scene: Scene, user: str, protocol: str, said: str
) -> None:
    """Exit code 5, as no broker answers; the setting or the listener's kind is named, also while it is waited for."""
    env = {"RECKON_KAFKA_SECURITY_PROTOCOL": protocol, "RECKON_START_TIMEOUT_S": "3"}
    worker = scene.worker(env=credentials(secured, user) | env)
    code, message = ending(worker)
    assert code == 5
    assert message.startswith(f"no broker answers at {secured.guarded} within 3 s: ")
    assert said in message
    assert said in events(worker, "waiting for a broker")[-1]["reason"]

    scene.drain(env=credentials(secured, user))
    assert scene.problems() == []


@pytest.mark.long
def test_a_password_changed_while_the_worker_runs(secured: SecuredCluster, scene: Scene, user: str) -> None:
    """Connections that are there go on. Once they break (here the broker restarts) the worker says why it cannot come back, and waits; with
    the password back it goes on by itself."""
    worker = scene.worker(env=credentials(secured, user), short=False)
    scene.await_committed(200)
    secured.set_password(user, "another")
    scene.produce(100)
    scene.await_committed(300)

    secured.node.stop()
    secured.node.start()
    scene.produce(100)
    await_true(lambda: "invalid credentials" in text(worker), "the broker refuses the worker")
    refused = len(text(worker).splitlines())
    time.sleep(8)  # as long as nothing is to happen, and to see how much it talks about it
    assert worker.alive
    assert len(text(worker).splitlines()) - refused < 160
    assert sum(scene.committed().values()) == 300

    secured.set_password(user, PASSWORD)
    goes_on(scene, worker, 400)
    assert scene.problems() == []
