"""The few questions that starting a broker and making topics need to ask a broker."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devkit.errors import BrokerTimeoutError, DevkitError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

_POLL = 0.02  # seconds
_REQUEST = 10.0  # seconds for one request

_silent = logging.getLogger("devkit.librdkafka")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False  # a broker that is not up yet, or was killed on purpose, is no news


def admin_client(bootstrap: str) -> AdminClient:
    """An AdminClient that tries again quickly and writes nothing to stderr."""
    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "error_cb": lambda _error: None,
    }
    return AdminClient(config, logger=_silent)


def registered_brokers(admin: AdminClient) -> set[int]:
    """Ids of the brokers that the one asked knows as alive; empty when nobody answers within a second."""
    try:
        return set(admin.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return set()


def await_group_coordinators(admin: AdminClient, partitions: int, timeout: float) -> None:
    """Wait until every partition of the offsets topic has a coordinator that answers.

    The first question makes the broker create the topic, which takes a moment; a client that commits or asks for
    offsets meanwhile meets errors. Java's hash of names that differ in the last digit differs by one, so
    `partitions` such names, of one length and below ten, cover every partition.
    """
    deadline = time.monotonic() + timeout
    waiting = [f"devkit-probe-{n}" for n in range(partitions)]
    while waiting:
        # a request that met a broker just making the topic may stay unanswered: ask again rather than wait for it
        futures = admin.describe_consumer_groups(waiting, request_timeout=2.0)
        waiting = [group for group, future in futures.items() if not _answered(future)]
        if time.monotonic() > deadline:
            raise BrokerTimeoutError(f"no group coordinator answered within {timeout:g} s")


def _answered(future: Future[Any]) -> bool:
    """Whether a coordinator spoke: that it does not know the group is an answer, too."""
    try:
        future.result()
    except KafkaException as e:
        return bool(e.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND)
    return True


def create_topics(
    admin: AdminClient, topics: Mapping[str, int], replication: int, config: Mapping[str, str] | None, timeout: float
) -> None:
    """Create topics (name -> partitions) and wait until each partition has a leader and all its replicas in sync.

    Raises DevkitError with the broker's reason, for instance that a topic exists.
    """
    wanted = [
        NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(config or {}))
        for name, partitions in topics.items()
    ]
    for name, future in admin.create_topics(wanted, request_timeout=_REQUEST).items():
        try:
            future.result()
        except KafkaException as e:
            raise DevkitError(f"cannot create topic {name}: {e.args[0].str()}") from e
    deadline = time.monotonic() + timeout
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
