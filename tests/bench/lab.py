"""The broker that all engines share during one benchmark, and its topics."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devkit import Cluster
from tests.bench import procfs

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 4
COORDINATOR_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Broker:
    bootstrap: str
    pids: tuple[int, ...]
    """The broker's processes where they run on this machine: their CPU is told apart from the engine's and the others'."""

    def create_topic(self, topic: str) -> None:
        admin = self._admin()  # held: a client that is collected cancels what it was asked
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(timeout=30)

    def delete_topic(self, topic: str) -> None:
        admin = self._admin()
        admin.delete_topics([topic])[topic].result(timeout=30)

    @contextmanager
    def topic(self, topic: str) -> Iterator[str]:
        """A topic for the time of a with block: results would drift as the broker's disk fills."""
        self.create_topic(topic)
        try:
            yield topic
        finally:
            self.delete_topic(topic)

    def await_group_coordinator(self, topic: str) -> None:
        """Returns when the broker keeps group offsets.

        Asking for a group's offsets while the broker still creates its offsets topic once crashed confluent-kafka
        2.16.1, so the observer starts only after this. Raises KafkaException when it takes longer than a minute.
        """
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "bench-coordinator"})
        deadline = time.monotonic() + COORDINATOR_LIMIT_S
        try:
            while True:
                try:
                    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
                except KafkaException:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.2)
                else:
                    return
        finally:
            consumer.close()

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap})


@contextmanager
def broker_for_bench() -> Iterator[Broker]:
    """The broker that RECKON_TEST_BOOTSTRAP names, else an embedded one, empty, that goes with the with block.

    From here on SIGTERM ends this process as Ctrl-C does, so that no engine is left running.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as own:
        bootstrap = os.environ.get("RECKON_TEST_BOOTSTRAP")
        if bootstrap is None:
            bootstrap = own.enter_context(Cluster(heap_mb=1024)).bootstrap
        yield Broker(bootstrap, procfs.listeners(int(bootstrap.rsplit(":", 1)[1])))
