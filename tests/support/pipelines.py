"""Small pipelines with topics of their own on a real broker: records to feed them, an oracle, and one judge for all tests.

The transform: records with ``n % 10 == 3`` are filtered, ``twice`` is added to the others; tombstones are forwarded; what is no JSON
goes to the dead letters. The oracle knows this from here and from nowhere else.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from itertools import count
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from devkit.admin import admin_client
from devkit.reader import Reader
from devkit.verify import DEAD_LETTER, ExpectedRecord, StoredRecord, by_lineage, compare
from devkit.verify_receipts import check_receipts, fates
from devkit.workers import WorkerProcess
from tests.support.broker import create_topics, unique
from tests.support.topics import add_partitions
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from devkit.verify import Partition

EPOCH_MS = 1_760_000_000_000
SHORT = {
    "RECKON_CONSUMER_SESSION_TIMEOUT_MS": "3000",
    "RECKON_CONSUMER_HEARTBEAT_INTERVAL_MS": "300",
    "RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": "2500",
    "RECKON_RECORD_BUDGET_MS": "1000",
}
"""Timeouts that keep fault tests short, and obey T7. For tests that wait for one of them: on a machine that stands still for three seconds
a worker that nobody has touched loses its session, too."""

LASTING = {"RECKON_CONSUMER_HEARTBEAT_INTERVAL_MS": "300"}
"""For tests that wait for no timeout (with ``short=False``): the default ones, and rebalances that are heard of soon."""

_YAML = """\
name: {name}
source: {{{topics}, start: {start}}}
sink: {{topic: {sink}}}
steps: {steps}
transaction: {{records: {records}, interval_ms: 50}}
kafka: {{bootstrap.servers: "${{RECKON_BOOTSTRAP_SERVERS}}"}}
{more}
"""
STEPS = '[{filter: "n % 10 != 3"}, {set: {twice: "n * 2"}}]'


class Scene:
    """One pipeline: its file, topics, workers and what must have come of it. Kills its workers in the end."""

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        *,
        partitions: int = 2,
        sinks: int = 3,
        records: int = 750,
        start: str = "earliest",
        steps: str = STEPS,
        more: str = "",
        pattern: bool = False,
        source: str | None = None,
        replicas: int = 1,
    ) -> None:
        """``more``: further lines of the pipeline file, in which ``{name}`` stands for the name; ``pattern``: the source is one.

        ``source``: a topic that is there already, such as another pipeline's sink. ``replicas``: of every topic that is made here.
        """
        self.bootstrap = bootstrap
        self.reader = Reader(bootstrap)
        self.name = unique("p")
        self.source, self.sink = source or f"{self.name}.in", f"{self.name}.out"
        self.dead_letters, self.receipts = f"{self.name}.dead-letters", f"{self.name}.receipts"
        self.topics = [self.source]
        self.partitions = [(self.source, number) for number in range(partitions)]
        self.workers: list[WorkerProcess] = []
        self._folder = folder
        self.path = folder / f"{self.name}.yaml"
        self.path.write_text(
            _YAML.format(
                name=self.name,
                topics=f'pattern: "^{self.source}"' if pattern else f"topics: [{self.source}]",
                sink=self.sink,
                start=start,
                steps=steps,
                records=records,
                more=more.replace("{name}", self.name),
            )
        )
        self._sent = count()
        topics = {self.sink: sinks, self.dead_letters: 2, self.receipts: 1}
        create_topics(bootstrap, topics if source else {self.source: partitions} | topics, replicas=replicas)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.kill()
            if error is not None:
                error.add_note(worker.tail(40))

    def add_topic(self, name: str, partitions: int) -> None:
        """One more source topic, for a pipeline with a pattern."""
        create_topics(self.bootstrap, {name: partitions})
        self.topics.append(name)
        self.partitions += [(name, number) for number in range(partitions)]

    def add_partitions(self, total: int) -> None:
        """So many partitions for the source; on return its broker has them for whoever asks."""
        add_partitions(self.bootstrap, self.source, total)
        self.partitions = [(self.source, number) for number in range(total)]

    def worker(
        self,
        instance: str = "one",
        *,
        drain: bool = False,
        faults: Mapping[str, str] | None = None,
        short: bool = True,
        env: Mapping[str, str] | None = None,
        more_args: Sequence[str] = (),
    ) -> WorkerProcess:
        """Start a worker. ``faults``: see tests.support.faulty_worker; ``env``: settings, the more important ones."""
        worker = WorkerProcess(
            self.path,
            instance,
            self.bootstrap,
            self._folder / f"{self.name}-{instance}-{len(self.workers)}.log",
            env={**(SHORT if short else {}), "RECKON_LOG_FORMAT": "json", **(faults or {}), **(env or {})},
            args=[*(["--until-drained"] if drain else []), *more_args],
            module="worker" if faults is None else "tests.support.faulty_worker",
        )
        self.workers.append(worker)
        worker.start()
        return worker

    def drain(
        self, instance: str = "one", *, short: bool = True, env: Mapping[str, str] | None = None
    ) -> WorkerProcess:
        """A worker without faults that works off all there is; what it committed can be read."""
        self.reader.await_stable(self.topics, PATIENCE_S)
        worker = self.worker(instance, drain=True, short=short, env=env)
        assert worker.wait(PATIENCE_S) == 0, worker.tail()
        self.settle()
        return worker

    def produce(self, records: int, *, keys: int = 50, partition: int = -1, every_ms: float = 0) -> None:
        """The next records, into the newest topic: mostly good, some malformed, some tombstones, some with headers."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 2})
        for _ in range(records):
            n = next(self._sent)
            producer.produce(
                self.topics[-1],
                value_of(n),
                f"k{n % keys}",
                partition,
                timestamp=EPOCH_MS + n,
                headers=[("trace", str(n)), ("empty", None)] if n % 50 == 0 else None,
            )
            if n % 100 == 0:
                producer.poll(0)
                time.sleep(every_ms / 10)
        assert producer.flush(PATIENCE_S) == 0

    def produce_in_transactions(self, records: int, *, aborted_every: int = 3, size: int = 100, keys: int = 50) -> None:
        """The next records in transactions of ``size``; of every so many transactions one is aborted, its records are garbage.

        On return all of them are over, their markers written: a reader sees every record that was committed.
        """
        config = {"bootstrap.servers": self.bootstrap, "transactional.id": unique("feed"), "linger.ms": 0}
        producer = Producer(config)
        producer.init_transactions(PATIENCE_S)
        for number in range(records // size):
            producer.begin_transaction()
            for _ in range(size):
                n = next(self._sent)
                producer.produce(self.source, value_of(n), f"k{n % keys}", timestamp=EPOCH_MS + n)
            producer.commit_transaction(PATIENCE_S)
            if number % aborted_every == 0:
                producer.begin_transaction()
                producer.produce(self.source, b'{"n": -1}', b"aborted")
                producer.flush()
                producer.abort_transaction(PATIENCE_S)
        # Answered when the last transaction is over.
        Producer(config).init_transactions(PATIENCE_S)

    def settle(self) -> None:
        """Until no transaction is open in the pipeline's topics and in the group's offsets: what was committed can be read.

        Markers are written after a commit was answered, here sooner than there: neither a worker's end nor the group's offsets tell that
        outputs and receipts are readable. What a killed worker left open is waited for, until its successor or its timeout ends it.
        """
        made = {topic for topic in self.reader.topics() if topic.startswith(f"{self.name}.")} - {*self.topics}
        self.reader.await_stable(made, PATIENCE_S)
        # The group's offsets are of another coordinator. As read_committed, librdkafka asks until none is pending any more (KIP-447).
        settings = {"bootstrap.servers": self.bootstrap, "group.id": self.name, "isolation.level": "read_committed"}
        with contextlib.closing(Consumer(settings)) as consumer:
            found = consumer.committed([TopicPartition(*p) for p in self.partitions], PATIENCE_S)
        assert [p.error for p in found if p.error is not None] == []

    def committed(self) -> dict[Partition, int]:
        """The group's offsets as they can be seen: a commit's markers stand there sooner or later than in the topics (see ``settle``)."""
        return self.reader.committed_offsets(self.name, self.partitions)

    def members(self) -> list[str]:
        """Ids of the group's members, by the broker's word: those of a rebalance that is under way, too."""
        admin = admin_client(self.bootstrap)
        (future,) = admin.describe_consumer_groups([self.name], request_timeout=PATIENCE_S).values()
        return [member.member_id for member in future.result(2 * PATIENCE_S).members]

    def await_committed(self, records: int) -> None:
        """Until the group has committed so many offsets, over all partitions. To read what was committed with them: ``settle``."""
        await_true(lambda: sum(self.committed().values()) >= records, f"{records} offsets committed")

    def await_drained(self) -> None:
        """Until the group has committed all that is in the source now. To read what was committed with it: ``settle``."""
        self.reader.await_stable(self.topics, PATIENCE_S)
        ends = last_offsets(self.sources(), self.partitions)

        def left() -> int:
            committed = self.committed()
            return sum(max(0, end - committed.get(partition, 0)) for partition, end in ends.items())

        def less_than(records: int) -> Callable[[], bool]:
            return lambda: left() < records

        while before := left():
            # However much there is: it is given up only when nothing of it gets done for so long.
            await_true(less_than(before), f"something of {before} records, up to {ends}, is committed")

    def sources(self) -> list[StoredRecord]:
        return self.reader.read(self.topics)

    def outputs(self, *, committed: bool = True) -> list[StoredRecord]:
        return self.reader.read([self.sink, self.dead_letters], committed=committed)

    def receipt_values(self) -> list[dict[str, Any]]:
        return [json.loads(record.value or b"") for record in self.reader.read([self.receipts])]

    def problems(self, starts: Mapping[Partition, int] | None = None) -> list[str]:
        """What is wrong with this pipeline's topics, receipts and offsets after all was consumed; nothing: exactly once.

        ``starts``: where the group began, if not at 0.
        """
        self.settle()
        starts = dict.fromkeys(self.partitions, 0) | dict(starts or {})
        sources = [s for s in self.sources() if s.offset >= starts[s.topic, s.partition]]
        actual = self.outputs()
        identify = by_lineage(self.dead_letters)
        findings = compare([e for s in sources for e in self.all_expected(s)], actual, identify)
        committed = self.committed()
        # T1: the offset after the last record; or one of the markers that follow it, which a worker passes by and by (DECISIONS 8).
        wanted = {p: end for p, end in last_offsets(sources, self.partitions, starts).items() if end > starts[p]}
        ends = self.reader.end_offsets(wanted)
        return (
            findings.lines()
            + check_receipts(
                self.reader.read([self.receipts]),
                starts,
                committed,
                found=fates(sources, actual, identify),
                dead_letter_topic=self.dead_letters,
            )
            + [
                f"{p}: {committed.get(p)} is committed, not {end}, or more and up to {ends[p]}"
                for p, end in wanted.items()
                if not end <= committed.get(p, 0) <= ends[p]
            ]
        )

    def all_expected(self, source: StoredRecord) -> list[ExpectedRecord]:
        """Everything that must come of a record: for scenes with other steps to say."""
        expected = self.expected(source)
        return [] if expected is None else [expected]

    def expected(self, source: StoredRecord) -> ExpectedRecord | None:
        """What must come of a record; None where it is filtered."""

        def record(index: int, topic: str, value: bytes | None) -> ExpectedRecord:
            return ExpectedRecord(source.position, index, topic, source.key, value, source.headers, source.timestamp_ms)

        if source.value is None:
            return record(0, self.sink, None)
        if not source.value.startswith(b"{"):
            return record(DEAD_LETTER, self.dead_letters, source.value)
        n = json.loads(source.value)["n"]
        return None if n % 10 == 3 else record(0, self.sink, json.dumps({"n": n, "twice": 2 * n}).encode())


def value_of(n: int) -> bytes | None:
    if n % 101 == 7:
        return None
    return b"no json" if n % 97 == 5 else json.dumps({"n": n}).encode()


def last_offsets(
    records: Iterable[StoredRecord], partitions: Iterable[Partition], starts: Mapping[Partition, int] | None = None
) -> dict[Partition, int]:
    """The offset after the last record per partition, the start where there is none."""
    ends = {partition: (starts or {}).get(partition, 0) for partition in partitions}
    for record in records:
        place = record.topic, record.partition
        ends[place] = max(ends[place], record.offset + 1)
    return ends


def faults(worker: WorkerProcess) -> list[str]:
    """The faults that took place in a worker, in order, without their times."""
    lines = worker.log_path.read_text(errors="replace").splitlines() if worker.log_path.exists() else []
    found = [line.removeprefix("fault: ") for line in lines if line.startswith("fault: ")]
    return [fault for fault in found if not fault.startswith("installed")]


def events(worker: WorkerProcess, name: str) -> list[dict[str, Any]]:
    return [entry for entry in worker.logs() if entry.get("event") == name]


class Onlooker:
    """A concurrent read_committed consumer, as a context manager: what it sees while the workers run, it must not regret."""

    def __init__(self, bootstrap: str, partitions: Sequence[Partition]) -> None:
        self.seen: list[tuple[int, int, bytes | None]] = []
        """(partition, offset, value) in the order in which they came."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": unique("onlooker"),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([TopicPartition(*partition, 0) for partition in partitions])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _watch(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(5000, 0.1):
                if message.error() is None:
                    self.seen.append((message.partition() or 0, message.offset() or 0, message.value()))


@contextlib.contextmanager
def under_load(scene: Scene) -> Any:
    """Records come in, a thousand a second or fewer, while the block lasts: however slow the machine is, the load does not run out."""
    done = threading.Event()

    def load() -> None:
        while not done.is_set():
            scene.produce(500, every_ms=1)

    with in_background(load):
        try:
            yield
        finally:
            done.set()


@contextlib.contextmanager
def in_background(work: Callable[[], None]) -> Any:
    """Run ``work`` in a thread while the block lasts; the block's end waits for it and raises what it raised."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]
