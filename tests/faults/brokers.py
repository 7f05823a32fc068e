"""Faults of brokers and of the network before them. Each does its deed, proves it, and returns it; `Arena.heal` undoes all of them.

A proof is what the operating system says of the process, and what the cluster's metadata say of the partition whose leader was meant.
One fault at a time: the proofs are written for that, and three brokers bear no more.
"""

from __future__ import annotations

import logging
import re
import resource
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewPartitions

from devkit.admin import admin_client
from tests.faults.arena import SESSION_S, Arena
from tests.faults.model import Fault, NotProvenError
from tests.faults.requests import quickest_round_trip_s, round_trip_s
from tests.support.processes import state_of
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devkit.verify import Partition

"""Until a fault shows: a dead broker is given up after SESSION_S, on a busy machine later."""
_TRAFFIC_S = 30.0
"""How much longer than it was meant to a fault of the network lasts where nobody has sent anything yet that it could hit."""
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Target:
    """A node, and why this one."""

    number: int
    phase: str
    """The fault's phase: "leader of the source", "group coordinator", "any node"."""
    partition: Partition | None = None
    """What it leads, and somebody else must lead after the fault."""


def leader_of(arena: Arena, what: str, topic: str, partition: int) -> Target:
    """The leader of a partition; `what` names its part in the workload: "source", "sink"."""
    return Target(_led(arena, (topic, partition)), f"leader of the {what}", (topic, partition))


def group_coordinator(arena: Arena, group: str) -> Target:
    partition = arena.group_partition(group)
    return Target(_led(arena, partition), "group coordinator", partition)


def transaction_coordinator(arena: Arena, transactional_id: str) -> Target:
    partition = arena.transaction_partition(transactional_id)
    return Target(_led(arena, partition), "transaction coordinator", partition)


def any_node(number: int) -> Target:
    return Target(number, "any node")


def kill_node(arena: Arena, target: Target) -> Fault:
    """SIGKILL. Proof: the process ended by signal 9, the cluster has given it up, its partition has another leader."""
    node, at = arena.node(target.number), time.time()
    _must(node.alive, f"node {node.id} was dead before the kill")
    node.kill()
    _must(node.exit_code == -9, f"node {node.id} ended with {node.exit_code}, not by signal 9")
    return _fault("broker kill", target, at, "ended by signal 9", _gone(arena, target))


def stop_node(arena: Arena, target: Target) -> Fault:
    """A clean stop. Proof: the process ended by itself after SIGTERM, and its partition has another leader."""
    node, at = arena.node(target.number), time.time()
    _must(node.alive, f"node {node.id} was dead before the stop")
    by_itself = node.stop(PATIENCE_S)
    code = node.exit_code  # 143: Java's own for SIGTERM that it answered in order
    _must(by_itself and code == 143, f"node {node.id} did not stop cleanly but with {code}")
    return _fault("broker stop", target, at, "ended with 143 after SIGTERM", _gone(arena, target))


def pause_node(arena: Arena, target: Target, seconds: float) -> Fault:
    """SIGSTOP for so long, then SIGCONT. Proof: /proc shows it stopped, first and last.

    A pause that outlasts the broker's session by a second lasts until others lead its partition, if need be longer, and that is
    part of the proof. Of a shorter one no more is proven than that the process stood still.
    """
    node, at, began = arena.node(target.number), time.time(), time.monotonic()
    node.pause()
    try:
        _must(state_of(node.pid) == "T", f"node {node.id} is in state {state_of(node.pid)}, not stopped")
        gone = _gone(arena, target) if seconds >= SESSION_S + 1 else ""
        time.sleep(max(0.0, seconds - (time.monotonic() - began)))
        _must(state_of(node.pid) == "T", f"node {node.id} woke before its time: {state_of(node.pid)}")
        lasted = time.monotonic() - began
    finally:
        node.resume()
    return _fault("broker pause", target, at, f"state T for {lasted:.1f} s", gone)


