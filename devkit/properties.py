"""The broker settings that suit tests and laptops, and why each differs from Kafka's default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devkit.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

INTERNAL_PARTITIONS = 4  # of each internal topic; the default of 50 makes the first start and each restart slow


def node_properties(
    node_id: int, listeners: Sequence[tuple[int, int]], data: Path, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The server.properties of one node; `listeners` gives (client port, controller port) of every node, in order.

    Three nodes keep three copies and accept a write with two of them alive, so one node may fail. `extra` wins.
    """
    nodes = len(listeners)
    port, controller = listeners[node_id - 1]
    copies, in_sync = str(min(3, nodes)), str(min(2, nodes))
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{n}@{HOST}:{c}" for n, (_, c) in enumerate(listeners, 1)),
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(data),
        # topics appear only when someone creates them: a mistyped name is an error, not an empty topic
        "auto.create.topics.enable": "false",
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        # test data carries old timestamps, which retention by time would delete under the reader
        "log.retention.ms": "-1",
        # 128 MB by default: a third of the heap, for topics that hold a few kilobytes
        "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
        # a group starts with its first member instead of waiting three seconds for others
        "group.initial.rebalance.delay.ms": "0",
        # lower bounds only, so that fault tests may ask for short sessions; clients' defaults stay
        "group.min.session.timeout.ms": "1000",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "100",
        # KIP-848 hands partitions over by heartbeats: at the default of 5 s a rebalance takes 10 to 15 s
        "group.consumer.heartbeat.interval.ms": "500",
        "broker.heartbeat.interval.ms": "500",
        # open transactions of the dead are looked for every second, not every ten
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    }
    if nodes > 1:
        # a killed node is given up after 3 s instead of 9: other nodes then lead its partitions, and it may itself come
        # back only then, because the controller takes it for a twin until its last session ends. Not where there is one
        # node alone: nobody takes its place, and one that a busy machine lets stand still for 3 s would be fenced, refuse
        # new topics, and leave out commit markers (KAFKA-20734)
        properties["broker.session.timeout.ms"] = "3000"
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{topic}.num.partitions"] = str(INTERNAL_PARTITIONS)
        properties[f"{topic}.replication.factor"] = copies
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{topic}.min.isr"] = in_sync
    return properties | dict(extra or {})


def render(properties: Mapping[str, str]) -> str:
    """The text of a Java properties file; a backslash is the only character of a value that needs escaping here."""
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in properties.items())
