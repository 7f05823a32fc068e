"""The few questions that starting a broker and making topics need to ask a broker."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devkit.errors import BrokerTimeoutError, DevkitError

if TYPE_CHECKING:
    from collections.abc import Mapping

_POLL = 0.02  # seconds
_REQUEST = 30.0  # seconds for one request

_silent = logging.getLogger("devkit.librdkafka")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False  # a broker that is not up yet, or was killed on purpose, is no news


def admin_client(bootstrap: str) -> AdminClient:
    """An AdminClient that tries again quickly and writes nothing to stderr."""
    return AdminClient(_client(bootstrap), logger=_silent)


def _client(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "error_cb": lambda _error: None,
    }


def registered_brokers(admin: AdminClient) -> set[int]:
    """Ids of the brokers that the one asked knows as alive; empty when nobody answers within a second."""
    try:
        return set(admin.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return set()


def await_group_coordinators(bootstrap: str, partitions: int, timeout: float) -> None:
    """Wait until every partition of the offsets topic has a coordinator that answers.

    The first question makes the broker create the topic, which takes a moment; a client that commits or asks for
    offsets meanwhile meets errors. Java's hash of names that differ in the last digit differs by one, so
    `partitions` such names, of one length and below ten, cover every partition.

    Asked by a consumer, not by AdminClient.describe_consumer_groups: with librdkafka 2.16.0 an admin request to a
    coordinator that is just coming up ended the whole process now and then (assertion `eonce->refcnt > 0` in
    rd_kafka_admin_coord_response_parse).
    """
    deadline = time.monotonic() + timeout
    for n in range(partitions):
        consumer = Consumer({**_client(bootstrap), "group.id": f"devkit-probe-{n}"}, logger=_silent)
        try:
            while not _answers(consumer):
                if time.monotonic() > deadline:
                    raise BrokerTimeoutError(f"no group coordinator answered within {timeout:g} s")
        finally:
            consumer.close()


def _answers(consumer: Consumer) -> bool:
    try:
        consumer.committed([TopicPartition("devkit-probe", 0)], timeout=2.0)
    except KafkaException:
        time.sleep(_POLL)
        return False
    return True


def create_topics(
    admin: AdminClient, topics: Mapping[str, int], replication: int, config: Mapping[str, str] | None, timeout: float
) -> None:
    """Create topics (name -> partitions) and wait until each partition has a leader and all its replicas in sync.

    Raises DevkitError with the broker's reason, for instance that a topic exists. That there are too few brokers only after `timeout`
    seconds: one that a busy machine let stand still is fenced until its next heartbeat.
    """
    deadline = time.monotonic() + timeout
    left = {
        name: NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(config or {}))
        for name, partitions in topics.items()
    }
    while left:
        for name, future in admin.create_topics(list(left.values()), request_timeout=_REQUEST).items():
            try:
                future.result()
            except KafkaException as e:
                error = e.args[0]
                if error.code() != KafkaError.INVALID_REPLICATION_FACTOR or time.monotonic() > deadline:
                    raise DevkitError(f"cannot create topic {name}: {error.str()}") from e
                time.sleep(_POLL)
            else:
                del left[name]
    for name, partitions in topics.items():
        while not _usable(admin, name, partitions, replication):
            if time.monotonic() > deadline:
                raise BrokerTimeoutError(f"topic {name} has no leaders after {timeout:g} s")
            time.sleep(_POLL)


def _usable(admin: AdminClient, topic: str, partitions: int, replication: int) -> bool:
    try:
        found = admin.list_topics(topic, timeout=_REQUEST).topics[topic].partitions
    except KafkaException:
        return False
    return len(found) == partitions and all(p.leader >= 0 and len(p.isrs) == replication for p in found.values())
