"""What an audit costs: `python -m tests.bench.audit`. Prints ratios.

1. Depth records against a `count()` of the same topics, in one Spark session, in turn. Three counts: a bare one, with every default of
   Spark and of the consumer; one with the audit's fetch sizes; one by the audit's interface, too. The last two are faster than the first.
2. Depth offsets over topics that grow while the number of receipts stays the same.
3. Memory: JVM and Python workers while the topics grow, each audit in a process of its own with the same heap.

The topics are made here: a copy with lineage (`steps: []`), receipts as a worker leaves them. Each measurement begins at the first offset.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import orjson
import typer
from confluent_kafka import Consumer, Producer, TopicPartition

from devkit import Cluster
from spark_batch.model import Depth, Range
from spark_batch.session import spark_session
from spark_batch.topics import read_topic
from tests.audit.auditor import Auditor
from tests.audit.world import topic_ids
from tests.support.broker import create_topics, unique
from transforms.loading import load_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spark_batch.model import Judgement, Partition

PARTITIONS = 4
RECEIPTS = 400
HEAP = "1g"
_EPOCH_MS = 1_760_000_000_000
_PATIENCE_S = 120.0
_CHUNK = 100_000

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


class Lot:
    """Topics of a copying pipeline that can grow; per source partition as many records in each."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap, self.name = bootstrap, unique("bench")
        self.path = folder / f"{self.name}.yaml"
        self.path.write_text(
            f"name: {self.name}\nsource: {{topics: [{self.name}.in]}}\nsink: {{topic: {self.name}.out}}\nsteps: []\n"
            f'kafka: {{bootstrap.servers: "{bootstrap}"}}\n'
        )
        self._digest = load_pipeline(self.path).transform.digest
        topics = {"in": PARTITIONS, "out": PARTITIONS}
        create_topics(bootstrap, {f"{self.name}.{topic}": n for topic, n in topics.items()})
        self._id = topic_ids(bootstrap, [f"{self.name}.in"])[f"{self.name}.in"]
        self._receipts = f"{self.name}.receipts"
        self.records = 0
        create_topics(bootstrap, {f"{self.name}.dead-letters": 1, self._receipts: 1})

    def grow(self, records: int, receipts: int = RECEIPTS) -> None:
        """Up to `records`; the new ones, over all partitions, in so many receipts."""
        low, high = self.records // PARTITIONS, records // PARTITIONS
        borders = [low + (high - low) * n // receipts for n in range(receipts + 1)]
        with ProcessPoolExecutor(2) as pool:
            for done in [pool.submit(_load, self.bootstrap, self.name, n, borders) for n in range(PARTITIONS)]:
                done.result()
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.name})
        group = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.name})
        producer.init_transactions(_PATIENCE_S)
        producer.begin_transaction()
        incarnation = unique("i")
        for sequence, (start, end) in enumerate(itertools.pairwise(borders), 1):
            producer.produce(self._receipts, self._receipt(incarnation, sequence, start, end), self.name)
        offsets = [TopicPartition(f"{self.name}.in", n, high) for n in range(PARTITIONS)]
        producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), _PATIENCE_S)
        producer.commit_transaction(_PATIENCE_S)
        group.close()
        self.records = records

    def _receipt(self, incarnation: str, sequence: int, start: int, end: int) -> bytes:
        entry = {"topic": f"{self.name}.in", "topic_id": self._id, "from": start, "to": end, "read": end - start}
        entry |= {"filtered": 0, "dead_lettered": 0, "written": {f"{self.name}.out": end - start}}
        head = {"schema": 1, "pipeline": self.name, "transactional_id": f"{self.name}-one", "incarnation": incarnation}
        rest = {"sequence": sequence, "transform": self._digest, "worker": "0", "time_ms": _EPOCH_MS + 7_200_000}
        return orjson.dumps({**head, **rest, "partitions": [{**entry, "partition": n} for n in range(PARTITIONS)]})


