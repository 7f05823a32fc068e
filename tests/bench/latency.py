"""End-to-end latency at a steady load: from produce() to seen by a read_committed reader."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.bench.engines import RUN, Engine
from tests.bench.lab import PARTITIONS, Broker
from tests.bench.measure import engine_process, job_env
from tests.bench.workload import is_kept, source_record

RATE_PER_S = 1000
SECONDS = 20
SETTLE_S = 8
"""The first seconds of load are not counted."""
ARRIVAL_LIMIT_S = 20.0
START_S = 5.0


@dataclass(frozen=True, slots=True)
class Latency:
    engine: str
    commit_ms: int
    arrived: int
    expected: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class _Reader(threading.Thread):
    """Notes when each output is first seen."""

    def __init__(self, broker: Broker, sink: str) -> None:
        super().__init__(name="bench-reader")
        self.seen: dict[int, float] = {}
        self.stop = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "bench-latency",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 10,
                "fetch.queue.backoff.ms": 1,
            }
        )
        self._consumer.assign([TopicPartition(sink, partition, 0) for partition in range(PARTITIONS)])

    def run(self) -> None:
        while not self.stop.is_set():
            for message in self._consumer.consume(1000, 0.01):
                if message.error() is None:
                    self.seen.setdefault(orjson.loads(message.value() or b"")["id"], time.monotonic())
        self._consumer.close()


def measure_latency(engine: Engine, broker: Broker, commit_ms: int) -> Latency:
    """Runs the load through a fresh process of the engine. Raises Unavailable, and RuntimeError when outputs are missing."""
    command = engine.prepare()
    tag = uuid.uuid4().hex[:8]
    with broker.topic(f"latency-in-{tag}") as source, broker.topic(f"latency-out-{tag}") as sink:
        env = job_env(engine, broker, source, sink, commit_ms)
        reader = _Reader(broker, sink)
        with engine_process(command, env, RUN / f"{env['GROUP']}-latency.log"):
            reader.start()
            try:
                time.sleep(START_S)  # the start is not what is measured; one that takes longer eats into SETTLE_S
                sent = _send(broker, source)
                counted = [n for n in range(SETTLE_S * RATE_PER_S, len(sent)) if is_kept(n)]
                deadline = time.monotonic() + ARRIVAL_LIMIT_S
                while time.monotonic() < deadline and not all(n in reader.seen for n in reversed(counted)):
                    time.sleep(0.2)
            finally:
                reader.stop.set()
                reader.join()
    latencies = sorted((reader.seen[n] - sent[n]) * 1e3 for n in counted if n in reader.seen)
    if len(latencies) != len(counted):
        raise RuntimeError(
            f"{engine.name}: {len(latencies)} of {len(counted)} outputs arrived in {ARRIVAL_LIMIT_S:.0f} s"
        )
    p50, p99 = (latencies[int(share * len(latencies))] for share in (0.5, 0.99))
    return Latency(engine.name, commit_ms, len(latencies), len(counted), p50, p99, latencies[-1])


def _send(broker: Broker, source: str) -> list[float]:
    """Produces at RATE_PER_S; when each record was handed to the producer, by its number."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "partitioner": "murmur2_random"})
    sent = []
    start = time.monotonic()
    for number in range(RATE_PER_S * SECONDS):
        due = start + number / RATE_PER_S
        while (left := due - time.monotonic()) > 0:
            producer.poll(min(left, 0.001))
        key, fields = source_record(number)
        sent.append(time.monotonic())
        producer.produce(source, orjson.dumps(fields), key)
    producer.flush(30)
    return sent
