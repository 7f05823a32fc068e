"""Three brokers, reachable directly and through proxies, and who leads what in them."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaException

from devkit import Cluster
from devkit.admin import admin_client
from devkit.ports import HOST, Port
from tests.faults.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from confluent_kafka.admin import ClusterMetadata, PartitionMetadata  # type: ignore[attr-defined] # its stubs forget it

    from devkit.node import Node
    from devkit.verify import Partition

NODES = 3
SESSION_S = 3.0
"""Until a silent broker is given up (devkit's broker.session.timeout.ms), and others lead its partitions."""
_REQUEST_S = 2.0  # for one metadata request: a paused broker would keep it for ever
_POLL_S = 0.1
_NEWS_S = 60.0  # until every broker has heard of a new topic or partition


def second_listener(settings: Mapping[str, str], behind: int, proxy: int) -> dict[str, str]:
    """Over these settings of a broker: a listener on the port ``behind`` that tells its clients to come by the port ``proxy``."""
    return {
        "listeners": f"{settings['listeners']},PROXIED://{HOST}:{behind}",
        "advertised.listeners": f"{settings['advertised.listeners']},PROXIED://{HOST}:{proxy}",
        "listener.security.protocol.map": f"{settings['listener.security.protocol.map']},PROXIED:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


class Arena:
    """A devkit cluster of three (RF 3, min ISR 2), a context manager. `properties` are broker settings over the devkit's.

    Clients with `bootstrap` reach the brokers directly, those with `proxied` only through `proxies`, one for each node, in their order:
    each broker has a second listener that advertises its proxy's port. Brokers talk to each other directly.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._resources = contextlib.ExitStack()
        self._cluster = Cluster(NODES, properties=properties, per_node=self._listeners)
        self._behind: list[Port] = []  # the brokers' second listeners

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            self._behind = [undo.enter_context(contextlib.closing(Port())) for _ in range(NODES)]
            self.proxies = [undo.enter_context(Proxy(port.number)) for port in self._behind]
            undo.enter_context(self._cluster)
            self._asked = 0
            self._admin = admin_client(self.nodes[self._asked].address)
            undo.callback(delattr, self, "_admin")  # before the brokers are gone (librdkafka #4519)
            self._resources = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def _listeners(self, settings: Mapping[str, str]) -> dict[str, str]:
        number = int(settings["node.id"]) - 1
        self._behind[number].before_start()
        return second_listener(settings, self._behind[number].number, self.proxies[number].port)

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    @property
    def proxied(self) -> str:
        """`bootstrap.servers` for clients that shall meet the network's faults."""
        return ",".join(f"{HOST}:{proxy.port}" for proxy in self.proxies)

    @property
    def nodes(self) -> list[Node]:
        return self._cluster.nodes

    def node(self, number: int) -> Node:
        """`number` is a broker's id: 1, 2 or 3."""
        return self._cluster.nodes[number - 1]

    def create_topics(self, topics: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        """Topics (name -> partitions) with three copies, usable when this returns; see Cluster.create_topics."""
        self._cluster.create_topics(topics, config=config)

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads, by metadata; -1 while none does. LookupError where there is no such partition."""
        return self._partitions(topic, partition)[partition].leader

    def group_partition(self, group: str) -> Partition:
        """The partition of the offsets topic whose leader coordinates this group (GroupCoordinatorService.partitionFor)."""
        return self._coordinating("__consumer_offsets", group)

    def transaction_partition(self, transactional_id: str) -> Partition:
        """The same for transactions (TransactionStateManager.partitionFor). LookupError before the cluster's first transaction."""
        return self._coordinating("__transaction_state", transactional_id)

    def group_coordinator(self, group: str) -> int:
        return self.leader(*self.group_partition(group))

    def transaction_coordinator(self, transactional_id: str) -> int:
        return self.leader(*self.transaction_partition(transactional_id))

    def _coordinating(self, topic: str, name: str) -> Partition:
        return topic, coordinating_partition(name, len(self._partitions(topic, 0)))

    def _partitions(self, topic: str, expected: int) -> Mapping[int, PartitionMetadata]:
        """All of the topic's, once the expected one is there: the broker that is asked may not have heard yet of what is new."""
        deadline = time.monotonic() + _NEWS_S
        while expected not in (found := self._metadata(topic).topics[topic]).partitions:
            if time.monotonic() > deadline:
                raise LookupError(f"no partition {topic}/{expected}: {found.error or sorted(found.partitions)}")
            time.sleep(_POLL_S)
        return found.partitions

    def registered(self) -> set[int]:
        """The brokers that the cluster takes for alive."""
        return set(self._metadata().brokers)

    def in_sync(self) -> bool:
        """Whether all brokers are registered and every partition has a leader and all its copies in sync, by the word of each broker.

        Each may lag behind the controller for a moment, and a client asks any of them. See that a fault is known before asking whether it
        is over.
        """
        return _whole(self._metadata()) and all(_whole(_told_by(node)) for node in self.nodes)

    def await_in_sync(self, timeout_s: float = 120.0) -> None:
        """AssertionError naming what is not in sync after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while not self.in_sync():
            assert time.monotonic() < deadline, f"not in sync after {timeout_s:g} s: {self._behind_now()}"
            time.sleep(_POLL_S)

    def heal(self, timeout_s: float = 120.0) -> None:
        """Undo whatever was done: proxies pass everything, paused nodes run, dead ones are started, all is in sync."""
        for proxy in self.proxies:
            proxy.heal()
        for node in self.nodes:
            node.resume()
        for node in self.nodes:
            node.start()
        self.await_in_sync(timeout_s)

    def _behind_now(self) -> str:
        metadata = self._metadata()
        return f"brokers {sorted(metadata.brokers)}; " + ", ".join(
            f"{name}/{number}: leader {partition.leader}, in sync {sorted(partition.isrs)}"
            for name, topic in sorted(metadata.topics.items())
            for number, partition in topic.partitions.items()
            if set(partition.isrs) != set(partition.replicas)
        )

    def _metadata(self, topic: str | None = None, timeout_s: float = 60.0) -> ClusterMetadata:
        """Of the node that answered last, or else of the next one that does.

        A client that got no answer is replaced: it would keep to the connections that it has, and of three clients all may have come to
        the one node that is paused.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return self._admin.list_topics(*([topic] if topic else []), timeout=_REQUEST_S)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                self._asked = (self._asked + 1) % NODES
                self._admin = admin_client(self.nodes[self._asked].address)


def _told_by(node: Node) -> ClusterMetadata | None:
    """What this node knows; None where it does not answer."""
    try:
        return admin_client(node.address).list_topics(timeout=_REQUEST_S)
    except KafkaException:
        return None


def _whole(metadata: ClusterMetadata | None) -> bool:
    return (
        metadata is not None
        and len(metadata.brokers) == NODES
        and all(
            partition.leader >= 0 and set(partition.isrs) == set(partition.replicas)
            for topic in metadata.topics.values()
            for partition in topic.partitions.values()
        )
    )


def coordinating_partition(name: str, partitions: int) -> int:
    """Which of the partitions of __consumer_offsets or __transaction_state keeps the group or transactional id `name`.

    Kafka: Utils.abs(name.hashCode()) % partitions, where Utils.abs is 0 for -2**31.
    """
    value = 0
    units = name.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + 256 * high + low) % 2**32
    return min(value, 2**32 - value) % 2**31 % partitions
