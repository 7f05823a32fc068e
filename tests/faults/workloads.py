"""What runs while faults happen: pipelines with an oracle each, in lines of one to three, and the load that goes in at the head."""

from __future__ import annotations

import functools
import json
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaException

from devkit.reader import Reader, ReadError
from devkit.verify import DEAD_LETTER, OWN_HEADERS, ExpectedRecord
from tests.support.pipelines import STEPS, Scene, events
from tests.support.waiting import await_true

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from devkit.verify import StoredRecord


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of work."""

    name: str
    steps: str
    oracle: Callable[[int], list[Any] | None]
    """From the number in a record to the values that must come of it, in order; None: a dead letter. It shares nothing with the steps."""
    partitions: int = 3
    sinks: int = 3
    instances: int = 2
    """Workers per pipeline."""
    chained: int = 1
    """Pipelines, each of which reads the other's output."""
    records: int = 750
    """The most per transaction."""
    rate: int = 400
    """Source records per second."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """What the workers do to themselves all the time: see tests.support.faulty_worker."""


KNOWN_S = 90.0
"""Until a broker knows of new topics."""


def _doubled(n: int) -> list[Any]:
    return [] if n % 10 == 3 else [{"n": n, "twice": 2 * n}]


def _three_parts(n: int) -> list[Any]:
    return [{"n": n, "part": n + i} for i in range(3)] if n % 2 == 0 else []


def _asserted(n: int) -> list[Any] | None:
    return None if n % 3 == 1 else [{"n": n}]


WORKLOADS = (
    Workload("aborts", STEPS, _doubled, partitions=2, faults={"FAULT_ABORT_SHARE": "0.33"}),
    Workload("order", STEPS, _doubled, partitions=1, sinks=1, instances=1),
    Workload("chain", STEPS, _doubled, partitions=2, sinks=2, instances=1, chained=3, rate=250),
    Workload(
        "fan-out",
        '[{filter: "n % 2 == 0"}, {set: {parts: "[n, n + 1, n + 2]"}}, {explode: {field: parts, into: part}}]',
        _three_parts,
        partitions=6,
    ),
    Workload("dead-letters", '[{assert: {that: "n % 3 != 1", message: "no"}}]', _asserted, partitions=6),
    Workload("slow", STEPS, _doubled, records=150, faults={"FAULT_DELAY_MS": "400"}),
)


class Line(Scene):
    """A pipeline of a workload, on three replicas. Workers reach the brokers by ``proxied``, everybody else directly."""

    def __init__(
        self, workload: Workload, bootstrap: str, folder: Path, *, proxied: str = "", source: str | None = None
    ) -> None:
        super().__init__(
            bootstrap,
            folder,
            partitions=workload.sinks if source else workload.partitions,
            sinks=workload.sinks,
            records=workload.records,
            steps=workload.steps,
            more="dead_letters: {limit: {share: 1.0, window: 10000}}",
            source=source,
            replicas=3,
        )
        self.workload = workload
        self.proxied = proxied or bootstrap

    def id_of(self, number: int) -> str:
        """The transactional id of the worker with this number, whose instance id is w0, w1, ..."""
        return f"{self.name}/w{number}"

    def injected_aborts(self) -> list[tuple[str, float]]:
        """(transactional id, when), by the workers' logs. Times are seconds of `time.time()`."""
        return [
            (f"{self.name}/{entry['instance']}", datetime.fromisoformat(entry["timestamp"]).timestamp())
            for worker in self.workers
            for entry in events(worker, "aborting")
            if entry["reason"].endswith("injected abort")  # tests.support.faulty_worker
        ]

    def all_expected(self, source: StoredRecord) -> list[ExpectedRecord]:
        headers = tuple(header for header in source.headers if not header[0].startswith(OWN_HEADERS))

        def record(index: int, topic: str, value: bytes | None) -> ExpectedRecord:
            return ExpectedRecord(source.position, index, topic, source.key, value, headers, source.timestamp_ms)

        if source.value is None:
            return [record(0, self.sink, None)]
        made = self.workload.oracle(json.loads(source.value)["n"]) if source.value.startswith(b"{") else None
        if made is None:
            return [record(DEAD_LETTER, self.dead_letters, source.value)]
        return [record(index, self.sink, json.dumps(value).encode()) for index, value in enumerate(made)]


def lines_of(workload: Workload, bootstrap: str, folder: Path, *, proxied: str = "") -> list[Line]:
    """The pipelines, first the one at the head."""
    lines: list[Line] = []
    for _ in range(workload.chained):
        source = lines[-1].sink if lines else None
        lines.append(Line(workload, bootstrap, folder, proxied=proxied, source=source))
    topics = [topic for line in lines for topic in (line.source, line.sink, line.dead_letters, line.receipts)]
    for address in bootstrap.split(","):
        await_true(functools.partial(_knows, address, topics), f"all topics known at {address}", KNOWN_S)
    return lines


def _knows(address: str, topics: Sequence[str]) -> bool:
    """A broker learns of a topic some moments after the one that was asked to create it."""
    try:
        with Reader(address) as reader:
            return bool(reader.partitions_of(topics))
    except (KafkaException, ReadError):  # an answer that comes too late is asked for again
        return False


class Feed:
    """Load at the head of a line, in a thread, from entering to ``stop`` or leaving: plain records and, if wanted, transactions."""

    def __init__(self, head: Line, *, transactions: bool) -> None:
        self.sent = 0
        self._head, self._transactions = head, transactions
        self._stop = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def stop(self) -> None:
        """No more load. Raises what the feeding raised."""
        self._stop.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                began, some = time.monotonic(), max(50, self._head.workload.rate // 4)
                if self._transactions and self.sent % (4 * some) == 0:
                    self._head.produce_in_transactions(some, aborted_every=2, size=some)
                else:
                    self._head.produce(some)
                self.sent += some
                self._stop.wait(max(0.0, some / self._head.workload.rate - (time.monotonic() - began)))
        except BaseException as error:  # noqa: BLE001 - raised by the thread that stops
            self._failed = error
