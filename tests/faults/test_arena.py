"""The arena: who gets where, and who leads what, by Kafka's own word."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from devkit import jars, java
from devkit.admin import admin_client
from tests.faults.arena import coordinating_partition
from tests.support.broker import unique
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.faults.arena import Arena

needs_arena = pytest.mark.xdist_group("arena")


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("", 0),
        ("foo", 101574 % 1000),
        ("hello world", 1794106052 % 1000),
        ("polygenelubricants", 0),  # hashes to -2**31
    ],
)
def test_names_hash_as_in_java(name: str, partition: int) -> None:
    """The absolute value of Java's hash, which is known for these."""
    assert partition == coordinating_partition(name, 1000)


@needs_arena
def test_clients_of_the_proxies_meet_no_other_address(arena: Arena) -> None:
    """Metadata name the proxies to those who came through them, and the brokers to others."""

    def ports(bootstrap: str) -> dict[int, int]:
        brokers = admin_client(bootstrap).list_topics(timeout=PATIENCE_S).brokers
        return {number: broker.port for number, broker in brokers.items()}

    assert {number: proxy.port for number, proxy in enumerate(arena.proxies, 1)} == ports(arena.proxied)
    assert {node.id: node.port for node in arena.nodes} == ports(arena.bootstrap)


@needs_arena
def test_records_pass_the_proxy_of_their_leader(arena: Arena) -> None:
    """A megabyte to one partition passes its leader's proxy, and none of the others. Again where another came to lead meanwhile."""
    topic = unique("through")
    arena.create_topics({topic: 1})
    producer = Producer({"bootstrap.servers": arena.proxied})
    for _ in range(5):
        leader = arena.leader(topic, 0)
        before = [proxy.bytes_passed for proxy in arena.proxies]
        for _ in range(1000):
            producer.produce(topic, os.urandom(1000))
        assert producer.flush(PATIENCE_S) == 0
        passed = {n: proxy.bytes_passed - before[n - 1] for n, proxy in enumerate(arena.proxies, 1)}
        if arena.leader(topic, 0) == leader:
            break
    else:
        pytest.fail("the partition never had the same leader for as long as a megabyte takes")
    assert passed.pop(leader) >= 1_000_000
    assert max(passed.values()) < 100_000


@needs_arena
def test_metadata_are_told_whoever_is_paused(arena: Arena) -> None:
    """Also when it is the node that was asked before: a client of its own would ask none but that one for a minute."""
    for node in arena.nodes:
        node.pause()
        try:
            assert arena.registered() <= {1, 2, 3}
        finally:
            node.resume()
    arena.heal()


@needs_arena
def test_coordinators_are_those_that_kafka_names(arena: Arena) -> None:
    """For groups of negative hash on every partition, and a transactional id, Kafka's own tools name the coordinators that we compute."""
    names = {coordinating_partition(name, 4): name for name in (f"coordinated-{n}" for n in range(10))}
    assert set(names) == {0, 1, 2, 3}
    topic = unique("coordinated")
    arena.create_topics({topic: 1})
    Producer({"bootstrap.servers": arena.bootstrap, "transactional.id": names[3]}).init_transactions(PATIENCE_S)
    for name in names.values():
        consumer = Consumer({"bootstrap.servers": arena.bootstrap, "group.id": name})
        consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
        consumer.close()
    ours = [part for name in names.values() for part in ("--group", name)]
    groups = _tool(arena, "consumer.group.ConsumerGroupCommand", "--describe", "--state", "--timeout", "60000", *ours)
    found = dict(re.findall(r"^(\S+)\s+127\.0\.0\.1:\d+\s+\((\d)\)", groups, re.MULTILINE))
    assert {name: str(arena.group_coordinator(name)) for name in names.values()} == {
        name: found[name] for name in names.values()
    }
    description = _tool(arena, "TransactionsCommand", "describe", "--transactional-id", names[3]).splitlines()
    assert description[-1].split()[0] == str(arena.transaction_coordinator(names[3])), description


def _tool(arena: Arena, name: str, *arguments: str) -> str:
    """The output of one of Kafka's command line tools."""
    path = os.pathsep.join(map(str, [*jars.jar_paths("kafka"), *jars.jar_paths("kafka-tools")]))
    command = [str(java.find_java()), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx64m", "-cp", path]
    command += [f"org.apache.kafka.tools.{name}", "--bootstrap-server", arena.bootstrap, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout
