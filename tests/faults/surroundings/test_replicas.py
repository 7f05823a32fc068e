"""Too few copies in sync: a topic that asks for three of them while a node is dead takes no record, be it ours or Kafka's own."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from devkit.admin import admin_client, registered_brokers
from tests.faults.surroundings.trouble import text, too_few_replicas
from tests.support.pipelines import Scene, events
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from devkit import Cluster
    from devkit.workers import WorkerProcess

pytestmark = [pytest.mark.xdist_group("three brokers"), pytest.mark.long]

TRANSACTIONS, OFFSETS = "__transaction_state", "__consumer_offsets"


@contextlib.contextmanager
def one_dead(cluster: Cluster) -> Iterator[None]:
    """Topics that ask for two copies in sync, as all do by default here, still work; no leader is on the dead node any more."""
    cluster.nodes[2].kill()
    try:
        admin = admin_client(cluster.nodes[0].address)
        await_true(lambda: registered_brokers(admin) == {1, 2}, "the dead node is given up")
        yield
    finally:
        cluster.nodes[2].start()


def proofs(cluster: Cluster, topic: str, worker: WorkerProcess) -> int:
    """How often it was seen so far that nothing can be written to the topic.

    Group coordinators leave no word of it in their logs: they keep what they cannot write, and whoever asked waits.
    """
    return (
        text(worker).count("send_offsets_to_transaction: _TIMED_OUT") if topic == OFFSETS else refused(cluster, topic)
    )


def refused(cluster: Cluster, topic: str) -> int:
    """How many appends to a topic the brokers have refused so far, by their logs."""
    logs = [node.log_path.read_text(errors="replace") for node in cluster.nodes]
    return sum(
        1
        for log in logs
        for line in log.splitlines()
        if "insufficient to satisfy the min.isr requirement" in line and f" {topic}-" in line
    )


@pytest.mark.parametrize("kind", ["sink", "receipts", TRANSACTIONS, OFFSETS])
@pytest.mark.parametrize("lasts_s", [2, 12])
def test_while_the_worker_runs(three: Cluster, tmp_path: Path, kind: str, lasts_s: float) -> None:
    """For less than the transaction's timeout, and for several of them: the worker waits, aborts, takes fresh producers, and goes on by
    itself when the copies are there; nothing was committed meanwhile."""
    with Scene(three.bootstrap, tmp_path, partitions=1, sinks=1, records=50, replicas=3) as scene, one_dead(three):
        topic = kind if kind.startswith("__") else str(getattr(scene, kind))
        scene.produce(200)
        worker = scene.worker()
        scene.await_committed(200)
        before = proofs(three, topic, worker)
        with too_few_replicas(three.bootstrap, topic, 3):
            scene.produce(100)
            await_true(lambda: proofs(three, topic, worker) > before, "the brokers do not write")
            time.sleep(lasts_s)
            assert worker.alive
            assert len(scene.outputs()) < 190, "outputs of the first 200 records alone"
        scene.await_committed(300)
        worker.terminate()
        assert worker.wait() == 0
        assert len(text(worker).splitlines()) < 300
        assert scene.problems() == []
    del scene.reader


def test_transactions_unavailable_at_the_start(three: Cluster, tmp_path: Path) -> None:
    """Patient for the start timeout, and longer where it is longer."""
    with Scene(three.bootstrap, tmp_path, partitions=1, sinks=1, records=50, replicas=3) as scene, one_dead(three):
        scene.produce(200)
        with too_few_replicas(three.bootstrap, TRANSACTIONS, 3):
            impatient = scene.worker("impatient", env={"RECKON_START_TIMEOUT_S": "3"})
            patient = scene.worker("patient", drain=True, env={"RECKON_START_TIMEOUT_S": "100"})
            assert impatient.wait() == 5
            assert f"no answer from {three.bootstrap} to init_transactions: " in text(impatient)
            await_true(lambda: events(patient, "retrying"), "the other one waits")
            assert patient.alive
        assert patient.wait(PATIENCE_S) == 0
        assert scene.problems() == []
    del scene.reader
