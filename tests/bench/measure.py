"""One run of one engine over a topic that is already full, timed from outside.

The clock: an observer polls the group's committed offsets, so only work whose transaction is committed counts. The window
opens at the first poll that sees the warm-up committed and closes at the first that sees everything committed; process
start, JIT and group join are outside it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.bench import procfs
from tests.bench.engines import RUN, Engine
from tests.bench.lab import PARTITIONS, Broker
from tests.bench.verify import Verdict, verify_topic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POLL_S = 0.05
RUN_LIMIT_S = 300.0
STOP_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Window:
    """What was measured between the first and the last look at the group's offsets."""

    records: int
    seconds: float
    engine_cpu_s: float
    broker_cpu_s: float | None
    other_cpu_cores: float | None
    """Cores that processes other than engine, broker and observer kept busy: above 0.15 a run is noisy. None: the
    broker's processes are not known, so its CPU cannot be told apart."""
    max_rss_mb: int

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds

    @property
    def cpu_us_per_record(self) -> float:
        return self.engine_cpu_s / self.records * 1e6


@dataclass(frozen=True, slots=True)
class Run:
    engine: str
    commit_ms: int
    window: Window | None
    verdict: Verdict | None
    error: str = ""

    @property
    def counts(self) -> bool:
        return self.window is not None and self.verdict is not None and self.verdict.ok


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at the clock and at everybody's CPU."""

    committed: int
    at: float
    engine_cpu_s: float
    broker_cpu_s: float
    rest_cpu_s: float

    @classmethod
    def now(cls, committed: int, pid: int, broker: Broker) -> _Look:
        engine, brokers = procfs.cpu_seconds(pid), sum(map(procfs.cpu_seconds, broker.pids))
        rest = procfs.machine_cpu_seconds() - engine - brokers - time.process_time()
        return cls(committed, time.monotonic(), engine, brokers, rest)

    def until(self, end: _Look, broker: Broker, max_rss_mb: int) -> Window:
        seconds = end.at - self.at
        return Window(
            records=end.committed - self.committed,
            seconds=seconds,
            engine_cpu_s=end.engine_cpu_s - self.engine_cpu_s,
            broker_cpu_s=end.broker_cpu_s - self.broker_cpu_s if broker.pids else None,
            other_cpu_cores=max(0.0, end.rest_cpu_s - self.rest_cpu_s) / seconds if broker.pids else None,
            max_rss_mb=max_rss_mb,
        )


@contextmanager
def engine_process(command: list[str], env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The engine for the time of a with block; stopped by SIGTERM, or SIGKILL where it does not heed that."""
    state = RUN / "state" / env["GROUP"]
    state.mkdir(parents=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, **env, "STATE_DIR": str(state)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def job_env(engine: Engine, broker: Broker, source: str, sink: str, commit_ms: int) -> dict[str, str]:
    """What a job reads from its environment (see engines.py), and the engine's own settings."""
    return {
        **engine.env,
        "BOOTSTRAP": broker.bootstrap,
        "SRC_TOPIC": source,
        "DST_TOPIC": sink,
        "GROUP": f"{engine.name}-{uuid.uuid4().hex[:8]}",
        "COMMIT_MS": str(commit_ms),
    }


def measure(engine: Engine, broker: Broker, source: str, records: int, commit_ms: int) -> Run:
    """Drains the warm-up and `records` records of `source` through a fresh process of the engine, and verifies the output.

    Raises Unavailable when the engine cannot be made ready. An engine that fails is a Run with an error.
    """
    command = engine.prepare()
    total = engine.warm_up + records
    with broker.topic(f"bench-{engine.name}-{uuid.uuid4().hex[:8]}") as sink:
        env = job_env(engine, broker, source, sink, commit_ms)
        log = RUN / f"{env['GROUP']}.log"
        with engine_process(command, env, log) as process:
            window = _observe(process, broker, TopicOffsets(broker, env["GROUP"], source), engine.warm_up, total)
        if isinstance(window, str):
            return Run(engine.name, commit_ms, None, None, f"{window}; its log: {log.relative_to(RUN.parent)}")
        verdict = verify_topic(broker.bootstrap, sink, total)
        return Run(engine.name, commit_ms, window, verdict, "" if verdict.ok else str(verdict))


class TopicOffsets:
    """The committed offsets of a group on a topic, summed over its partitions."""

    def __init__(self, broker: Broker, group: str, topic: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        self._group = group
        self._partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]

    def committed(self) -> int:
        request = [ConsumerGroupTopicPartitions(self._group, self._partitions)]
        try:
            found = self._admin.list_consumer_group_offsets(request)[self._group].result().topic_partitions
        except KafkaException:  # the group does not exist yet, or a transaction holds its offsets
            return 0
        return sum(max(partition.offset, 0) for partition in found)


def _observe(
    process: subprocess.Popen[bytes], broker: Broker, offsets: TopicOffsets, warm_up: int, total: int
) -> Window | str:
    """The window, or a sentence that says why there is none."""
    first: _Look | None = None
    committed = 0
    deadline = time.monotonic() + RUN_LIMIT_S
    while time.monotonic() < deadline:
        committed = offsets.committed() or committed
        if first is None and committed >= warm_up:
            first = _Look.now(committed, process.pid, broker)
        if first is not None and committed >= total:
            end = _Look.now(committed, process.pid, broker)
            if end.committed == first.committed:
                return f"committed {committed} of {total} records at once: nothing to time"
            return first.until(end, broker, procfs.max_rss_mb(process.pid))
        if process.poll() is not None:
            return f"ended with exit code {process.returncode} after {committed} of {total} records"
        time.sleep(POLL_S)
    return f"committed {committed} of {total} records in {RUN_LIMIT_S:.0f} s"