def _load(bootstrap: str, name: str, partition: int, borders: Sequence[int]) -> None:
    """Offsets from the first to the last border of one partition of source and output, outputs in transactions from border to border."""
    common = {"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 20}
    source = Producer({**common, "enable.idempotence": True, "queue.buffering.max.messages": _CHUNK + 1})
    sink = Producer({**common, "transactional.id": f"{name}-{partition}", "queue.buffering.max.messages": _CHUNK + 1})
    sink.init_transactions(_PATIENCE_S)
    topic, out, header = f"{name}.in", f"{name}.out", f"{name}.in/{partition}/"
    for start, end in itertools.pairwise(borders):
        sink.begin_transaction()
        for offset in range(start, end):
            value, key = b'{"id":%d,"amount":12.5,"user":"u%d"}' % (offset, offset % 5000), b"u%d" % (offset % 5000)
            time_ms = _EPOCH_MS + offset
            source.produce(topic, value, key, partition, None, None, time_ms)
            headers: Any = [("reckon.source", f"{header}{offset}/0")]
            sink.produce(out, value, key, partition, None, None, time_ms, headers)
        assert source.flush(_PATIENCE_S) == 0
        sink.commit_transaction(_PATIENCE_S)


def ends_of(auditor: Auditor, lot: Lot) -> dict[Partition, Range]:
    """All that an audit of the lot must read: source, outputs, dead letters and receipts, to their ends."""
    from spark_batch.kafka_admin import KafkaAdmin  # noqa: PLC0415 - py4j comes with Spark

    names = {"in": PARTITIONS, "out": PARTITIONS, "dead-letters": 1, "receipts": 1}
    partitions = [(f"{lot.name}.{name}", n) for name, count in names.items() for n in range(count)]
    with KafkaAdmin(auditor.spark, {"bootstrap.servers": lot.bootstrap}) as admin:
        ends = admin.ends(partitions, committed=True)
    return {partition: Range(0, end) for partition, end in ends.items()}


def count_bare(auditor: Auditor, lot: Lot) -> int:
    """What anybody would write: pinned and read_committed, and everything else as Spark and its consumer have it by default."""
    ranges = ends_of(auditor, lot)
    topics = sorted({topic for topic, _ in ranges})
    spans = {topic: {str(n): span for (name, n), span in ranges.items() if name == topic} for topic in topics}
    with _default_interface(auditor):
        return (
            auditor.spark.read.format("kafka")
            .option("kafka.bootstrap.servers", lot.bootstrap)
            .option("kafka.isolation.level", "read_committed")
            .option("assign", json.dumps({topic: [int(n) for n in of] for topic, of in spans.items()}))
            .option(
                "startingOffsets", json.dumps({t: {n: span.start for n, span in of.items()} for t, of in spans.items()})
            )
            .option(
                "endingOffsets", json.dumps({t: {n: span.end for n, span in of.items()} for t, of in spans.items()})
            )
            .load()
            .count()
        )


def count_tuned(auditor: Auditor, lot: Lot) -> int:
    """The same read as the audit reads, without headers."""
    return read_topic(auditor.spark, {"bootstrap.servers": lot.bootstrap}, ends_of(auditor, lot), headers=False).count()


def count_fetching(auditor: Auditor, lot: Lot) -> int:
    """With the audit's settings of the consumer, by the interface that Spark takes for Kafka by default."""
    with _default_interface(auditor):
        return count_tuned(auditor, lot)


@contextmanager
def _default_interface(auditor: Auditor) -> Iterator[None]:
    """Kafka is read by Spark's older interface, as it is where nobody says else."""
    conf, name = auditor.spark.conf, "spark.sql.sources.useV1SourceList"
    ours = conf.get(name)
    assert ours is not None
    conf.set(name, f"{ours},kafka")
    try:
        yield
    finally:
        conf.set(name, ours)


COUNTS: dict[str, Callable[[Auditor, Lot], int]] = {
    "bare count(), all defaults": count_bare,
    "count() with the audit's fetch sizes": count_fetching,
    "count() with them and its interface": count_tuned,
}


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.monotonic()
    result = work()
    return time.monotonic() - began, result


def _complete(judgement: Judgement) -> None:
    assert judgement.exit_code == 0, (
        f"an audit of sound topics ended with {judgement.exit_code}: {judgement.findings[:3]}"
    )


class _Watch:
    """The most memory that this process's JVM, and all its Python workers together, had resident; a context manager."""

    def __init__(self) -> None:
        self.jvm_mb = self.python_mb = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.2):
            jvm = python = 0
            for pid in _descendants(os.getpid()):
                name, rss_mb = _memory(pid)
                if name == "java":
                    jvm += rss_mb
                elif name.startswith("python"):
                    python += rss_mb
            self.jvm_mb, self.python_mb = max(self.jvm_mb, jvm), max(self.python_mb, python)


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        found += children
        for child in children:
            found += _descendants(child)
    return found


def _memory(pid: int) -> tuple[str, int]:
    """(name, MiB resident); shared pages of forked Python workers are counted in each of them."""
    try:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    except OSError:
        return "", 0
    return lines.get("Name", "").strip(), int(lines.get("VmRSS", "0 kB").split()[0]) // 1024


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    records: Annotated[int, typer.Option(min=100_000, help="Source records for the ratios.")] = 2_000_000,
    rounds: Annotated[int, typer.Option(min=1)] = 3,
    memory: Annotated[str, typer.Option(help="Source records, in millions, for the memory.")] = "1,5,20",
) -> None:
    """All three; an empty list leaves out the memory."""
    if context.invoked_subcommand:
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reckon-bench-audit-")))
        bootstrap = os.environ.get("RECKON_TEST_BOOTSTRAP") or stack.enter_context(Cluster(heap_mb=1024)).bootstrap
        _ratios(bootstrap, folder, records, rounds)
        sizes = [float(size) for size in memory.split(",") if size]
        if sizes:
            _memories(bootstrap, folder, sizes)


