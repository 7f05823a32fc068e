"""The devkit's broker, started for real: every fault that other tests build on, and every promise about cleaning up."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from devkit import BrokerDiedError, Cluster, DevkitError, PortTakenError
from devkit.admin import admin_client, create_topics, registered_brokers
from devkit.ports import HOST
from tests.support.broker import unique
from tests.support.processes import state_of
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)  # three brokers on a busy machine


def _produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    config = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0, "on_delivery": _delivered}
    producer = Producer(config)
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0


def _delivered(error: KafkaError | None, _message: Message) -> None:
    assert error is None, error


def _consume(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    config = {"bootstrap.servers": bootstrap, "group.id": unique("reader"), "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(config)
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        values: list[bytes | None] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(values) < count and time.monotonic() < deadline:
            values += [message.value() for message in consumer.consume(count, timeout=0.5) if message.error() is None]
        return values
    finally:
        consumer.close()


def _await(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _serves(bootstrap: str) -> bool:
    """Not at the first try for certain: a node that stood still for its whole session is fenced until its next heartbeat."""
    admin = admin_client(bootstrap)
    return _await(lambda: bool(registered_brokers(admin)))


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # An orphan that ended stays a zombie where the container's first process does not reap.
    return state_of(pid) in {"", "Z"}


def test_shared_broker_serves(bootstrap: str) -> None:
    """Whichever broker was chosen for the session answers."""
    assert _serves(bootstrap)


def test_produce_and_consume(cluster: Cluster) -> None:
    """What was produced to a created topic is read back; the topic has the partitions that were asked for."""
    topic = unique("plain")
    cluster.create_topics({topic: 4})
    _produce(cluster.bootstrap, topic, [b"1", b"2"])
    assert _consume(cluster.bootstrap, topic, 2) == [b"1", b"2"]
    assert set(admin_client(cluster.bootstrap).list_topics(topic).topics[topic].partitions) == {0, 1, 2, 3}


def test_transactions_work(cluster: Cluster) -> None:
    """A transactional producer commits: the coordinator's own topic has the copies that one node can give."""
    topic = unique("transactional")
    cluster.create_topics({topic: 1})
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": unique("tx"), "log_level": 0})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, b"committed")
    producer.commit_transaction(PATIENCE_S)
    assert _consume(cluster.bootstrap, topic, 1) == [b"committed"]


def test_existing_topic_is_refused(cluster: Cluster) -> None:
    """Creating a topic twice raises with the broker's reason."""
    topic = unique("twice")
    cluster.create_topics({topic: 1})
    with pytest.raises(DevkitError, match=f"cannot create topic {topic}: .*already exists"):
        cluster.create_topics({topic: 1})


def test_too_few_brokers_for_a_topic_are_told_in_the_end(cluster: Cluster) -> None:
    """They might have stood still for a moment; the broker's reason is given when the time is over."""
    with pytest.raises(DevkitError, match=r"cannot create topic wide: .*[Rr]eplicat"):
        create_topics(admin_client(cluster.bootstrap), {"wide": 1}, 2, None, timeout=0.2)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_restart_keeps_data_and_port(cluster: Cluster, end: str) -> None:
    """A node killed or stopped and started again has its address, its records, and another process."""
    node, topic = cluster.nodes[0], unique(end)
    cluster.create_topics({topic: 1}, config={"flush.messages": "1"})
    _produce(cluster.bootstrap, topic, [b"kept"])
    before = cluster.bootstrap, node.pid
    if end == "kill":
        node.kill()
    else:
        assert node.stop(PATIENCE_S)
    assert before[1] is not None
    assert _gone(before[1])
    node.start()
    assert node.alive
    assert (cluster.bootstrap, node.pid == before[1]) == (before[0], False)
    assert _consume(cluster.bootstrap, topic, 1) == [b"kept"]


def test_pause_really_pauses(cluster: Cluster) -> None:
    """A paused node answers nothing within a second, and a resumed one does again."""
    node = cluster.nodes[0]
    admin = admin_client(cluster.bootstrap)
    admin.list_topics(timeout=PATIENCE_S)
    node.pause()
    try:
        with pytest.raises(KafkaException, match=r"[Tt]imed out|transport failure"):
            admin.list_topics(timeout=1.0)
        assert node.alive
    finally:
        node.resume()
    assert _serves(cluster.bootstrap)


