"""Faults of brokers: each takes place, says how that is known, and refuses to be told when it did not. `Arena.heal` undoes them."""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests.faults import brokers
from tests.faults.model import NotProvenError
from tests.faults.proxy import Proxy
from tests.faults.requests import quickest_round_trip_s
from tests.support.broker import unique
from tests.support.pipelines import in_background
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.arena import Arena

pytestmark = pytest.mark.xdist_group("arena")


@pytest.fixture
def topic(arena: Arena) -> str:
    name = unique("broken")
    arena.create_topics({name: 1})
    return name


@contextlib.contextmanager
def _traffic(arena: Arena, topic: str) -> Iterator[Producer]:
    """A record every few milliseconds through the proxies while the block lasts."""
    producer = Producer({"bootstrap.servers": arena.proxied, "linger.ms": 0})
    done = False

    def produce() -> None:
        while not done:
            producer.produce(topic, bytes(1000))
            producer.poll(0)
            time.sleep(0.005)

    producer.produce(topic, b"the first opens the connection")
    assert producer.flush(PATIENCE_S) == 0
    with in_background(produce):
        try:
            yield producer
        finally:
            done = True


def _await_silence(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until nobody comes by the proxies any more; and no fault waits for somebody to come."""
    await_true(lambda: sum(proxy.cut() for proxy in arena.proxies) == 0, "the client is gone", PATIENCE_S)
    monkeypatch.setattr(brokers, "_TRAFFIC_S", 0.0)


def test_a_killed_leader(arena: Arena, topic: str) -> None:
    """The proof names the old leader and the new one, which clients find; healed, all copies are in sync again."""
    target = brokers.leader_of(arena, "source", topic, 0)
    fault = brokers.kill_node(arena, target)
    assert ("broker kill", "leader of the source", str(target.number)) == (fault.kind, fault.phase, fault.target)
    found = re.fullmatch(
        rf"ended by signal 9; {topic}/0 led by {target.number} -> ([123]) after \d+\.\d s", fault.proof
    )
    assert found, fault.proof
    new = int(found[1])
    assert new != target.number
    await_true(lambda: arena.leader(topic, 0) not in (-1, target.number), "the broker that is asked knows a new leader")
    with pytest.raises(NotProvenError, match="was dead before the kill"):
        brokers.kill_node(arena, target)
    arena.heal()
    arena.await_in_sync()
    assert arena.node(target.number).alive


@pytest.mark.long
def test_a_stopped_group_coordinator(arena: Arena) -> None:
    """It leaves in order and hands its groups over; dead already, no fault is told."""
    group = unique("group")
    target = brokers.group_coordinator(arena, group)
    fault = brokers.stop_node(arena, target)
    assert (fault.kind, fault.phase) == ("broker stop", "group coordinator")
    assert fault.proof.startswith("ended with 143 after SIGTERM; __consumer_offsets/")
    await_true(lambda: arena.group_coordinator(group) not in (-1, target.number), "another node coordinates")
    with pytest.raises(NotProvenError, match="was dead before the stop"):
        brokers.stop_node(arena, target)


@pytest.mark.long
def test_a_paused_transaction_coordinator(arena: Arena) -> None:
    """A pause beyond the session moves its transactions to another node; the woken one comes back in sync."""
    name = unique("paused")
    Producer({"bootstrap.servers": arena.bootstrap, "transactional.id": name}).init_transactions(PATIENCE_S)
    target = brokers.transaction_coordinator(arena, name)
    fault = brokers.pause_node(arena, target, 5)
    assert (fault.kind, fault.phase) == ("broker pause", "transaction coordinator")
    assert re.fullmatch(
        rf"state T for \d+\.\d s; __transaction_state/\d led by {target.number} -> [123] after \d+\.\d s", fault.proof
    ), fault.proof
    arena.heal()


def test_a_pause_within_the_session(arena: Arena) -> None:
    """No leader needs to move; the process stood still, and runs again."""
    fault = brokers.pause_node(arena, brokers.any_node(2), 0.5)
    assert re.fullmatch(r"state T for \d+\.\d s", fault.proof)
    assert fault.target == "2"
    assert fault.at <= time.time() - 0.5
    arena.heal()


@pytest.mark.long
def test_a_node_that_cannot_write(arena: Arena, topic: str) -> None:
    """It ends by itself as for a failed log folder, others lead; with room to write it comes back."""
    target = brokers.leader_of(arena, "sink", topic, 0)
    fault = brokers.fill_disk(arena, target)
    assert (fault.kind, fault.phase) == ("disk full", "leader of the sink")
    assert arena.node(target.number).exit_code == 1
    await_true(lambda: arena.leader(topic, 0) not in (-1, target.number), "another node leads")
    arena.heal()


@pytest.mark.long
def test_a_rolling_restart(arena: Arena) -> None:
    """All three processes are new ones, and each was stopped cleanly."""
    before = {node.pid for node in arena.nodes}
    fault = brokers.rolling_restart(arena)
    assert not before & {node.pid for node in arena.nodes}
    assert fault.proof.count("ended with 143 after SIGTERM") == 3
    arena.await_in_sync()


def test_a_slow_network(arena: Arena, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round trips are measured, before and meanwhile, and others' bytes come late; without traffic nothing is proven; then it is fast."""
    with _traffic(arena, topic) as producer:
        fault = brokers.slow_network(arena, 2.0, latency_s=0.2)
    proof = r"a request and its answer took (\S+) s and more, (\S+) s and less before; (\d+) bytes of others held for 0.2 s or longer"
    found = re.fullmatch(proof, fault.proof)
    assert found, fault.proof
    assert float(found[2]) <= 0.4  # less, but rounded
    assert float(found[1]) >= 0.4
    assert producer.flush(PATIENCE_S) == 0
    del producer
    _await_silence(arena, monkeypatch)
    with pytest.raises(NotProvenError, match="nobody's bytes were late"):
        brokers.slow_network(arena, 0.1, latency_s=0.2)
    assert max(quickest_round_trip_s(address, 0.4) for address in arena.proxied.split(",")) < 0.4


def test_a_network_that_is_not_slow(arena: Arena, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that pass prove nothing: the round trips must have taken their time."""
    monkeypatch.setattr(Proxy, "slow", lambda *_args, **_latency: None)
    with _traffic(arena, topic), pytest.raises(NotProvenError, match="round trips took"):
        brokers.slow_network(
            arena, 0.1, latency_s=5.0
        )  # ten seconds by chance, at all three of them, are not to be had


def test_cut_connections(arena: Arena, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are counted, the client makes new ones and loses nothing; with none left to cut nothing is proven."""
    with _traffic(arena, topic) as producer:
        fault = brokers.cut_connections(arena)
    assert re.fullmatch(r"\d+ connections reset", fault.proof)
    assert producer.flush(PATIENCE_S) == 0
    del producer
    _await_silence(arena, monkeypatch)
    with pytest.raises(NotProvenError, match="no connection"):
        brokers.cut_connections(arena)


def test_a_black_hole(arena: Arena, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes come and none passes; afterwards the client's records arrive. Without traffic nothing is proven."""
    with _traffic(arena, topic) as producer:
        fault = brokers.black_hole(arena, 1.0)
    found = re.fullmatch(r"\d+ bytes held for up to (\d+\.\d) s, none passed", fault.proof)
    assert found, fault.proof
    assert float(found[1]) >= 1.0
    assert producer.flush(PATIENCE_S) == 0
    del producer
    _await_silence(arena, monkeypatch)
    with pytest.raises(NotProvenError, match="0 bytes were held"):
        brokers.black_hole(arena, 0.1)


def test_a_hijacked_transactional_id(arena: Arena) -> None:
    """The hijacker gets the owner's producer id and the next epoch; an id that nobody has used cannot be hijacked."""
    name = unique("owner")
    with pytest.raises(NotProvenError, match="had no producer that could lose it: epoch 0"):
        brokers.hijack(arena.bootstrap, name)
    fault = brokers.hijack(arena.bootstrap, name)
    assert re.fullmatch(r"producer id \d+ taken over, epoch 1", fault.proof)
    assert fault.target == name


def test_added_partitions(arena: Arena, topic: str) -> None:
    """One partition becomes three with leaders."""
    fault = brokers.add_partitions(arena.bootstrap, topic, 3)
    assert fault.proof == "1 -> 3 partitions with leaders"
    assert {arena.leader(topic, number) for number in range(3)} <= {1, 2, 3}