def fill_disk(arena: Arena, target: Target) -> Fault:
    """No further write to a file succeeds for this node: it gives its only log folder up, and ends.

    Not by a full disk, which takes root and a file system, but by the kernel's limit on the size of files of this one process (Linux;
    no rights needed). The broker meets the same as with a full disk: an IOException while it appends. Its own log falls silent, too.
    Proof: it ended by itself with 1 once it had the limit, and its partition has another leader.
    """
    node, at = arena.node(target.number), time.time()
    pid = node.pid
    _must(node.alive, f"node {node.id} was dead before its disk was full")
    assert pid is not None
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
    _await(lambda: not node.alive, f"node {node.id} lives on though it cannot write")
    _must(node.exit_code == 1, f"node {node.id} ended with {node.exit_code}, not with 1 as for a failed log folder")
    lived = f"ended by itself with 1, {time.time() - at:.1f} s after files could not grow"
    return _fault("disk full", target, at, lived, _gone(arena, target))


def rolling_restart(arena: Arena) -> Fault:
    """Each node in turn: stopped cleanly, started, waited for until all is in sync. Proof: three clean ends and new processes."""
    at, pids = time.time(), [node.pid for node in arena.nodes]
    proofs = []
    for node in arena.nodes:
        proofs.append(stop_node(arena, any_node(node.id)).proof)
        node.start()
        arena.await_in_sync()
    new = [node.pid for node in arena.nodes]
    _must(not set(pids) & set(new), f"processes {pids} became {new}")
    return Fault("rolling restart", "all nodes", "1,2,3", at, f"{'; '.join(proofs)}; all in sync between", time.time())


def slow_network(arena: Arena, seconds: float, *, latency_s: float) -> Fault:
    """All proxies are slow for so long. Proof: a request and its answer took twice the latency by each of them; others' bytes were late.

    The request is one of our own, to the broker behind the proxy; before, the quickest of some took less than that.
    """
    at, addresses = time.time(), arena.proxied.split(",")
    before = [quickest_round_trip_s(address, 2 * latency_s) for address in addresses]
    _must(max(before) < 2 * latency_s, f"a round trip took {max(before):.3f} s already")
    try:
        for proxy in arena.proxies:
            proxy.slow(latency_s=latency_s)
        slowed = [round_trip_s(address) for address in addresses]
        _must(min(slowed) >= 2 * latency_s, f"round trips took {slowed}, not {2 * latency_s:g} s")
        late_before = _late(arena)
        _last(seconds, lambda: _late(arena) > late_before)
        late = _late(arena) - late_before
    finally:
        for proxy in arena.proxies:
            proxy.heal()
    _must(late > 0, "nobody's bytes were late")
    proof = (
        f"a request and its answer took {min(slowed):.3f} s and more, {max(before):.3f} s and less before; "
        f"{late} bytes of others held for {latency_s:g} s or longer"
    )
    return Fault("slow network", "every connection", "1,2,3", at, proof, time.time())


def cut_connections(arena: Arena, numbers: Sequence[int] = (1, 2, 3)) -> Fault:
    """Reset all connections through these nodes' proxies. Proof: there were some."""
    at = time.time()
    cut = sum(arena.proxies[number - 1].cut() for number in numbers)
    _must(cut > 0, f"no connection to nodes {numbers} to cut")
    return Fault("connections cut", "at random", _names(numbers), at, f"{cut} connections reset", time.time())


def black_hole(arena: Arena, seconds: float, numbers: Sequence[int] = (1, 2, 3)) -> Fault:
    """Nothing passes to or from these nodes for so long. Proof: bytes came, and none passed."""
    at, proxies = time.time(), [arena.proxies[number - 1] for number in numbers]
    began = time.monotonic()
    try:
        for proxy in proxies:
            proxy.black_hole()
        passed, held_before = sum(p.bytes_passed for p in proxies), sum(p.held_bytes for p in proxies)
        _last(seconds, lambda: sum(p.held_bytes for p in proxies) > held_before)
        passed, held = sum(p.bytes_passed for p in proxies) - passed, sum(p.held_bytes for p in proxies) - held_before
        lasted = time.monotonic() - began
    finally:
        for proxy in proxies:
            proxy.heal()
    _must(held > 0 and passed == 0, f"{held} bytes were held, {passed} passed")
    proof = f"{held} bytes held for up to {lasted:.1f} s, none passed"
    return Fault("black hole", "at random", _names(numbers), at, proof, time.time())


