"""A broker that answers after everybody has stopped waiting does no harm."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from confluent_kafka import Consumer

from devkit import Cluster
from tests.support.pipelines import Scene
from tests.support.waiting import await_true

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ASKS_TWICE = """\
import sys
from pathlib import Path
from transforms.loading import load_pipeline
from worker.logs import configure
from worker.settings import resolve
import worker.topics
from worker.watchdog import Watchdog

configure("json", "error")
topics = worker.topics.Topics(resolve(load_pipeline(Path(sys.argv[1]))), Watchdog(grace_s=60, call_limit_s=600))
for name, worker.topics.IDS_S in ("first", 1.0), ("second", 60.0):
    print(topics.what_is_wrong(), flush=True)
    sys.stdin.readline()
    print(topics.unassigned(name), flush=True)
"""


@contextlib.contextmanager
def _member(scene: Scene) -> Iterator[None]:
    """The group has one meanwhile, with all partitions."""
    with contextlib.closing(Consumer({"bootstrap.servers": scene.bootstrap, "group.id": scene.name})) as member:
        member.subscribe([scene.source])
        await_true(lambda: member.poll(0.1) is None and member.assignment(), "it is a member")
        yield


def test_a_late_answer_about_the_group_does_not_end_the_process(tmp_path: Path) -> None:
    """librdkafka #4605 aborts a process whose request to a coordinator has timed out when its answer comes: here each time, without care.

    The broker stands still while it is asked for the group's assignment; the worker gives up, then it answers, and is asked again.
    """
    with Cluster() as cluster, Scene(cluster.bootstrap, tmp_path) as scene, _member(scene):
        (node,) = cluster.nodes
        with subprocess.Popen(
            [sys.executable, "-c", _ASKS_TWICE, str(scene.path)],
            env={**os.environ, "RECKON_BOOTSTRAP_SERVERS": cluster.bootstrap},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as asking:
            assert asking.stdin is not None
            assert asking.stdout is not None
            told = [asking.stdout.readline()]
            node.pause()
            asking.stdin.write("\n")
            asking.stdin.flush()
            told.append(asking.stdout.readline())
            node.resume()
            told += asking.communicate("\n")[0].splitlines(keepends=True)
    assert told == ["[]\n", "None\n", "[]\n", "frozenset()\n"]
    assert asking.returncode == 0
