"""Trouble that an administrator can make and mend again while workers run: settings of topics, quotas, deletions. All of it is real."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

from devkit import jars, java
from devkit.admin import admin_client
from tests.support.topics import set_topic
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devkit.workers import WorkerProcess
    from tests.support.pipelines import Scene


@contextlib.contextmanager
def too_few_replicas(bootstrap: str, topic: str, wanted: int) -> Iterator[None]:
    """While it lasts a topic, with fewer than ``wanted`` of at least as many copies in sync, takes no record: NOT_ENOUGH_REPLICAS.

    Not to be had on one node: Kafka never asks for more copies than a topic has (Partition.effectiveMinIsr).
    """
    set_topic(bootstrap, topic, {"min.insync.replicas": str(wanted)})
    try:
        yield
    finally:
        set_topic(bootstrap, topic, {"min.insync.replicas": ""})


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = admin_client(bootstrap)
    (future,) = admin.delete_topics([topic]).values()
    future.result(PATIENCE_S)


@contextlib.contextmanager
def quota(bootstrap: str, client_id: str, **bytes_per_second: int) -> Iterator[None]:
    """`producer_byte_rate`, `consumer_byte_rate` of a client. By Kafka's own tool: confluent-kafka has no call for quotas."""
    given = ",".join(f"{name}={value}" for name, value in bytes_per_second.items())
    _configs(bootstrap, client_id, "--add-config", given)
    try:
        yield
    finally:
        _configs(bootstrap, client_id, "--delete-config", ",".join(bytes_per_second))


def _configs(bootstrap: str, client_id: str, *what: str) -> None:
    command = [
        str(java.find_java()),
        "-XX:TieredStopAtLevel=1",
        "-cp",
        os.pathsep.join(map(str, jars.jar_paths("kafka"))),
    ]
    command += ["kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap, "--alter"]
    command += ["--entity-type", "clients", "--entity-name", client_id, *what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def text(worker: WorkerProcess) -> str:
    return worker.log_path.read_text(errors="replace")


def ending(worker: WorkerProcess, limit_s: float = 120.0) -> tuple[int, str]:
    """(exit code, what it said to a person at the end), once it has ended. Never a traceback."""
    code = worker.wait(limit_s)
    lines = text(worker).splitlines()
    assert not [line for line in lines if line.startswith("Traceback")], worker.tail()
    return code, "\n".join(line for line in lines if not line.startswith(("{", "%")))


def goes_on(scene: Scene, worker: WorkerProcess, records: int) -> None:
    """Until so many records are committed by the worker itself, which then ends in order."""
    await_true(lambda: sum(scene.committed().values()) >= records or not worker.alive, f"{records} committed", 100)
    assert worker.alive, worker.tail()
    worker.terminate()
    assert worker.wait(PATIENCE_S) == 0
