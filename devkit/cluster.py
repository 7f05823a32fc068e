"""A Kafka cluster of one or three nodes on the loopback interface, for as long as a `with` block lasts."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from devkit import admin, jars, java, properties
from devkit.errors import BrokerDiedError, DevkitError, PortTakenError
from devkit.node import START_TIMEOUT, Node
from devkit.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CLUSTER_ID = "cmVja29uLWRldmtpdC0wMQ"  # 16 bytes in base64, as `StorageTool random-uuid` makes them; any value will do
_ATTEMPTS = 3  # starts with ports of the OS's choice before a taken port is reported
_HEAP_MB = {1: 512, 3: 384}
_TOPIC_TIMEOUT = 60.0  # seconds


class Cluster:
    """KRaft brokers, each its own controller; a context manager, ready when entered.

    `nodes` is 1 or 3. `port` names the client port of node 1 (node 2 listens on the next one, and so on); without it the OS
    chooses. `data` keeps topics from one use to the next; without it a temporary folder goes with the cluster (it is left behind
    when this process is killed; the brokers never are). `properties` are broker settings over the devkit's own;
    `per_node` gets the settings of each node and returns those to put over them (of use where nodes differ);
    `heap_mb` is the Java heap of each node in MB, 512 for one node and 384 for each of three by default.

    Raises on entering: JavaMissingError, JarsError, PortTakenError, BrokerDiedError, BrokerTimeoutError, and DevkitError when
    `data` is in use or holds another number of nodes.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        port: int | None = None,
        data: Path | None = None,
        properties: Mapping[str, str] | None = None,
        per_node: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None,
        heap_mb: int | None = None,
    ) -> None:
        if nodes not in _HEAP_MB:
            raise DevkitError(f"a cluster has 1 or 3 nodes, not {nodes}")
        self._count = nodes
        self._port = port
        self._data = data
        self._properties = dict(properties or {})
        self._per_node = per_node or (lambda _settings: {})
        self._heap_mb = heap_mb or _HEAP_MB[nodes]
        self._resources = contextlib.ExitStack()
        self.nodes: list[Node] = []

    @property
    def bootstrap(self) -> str:
        """`bootstrap.servers` for clients: "127.0.0.1:port", for three nodes separated by commas."""
        return ",".join(node.address for node in self.nodes)

    def __enter__(self) -> Self:
        run_java = [str(java.find_java()), "-cp", os.pathsep.join(map(str, jars.jar_paths("kafka")))]
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            folder = self._folder()
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._start(folder, run_java)
                    break
                except PortTakenError:
                    self._end_nodes()
                    if self._port is not None or attempt == _ATTEMPTS:
                        raise
            undo.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all nodes: cleanly when their data stays, by SIGKILL when it goes with them anyway."""
        self._end_nodes()
        self._resources.close()

    def _end_nodes(self) -> None:
        if self._data is None:
            for node in self.nodes:
                node.kill()
        else:  # all at once: the last of three could not leave in order without a majority of controllers
            for node in self.nodes:
                node.terminate()
            for node in self.nodes:
                node.await_end()
        self.nodes = []

    def _folder(self) -> Path:
        if self._data is None:
            temporary = tempfile.TemporaryDirectory(prefix="reckon-broker-")
            return Path(self._resources.enter_context(temporary))
        self._data.mkdir(parents=True, exist_ok=True)
        lock = self._resources.enter_context((self._data / ".lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel frees it when this process ends in any way
        except BlockingIOError as e:
            raise DevkitError(f"{self._data} is in use by another running cluster") from e
        found = sorted(path.name for path in self._data.glob("node-*"))
        wanted = [f"node-{n}" for n in range(1, self._count + 1)]
        if found and found != wanted:
            raise DevkitError(f"{self._data} holds a cluster of {len(found)} nodes, not {self._count}")
        return self._data.resolve()

    def _start(self, folder: Path, run_java: list[str]) -> None:
        with contextlib.ExitStack() as held:
            listeners = [
                tuple(
                    held.enter_context(contextlib.closing(Port(number)))
                    for number in ((self._port + n if self._port else 0), 0)
                )
                for n in range(self._count)
            ]
            numbers = [(client.number, controller.number) for client, controller in listeners]
            for n, ports in enumerate(listeners, 1):
                home = folder / f"node-{n}"
                home.mkdir(parents=True, exist_ok=True)
                config = properties.node_properties(n, numbers, home / "data", self._properties)
                config |= self._per_node(config)
                (home / "server.properties").write_text(properties.render(config), encoding="utf-8")
                self.nodes.append(Node(n, self._command(run_java), home, ports))
            self._resources.push(held.pop_all())
        self._format(folder, run_java)
        for node in self.nodes:
            node.spawn()
        self._await_ready()

    def _command(self, run_java: list[str]) -> list[str]:
        return [
            *run_java,
            f"-Xms{self._heap_mb}m",
            f"-Xmx{self._heap_mb}m",
            "-XX:+UseSerialGC",  # the smallest footprint; with a heap of this size its pauses are milliseconds
            "-Dorg.slf4j.simpleLogger.logFile=System.out",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
            "kafka.Kafka",
            "server.properties",
        ]

    def _format(self, folder: Path, run_java: list[str]) -> None:
        """Give fresh data folders their identity and features (KIP-631), all nodes at once; old ones stay as they are."""
        # the JIT's first tier alone: half the processor time for a process that lives for half a second
        command = [*run_java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "kafka.tools.StorageTool"]
        command += ["format", "--ignore-formatted", "--cluster-id", _CLUSTER_ID, "--config", "server.properties"]
        homes = [folder / f"node-{node.id}" for node in self.nodes]
        running = [
            (
                home,
                subprocess.Popen(  # noqa: S603 - Java and arguments from this package
                    command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                ),
            )
            for home in homes
            if not (home / "data" / "meta.properties").exists()
        ]
        for home, process in running:
            output, _ = process.communicate()
            if process.returncode:
                raise BrokerDiedError(f"cannot format {home}: the tool ended with {process.returncode}:\n{output}")

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        for node in self.nodes:
            node.await_ready(deadline - time.monotonic())
        partitions = int(self._properties.get("offsets.topic.num.partitions", properties.INTERNAL_PARTITIONS))
        admin.await_group_coordinators(self.bootstrap, min(partitions, 10), deadline - time.monotonic())

    def create_topics(
        self,
        topics: Mapping[str, int],
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create topics (name -> partitions); returns when every partition has a leader and all replicas in sync.

        `replication_factor` is 1 on one node and 3 on three by default; `config` holds topic settings for all of them. Raises
        DevkitError with the broker's reason, BrokerTimeoutError.
        """
        client = admin.admin_client(self.bootstrap)
        admin.create_topics(client, topics, replication_factor or self._count, config, _TOPIC_TIMEOUT)