def test_stop_of_a_paused_node_is_clean(cluster: Cluster) -> None:
    """stop() wakes a paused node first; without that SIGTERM would wait for ever."""
    node = cluster.nodes[0]
    node.pause()
    assert node.stop(PATIENCE_S)


def test_stop_that_takes_too_long_kills_and_says_so(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that does not end in time is killed, and the caller learns it from the result and the log."""
    node = cluster.nodes[0]
    node.pause()
    with monkeypatch.context() as patched:
        patched.setattr(node, "resume", lambda: None)  # so that it cannot hear SIGTERM, however long that takes
        assert not node.stop(timeout=0.1)
    assert not node.alive
    said = [record.getMessage() for record in caplog.records if record.name == "devkit"]
    assert said == ["node 1 did not stop within 0.1 s: killed"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (("num.io.threads", "0"), r"(?s)cannot format .*Invalid value 0 for configuration num\.io\.threads"),
        (("metric.reporters", "no.Such"), r"(?s)node 1 ended with 1; the end of its log:.*Class no\.Such"),
    ],
)
def test_a_broker_that_cannot_start_says_why(setting: tuple[str, str], message: str) -> None:
    """A broker that ends at once raises with the end of its output, which names the reason, whichever step refuses."""
    with pytest.raises(BrokerDiedError, match=message), Cluster(properties=dict([setting])):
        pass


def test_taken_port_is_named() -> None:
    """A named port in use is refused before anything is started."""
    with socket.create_server((HOST, 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"port {number} on 127.0.0.1 is in use"), Cluster(port=number):
            pass


def test_data_stays_where_it_was_named(tmp_path: Path) -> None:
    """A named folder keeps topics from one cluster to the next, on another port, and belongs to one number of nodes."""
    with Cluster(data=tmp_path) as first:
        first.create_topics({"kept": 1})
        _produce(first.bootstrap, "kept", [b"record"])
        with pytest.raises(DevkitError, match="is in use by another running cluster"), Cluster(data=tmp_path):
            pass
    with Cluster(data=tmp_path) as second:
        assert _consume(second.bootstrap, "kept", 1) == [b"record"]
    with pytest.raises(DevkitError, match="holds a cluster of 1 nodes, not 3"), Cluster(3, data=tmp_path):
        pass


def test_three_nodes_survive_one() -> None:
    """With one of three nodes killed a topic of three replicas still takes and gives records; it comes back."""
    with Cluster(nodes=3) as cluster:
        cluster.create_topics({"replicated": 1})
        _produce(cluster.bootstrap, "replicated", [b"before"])
        cluster.nodes[0].kill()
        _produce(cluster.bootstrap, "replicated", [b"during"])
        assert _consume(cluster.bootstrap, "replicated", 2) == [b"before", b"during"]
        cluster.nodes[0].start()
        pids = [node.pid for node in cluster.nodes]
        assert [node.alive for node in cluster.nodes] == [True, True, True]
    assert all(pid is not None and _gone(pid) for pid in pids)


_CHILD = """
import sys
from devkit import Cluster
with Cluster() as cluster:
    print(cluster.nodes[0].pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_broker_dies_with_its_parent(how: signal.Signals, tmp_path: Path) -> None:
    """However the process that runs a cluster is ended, the broker ends too."""
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"TMPDIR": str(tmp_path)},  # the folder that a killed process leaves behind
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not _gone(pid)
        parent.send_signal(how)
        parent.wait(PATIENCE_S)
    assert _await(lambda: _gone(pid))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_command_runs_until_told_to_stop(how: signal.Signals, tmp_path: Path) -> None:
    """The command prints address and next command, serves, and ends with 0 on Ctrl-C or SIGTERM."""
    command = [sys.executable, "-m", "devkit", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("broker ready: ").strip()
        assert _serves(address)
        process.send_signal(how)
        output = process.stdout.read()
        assert process.wait(PATIENCE_S) == 0
    assert f"RECKON_BOOTSTRAP_SERVERS={address} reckon run" in output
    assert output.endswith("broker stopped\n")


def test_command_says_when_the_broker_died() -> None:
    """When the broker is killed by someone else, the command ends with 1 and the reason on stderr."""
    command = [sys.executable, "-m", "devkit"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        children = subprocess.run(
            ["pgrep", "-P", str(process.pid), "java"], capture_output=True, text=True, check=True
        ).stdout.split()
        assert len(children) == 1
        os.kill(int(children[0]), signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1
    assert errors.startswith("error: node 1 ended with -9; the end of its log:\n")
