"""How a worker comes back after broker failures: by itself, as the same process, and exactly once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.faults import brokers
from tests.support.pipelines import LASTING, SHORT, Scene, events, under_load
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from pathlib import Path

    from devkit.workers import WorkerProcess
    from tests.faults.arena import Arena

pytestmark = [pytest.mark.xdist_group("arena"), pytest.mark.long, pytest.mark.timeout(900)]


def ends_in_order(scene: Scene, worker: WorkerProcess) -> None:
    scene.await_drained()
    assert worker.alive, worker.tail()
    worker.terminate()
    assert worker.wait(PATIENCE_S) == 0
    assert scene.problems() == []


def await_every_partition(scene: Scene) -> None:
    """Until each partition has a newly committed offset."""
    before = scene.committed()
    await_true(
        lambda: all(end > before.get(partition, 0) for partition, end in scene.committed().items()),
        "every partition is committed again",
        PATIENCE_S,
    )


def test_a_member_fenced_by_its_own_late_request_goes_on(arena: Arena, tmp_path: Path) -> None:
    """Its coordinator stands still for longer than its session, it joins anew, and a request of before is fenced (#3437)."""
    with Scene(arena.bootstrap, tmp_path, records=100, replicas=3) as scene:
        worker = scene.worker(short=False, env=SHORT)
        with under_load(scene):
            scene.await_committed(200)
            for _ in range(5):
                brokers.pause_node(arena, brokers.group_coordinator(arena, scene.name), 5.0)
                arena.heal()
                await_every_partition(scene)
                if events(worker, "fresh consumer"):
                    break
            assert events(worker, "fresh consumer"), "it was never fenced: the test shows nothing"
        ends_in_order(scene, worker)
    del scene.reader


@pytest.mark.parametrize("strategy", ["none", "rebootstrap"])
def test_all_brokers_away_at_once(arena: Arena, tmp_path: Path, strategy: str) -> None:
    """Default settings, and librdkafka's own way to look for brokers again, in which it may lose its coordinator for ever."""
    with Scene(arena.bootstrap, tmp_path, records=100, replicas=3) as scene:
        worker = scene.worker(short=False, env={"RECKON_PRODUCER_METADATA_RECOVERY_STRATEGY": strategy})
        with under_load(scene):
            scene.await_committed(200)
            for node in arena.nodes:
                node.kill()
            time.sleep(6)  # so long nobody is there
            with ThreadPoolExecutor() as pool:  # a controller alone does not get ready: together
                list(pool.map(lambda node: node.start(), arena.nodes))
            arena.heal()
            await_every_partition(scene)
        ends_in_order(scene, worker)
    del scene.reader


def test_a_group_coordinator_that_died_while_nothing_was_to_do(arena: Arena, tmp_path: Path) -> None:
    """librdkafka's producer remembers it, and asks for no other as long as none of its connections comes up or breaks
    (rd_kafka_coord_req_fsm): the next transaction hung until it was given up, after 10 s.

    The transaction coordinator lives. The producer has written to all three nodes, so that none of its connections is new. And behind the
    proxies, as behind many a load balancer, the dead node takes connections and breaks them; where it refuses them nothing hung.
    """
    with Scene(arena.bootstrap, tmp_path, partitions=1, sinks=3, replicas=3) as scene:
        scene.produce_in_transactions(100)
        scene.drain("first")  # now there are coordinators
        names = (f"w{number}" for number in count())
        coordinator = brokers.group_coordinator(arena, scene.name)
        led = (name for name in names if arena.transaction_coordinator(f"{scene.name}/{name}") != coordinator.number)
        worker = scene.worker(next(led), short=False, env=LASTING | {"RECKON_BOOTSTRAP_SERVERS": arena.proxied})
        scene.produce(100)
        scene.await_drained()
        brokers.kill_node(arena, coordinator)
        scene.produce(100)
        scene.await_drained()
        arena.heal()
        assert events(worker, "fresh producer") == []
        ends_in_order(scene, worker)
    del scene.reader
