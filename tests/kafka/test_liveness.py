"""How soon a worker is back, and whose place it takes: static membership, as it is by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kafka.test_rebalance import owned
from tests.support.pipelines import Scene, events, faults, under_load
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from pathlib import Path

    from devkit.workers import WorkerProcess

LONG_SESSION = {"RECKON_CONSUMER_SESSION_TIMEOUT_MS": "280000"}
"""Longer than any test waits for anything: who is back, or has a partition, has not waited for a session to end. The other settings are
the default ones, whose session timeout of 45 s a busy machine could be late for. What it takes on a quiet one is measured elsewhere."""

SOON_ENDED = {"RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": "6000"}
"""What it leaves open when it is killed is ended after 6 s, not after 30: receipts of others behind it are readable only then."""


def test_a_killed_worker_is_back_without_waiting_for_its_session(bootstrap: str, tmp_path: Path) -> None:
    """Killed inside a transaction and started again, its next outputs are there long before the session timeout.

    The other worker keeps its partitions: its group did not rebalance.
    """
    with Scene(bootstrap, tmp_path, partitions=4, records=200) as scene:
        staying = scene.worker("staying", short=False, env=LONG_SESSION)
        faulty = {"FAULT_KILL": "after_offsets:10"}
        killed = scene.worker("killed", short=False, env=LONG_SESSION | SOON_ENDED, faults=faulty)
        await_true(lambda: owned(staying) == 2 == owned(killed), "two partitions each", PATIENCE_S)
        with under_load(scene):
            await_true(lambda: faults(killed), "it is killed inside a transaction", PATIENCE_S)
            killed.wait()
            assert faults(killed) == ["kill at after_offsets"]
            _await_commits(scene, "staying")  # with its last generation, which its log then tells of
            assignments = _assignments(staying)
            back = scene.worker("killed", short=False, env=LONG_SESSION)
            await_true(lambda: events(back, "assigned"), "it is a member again", PATIENCE_S)
            _await_commits(scene, "killed")
            _await_commits(scene, "staying")
            assert assignments == _assignments(staying)
        scene.await_drained()
        assert owned(back) == 2
        for worker in (staying, back):
            worker.terminate()
            assert worker.wait() == 0
        assert scene.problems() == []


def test_a_worker_that_stops_leaves_its_place_at_once(bootstrap: str, tmp_path: Path) -> None:
    """The other has all partitions long before the session timeout; drained workers leave too."""
    with Scene(bootstrap, tmp_path, partitions=4) as scene:
        scene.produce(400)
        staying, leaving = (scene.worker(name, short=False, env=LONG_SESSION) for name in ("staying", "leaving"))
        await_true(lambda: owned(staying) == 2 == owned(leaving), "two partitions each", PATIENCE_S)
        leaving.terminate()
        assert leaving.wait() == 0
        await_true(lambda: owned(staying) == 4, "the other has all", PATIENCE_S)
        staying.terminate()
        assert staying.wait() == 0
        scene.produce(100)
        assert scene.worker("third", short=False, env=LONG_SESSION, drain=True).wait(PATIENCE_S) == 0
        assert scene.problems() == []


def test_sources_that_changed_while_a_worker_was_dead_are_all_read(bootstrap: str, tmp_path: Path) -> None:
    """Partitions are added between the kill and the start: the place that the dead one had would not have them."""
    with Scene(bootstrap, tmp_path, partitions=1) as scene:
        scene.produce(100)
        worker = scene.worker()
        scene.await_committed(100)
        worker.kill()
        scene.add_partitions(3)
        for number in range(3):
            scene.produce(30, partition=number)
        back = scene.worker()
        scene.await_drained()
        back.terminate()
        assert back.wait() == 0
        assert scene.problems() == []


def test_a_zombie_whose_instance_was_started_again_ends_and_commits_nothing(bootstrap: str, tmp_path: Path) -> None:
    """It stands still inside a transaction while its successor works; awake again, it ends with the exit code of a twin.

    The successor goes on as the same process.
    """
    with Scene(bootstrap, tmp_path, records=200) as scene:
        scene.produce(2000)
        zombie = scene.worker("one", short=False, faults={"FAULT_STOP": "before_commit:3"})
        await_true(lambda: faults(zombie), "the zombie stands still", PATIENCE_S)
        heir = scene.worker("one", short=False)
        scene.await_drained()
        done = scene.committed()

        zombie.resume()
        assert zombie.wait() == 3
        assert faults(zombie) == ["stop at before_commit", "resumed"]
        assert "RECKON_INSTANCE_ID" in zombie.log_path.read_text()
        assert done == scene.committed()

        scene.produce(1000)
        scene.await_drained()
        assert heir.alive
        heir.terminate()
        assert heir.wait() == 0
        assert scene.problems() == []


def test_dynamic_membership_by_an_empty_id(bootstrap: str, tmp_path: Path) -> None:
    """The group waits for the session of the dead one, and goes on."""
    dynamic = {"RECKON_CONSUMER_GROUP_INSTANCE_ID": ""}
    with Scene(bootstrap, tmp_path) as scene:
        scene.produce(200)
        killed = scene.worker(env=dynamic)
        scene.await_committed(200)
        killed.kill()
        scene.produce(200)
        back = scene.worker(env=dynamic)
        scene.await_drained()
        back.terminate()
        assert back.wait() == 0
        assert scene.problems() == []


def _assignments(worker: WorkerProcess) -> list[tuple[str, list[str]]]:
    """What it was given, and what it gave up, in that order; each generation of the group adds something, if only an empty list."""
    return [(e["event"], e["partitions"]) for e in worker.logs() if e.get("event") in ("assigned", "revoked", "lost")]


def _await_commits(scene: Scene, instance: str) -> None:
    """Two more transactions of this worker, of which one at least has begun its commit after this call (what was decided before it may
    become visible only now, but only of one: the next one is let in after the markers of the one before).
    """

    def receipts() -> int:
        return sum(r["transactional_id"] == f"{scene.name}/{instance}" for r in scene.receipt_values())

    before = receipts()
    await_true(lambda: receipts() >= before + 2, f"{instance} commits", PATIENCE_S)