def _ratios(bootstrap: str, folder: Path, records: int, rounds: int) -> None:
    auditor = Auditor(spark_session("local[2]"))
    small, large = Lot(bootstrap, folder), Lot(bootstrap, folder)
    small.grow(records // 4)
    large.grow(records)
    compare(auditor, small, large, rounds)
    auditor.spark.stop()


def compare(auditor: Auditor, small: Lot, large: Lot, rounds: int) -> None:
    """In turn, in one session that is warm for all of them alike: a first round, of the same, does not count."""
    print(
        f"{large.records:,} source records, as many outputs in transactions, {RECEIPTS} receipts; two cores", flush=True
    )
    ends = ends_of(auditor, large)
    print("both sides read", {f"{topic}/{n}": span.end for (topic, n), span in ends.items()})
    works: dict[str, Callable[[], Any]] = {
        **{name: partial(count, auditor, large) for name, count in COUNTS.items()},
        "depth records": lambda: auditor(large.path, Depth.RECORDS),
        "depth offsets, a quarter": lambda: auditor(small.path, Depth.OFFSETS),
        "depth offsets": lambda: auditor(large.path, Depth.OFFSETS),
    }
    rows = [_round(works, large) for _ in range(rounds + 1)]
    medians = {name: statistics.median(row[name] for row in rows[1:]) for name in works}
    audit, counted = medians["depth records"], 2 * large.records + RECEIPTS
    print(f"medians of {rounds}; {counted:,} records, source, outputs and receipts:")
    print(f"  {'depth records':36} {audit:5.1f} s {counted / audit:10,.0f} records/s")
    for name in COUNTS:
        ratio = f"depth records: {medians[name] / audit:.2f} of its records/s"
        print(f"  {name:36} {medians[name]:5.1f} s {counted / medians[name]:10,.0f} records/s; {ratio}")
    print("  (wanted: 0.5 of the bare one)")
    cold = [_process("bare", large.name, large.bootstrap), _process("measure", str(large.path))]
    cold_ratio = f"bare count() {cold[0]:.1f} s, depth records {cold[1]:.1f} s: {cold[0] / cold[1]:.2f}"
    print(f"from a cold start, Spark's own included: {cold_ratio}")
    one, two = medians["depth offsets, a quarter"], medians["depth offsets"]
    print(
        f"depth offsets: {one:.2f} s over {small.records:,} records, {two:.2f} s over {large.records:,}: {two / one:.2f} times"
    )


def _round(works: Mapping[str, Callable[[], Any]], large: Lot) -> dict[str, float]:
    """Seconds that each takes, one after another."""
    times: dict[str, float] = {}
    for name, work in works.items():
        times[name], result = _timed(work)
        if name == "depth records":
            _complete(result)
            assert sum(result.totals.values()) == large.records
        elif name in COUNTS:
            assert result == 2 * large.records + RECEIPTS
    print("  " + ", ".join(f"{name} {took:.1f} s" for name, took in times.items()), flush=True)
    return times


def _process(*command: str) -> float:
    """Seconds that a command of this module takes, in a process of its own."""
    run = [sys.executable, "-m", "tests.bench.audit", *command]
    return _timed(lambda: subprocess.run(run, check=True, capture_output=True))[0]


def _memories(bootstrap: str, folder: Path, millions: list[float]) -> None:
    lot, rows = Lot(bootstrap, folder), []
    for size in sorted(millions):
        took, _ = _timed(lambda size=size: lot.grow(round(size * 1_000_000)))  # type: ignore[misc]
        print(f"  loaded {size:g} M in {took:.0f} s", flush=True)
        command = [sys.executable, "-m", "tests.bench.audit", "measure", str(lot.path)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        rows.append((size, json.loads(told)))
        print(f"  {size:5g} M records: {rows[-1][1]}", flush=True)
    first, last = rows[0], rows[-1]
    for part in ("jvm_mb", "python_mb"):
        print(f"{part}: {last[1][part] / first[1][part]:.2f} times, for {last[0] / first[0]:g} times the records")


@app.command()
def bare(name: str, bootstrap: str) -> None:
    """A bare count in this process."""
    auditor = Auditor(spark_session("local[2]"))
    lot = object.__new__(Lot)
    lot.name, lot.bootstrap = name, bootstrap
    print(count_bare(auditor, lot))
    auditor.spark.stop()


@app.command()
def measure(pipeline: Path) -> None:
    """One audit at depth records in this process, with a heap of HEAP; its time and memory as JSON."""
    spark = spark_session("local[2]", {"spark.driver.memory": HEAP})
    auditor = Auditor(spark)
    with _Watch() as watch:
        took, judgement = _timed(lambda: auditor(pipeline, Depth.RECORDS))
    _complete(judgement)
    print(json.dumps({"took_s": round(took, 1), "jvm_mb": watch.jvm_mb, "python_mb": watch.python_mb, "heap": HEAP}))
    spark.stop()


if __name__ == "__main__":
    app()