def hijack(bootstrap: str, transactional_id: str) -> Fault:
    """Another producer takes the transactional.id, and leaves. Proof: it got the next epoch of a producer that was there before."""
    at, acquired = time.time(), _Acquired()
    settings = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "debug": "eos"}
    producer = Producer(settings, logger=acquired.logger)
    producer.init_transactions(PATIENCE_S)
    producer.poll(0)  # hands the log over
    del producer
    _must(acquired.epoch > 0, f"{transactional_id} had no producer that could lose it: epoch {acquired.epoch}")
    proof = f"producer id {acquired.producer_id} taken over, epoch {acquired.epoch}"
    return Fault("hijacked transactional.id", "at random", transactional_id, at, proof, time.time())


def add_partitions(bootstrap: str, topic: str, to: int) -> Fault:
    """More partitions for a topic. Proof: metadata show them, each with a leader, where fewer were before."""
    client, at = admin_client(bootstrap), time.time()

    def led() -> int:
        found = client.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        return sum(partition.leader >= 0 for partition in found.values())

    before = 0

    def known() -> bool:  # whichever broker is asked may not have heard of it yet
        nonlocal before
        before = led()
        return before > 0

    _await(known, f"{topic} has no partition with a leader")
    client.create_partitions([NewPartitions(topic, to)])[topic].result(PATIENCE_S)
    _await(lambda: led() == to, f"{topic} has not {to} partitions with leaders")
    _must(before < to, f"{topic} had {before} partitions already")
    return Fault("partitions added", "under load", topic, at, f"{before} -> {to} partitions with leaders", time.time())


def _led(arena: Arena, partition: Partition) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while (number := arena.leader(*partition)) < 0:
        _must(time.monotonic() < deadline, f"{partition} has no leader")
        time.sleep(_POLL_S)
    return number


def _gone(arena: Arena, target: Target) -> str:
    """Wait until the cluster does without the node; in words, with how long the cluster itself took."""
    began = time.monotonic()
    _await(lambda: target.number not in arena.registered(), f"node {target.number} still counts as alive")
    if target.partition is None:
        return "given up by the cluster"
    topic, number = target.partition
    new = target.number

    def moved() -> bool:
        nonlocal new
        new = arena.leader(topic, number)
        return new not in (-1, target.number)

    _await(moved, f"node {target.number} still leads {topic}/{number}")
    return f"{topic}/{number} led by {target.number} -> {new} after {time.monotonic() - began:.1f} s"


def _fault(kind: str, target: Target, at: float, *proofs: str) -> Fault:
    return Fault(kind, target.phase, str(target.number), at, "; ".join(filter(None, proofs)))


def _await(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        _must(time.monotonic() < deadline, f"{otherwise} after {PATIENCE_S:g} s")
        time.sleep(_POLL_S)


def _last(seconds: float, hits: Callable[[], bool]) -> None:
    """Let a fault last for so long, and longer where it has hit nobody yet: whether others got to send anything is up to the machine."""
    time.sleep(seconds)
    deadline = time.monotonic() + _TRAFFIC_S
    while not hits() and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _must(condition: bool, otherwise: str) -> None:  # noqa: FBT001 - as an assert
    if not condition:
        raise NotProvenError(otherwise)


def _late(arena: Arena) -> int:
    return sum(proxy.late_bytes for proxy in arena.proxies)


def _names(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


class _Acquired:
    """Listens to librdkafka's log for the producer id that it got; no call of it tells."""

    def __init__(self) -> None:
        self.producer_id, self.epoch = -1, -1
        self.logger = logging.Logger("hijacker")  # noqa: LOG001 - this producer's alone, and gone with it
        self.logger.addFilter(self._listen)

    def _listen(self, record: logging.LogRecord) -> bool:
        if found := re.search(r"Acquired.*PID\{Id:(\d+),Epoch:(\d+)\}", record.getMessage()):
            self.producer_id, self.epoch = int(found[1]), int(found[2])
        return False
