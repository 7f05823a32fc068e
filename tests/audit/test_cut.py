"""The cut on a real broker: facts A1 to A4, A8, A9, A11 and A12 of the audit's design, each as a test.

The pipelines here are two transactional copiers in threads: a cut needs offsets and transactions, no transform.
"""

from __future__ import annotations

import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from devkit.admin import admin_client
from devkit.reader import Reader
from spark_batch.cut import Topics, moved_starts, take_cut, topics_of
from spark_batch.errors import CannotJudgeError
from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.model import OpenTransaction, Range
from spark_batch.topics import read_topic
from tests.audit.hanging import EPOCH, PRODUCER_ID, hang
from tests.support.broker import create_topics, unique
from tests.support.topics import add_partitions
from tests.support.waiting import PATIENCE_S, await_true
from transforms.loading import load_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from devkit import Cluster
    from spark_batch.model import Cut, Partition

AHEAD = 20_000
"""Records per source partition: some minutes of work."""
MOST = 3
"""Records of a copier's transaction."""


class Copiers:
    """One source partition per copier, which "copies" offsets n, n+1, ...: writes n to the output and commits n + 1, one of four
    transactions aborted. The source itself holds AHEAD records from the start."""

    def __init__(self, bootstrap: str, copiers: int = 2) -> None:
        self.bootstrap, self.name = bootstrap, unique("cut")
        self.source, self.output, self.receipts = (f"{self.name}.{kind}" for kind in ("in", "out", "receipts"))
        self.topics = Topics((self.source,), (self.output, self.receipts))
        create_topics(bootstrap, {self.source: copiers, self.output: 3, self.receipts: 1})
        producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 2 * AHEAD * copiers})
        for partition in range(copiers):
            for _ in range(AHEAD):
                producer.produce(self.source, b"x", partition=partition)
        assert producer.flush(PATIENCE_S) == 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._copy, args=(p,), daemon=True) for p in range(copiers)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a copier does not come to its end"

    def _copy(self, partition: int) -> None:
        dice = random.Random(partition)
        settings = {"bootstrap.servers": self.bootstrap, "linger.ms": 0}
        producer = Producer({**settings, "transactional.id": f"{self.name}-{partition}"})
        producer.init_transactions(PATIENCE_S)
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.name})
        position = 0
        while not self._stop.is_set() and position + MOST <= AHEAD:
            producer.begin_transaction()
            end = position + dice.randrange(1, MOST + 1)
            for offset in range(position, end):
                producer.produce(self.output, f"{partition}/{offset}", partition=dice.randrange(3))
            producer.produce(self.receipts, f"{partition}/{end}")
            offsets = [TopicPartition(self.source, partition, end)]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE_S)
            if dice.random() < 0.25:
                producer.abort_transaction(PATIENCE_S)
            else:
                producer.commit_transaction(PATIENCE_S)
                position = end
        consumer.close()

    @cached_property
    def written(self) -> dict[tuple[int, int], list[tuple[Partition, int]]]:
        """Asked for in the end. Where the committed copy of each (source partition, offset) stands."""
        found: dict[tuple[int, int], list[tuple[Partition, int]]] = {}
        for record in Reader(self.bootstrap).read([self.output]):
            partition, offset = map(int, (record.value or b"").split(b"/"))
            found.setdefault((partition, offset), []).append(((record.topic, record.partition), record.offset))
        return found

    def problems(self, cut: Cut, ends: dict[Partition, int]) -> list[tuple[int, int, int]]:
        """(source partition, offset, copies) of what a reader of committed outputs up to `ends` does not find once, of all below C."""
        written = self.written
        copies = {
            (partition, offset): sum(at < ends[where] for where, at in written.get((partition, offset), []))
            for (_, partition), c in cut.committed.items()
            for offset in range(c)
        }
        return [(*place, count) for place, count in copies.items() if count != 1]


@pytest.fixture
def admin(spark: SparkSession, bootstrap: str) -> Iterator[KafkaAdmin]:
    with KafkaAdmin(spark, {"bootstrap.servers": bootstrap}) as client:
        yield client


def ends_of(cut: Cut) -> dict[Partition, int]:
    return {partition: span.end for partition, span in cut.outputs.items()}


def test_a1_cuts_over_a_running_pipeline_raise_no_false_alarm(admin: KafkaAdmin, bootstrap: str) -> None:
    """20 cuts while two copiers commit and abort: everything below C is there, once, below the ends. With outputs looked at before C, and
    the copiers at work in between, each would have been wrong: the check sees what a wrong order does."""
    cuts, wrong = [], []
    with Copiers(bootstrap) as pipeline:
        outputs = [(pipeline.output, n) for n in range(3)]
        sources = [(pipeline.source, n) for n in range(2)]
        await_true(lambda: len(admin.committed(pipeline.name, sources)) == 2, "both copiers have committed")
        for _ in range(20):
            ends = admin.ends(outputs, committed=True)
            # One transaction of each copier may have outputs below these ends, and show its offsets only later.
            beyond = sum(admin.committed(pipeline.name, sources).values()) + MOST * len(sources)
            await_true(lambda: sum(admin.committed(pipeline.name, sources).values()) > beyond, "they go on", PATIENCE_S)  # noqa: B023
            cuts.append(take_cut(admin, pipeline.topics, pipeline.name, PATIENCE_S))
            wrong.append(ends)
    assert [pipeline.problems(cut, ends_of(cut)) for cut in cuts] == [[]] * 20
    assert all(pipeline.problems(cut, ends) for cut, ends in zip(cuts, wrong, strict=True))
    assert [cut.open_transactions for cut in cuts] == [()] * 20
    assert max(cut.waited_s for cut in cuts) < PATIENCE_S


def test_a1_offsets_in_an_open_transaction_are_waited_for(admin: KafkaAdmin, bootstrap: str) -> None:
    """Java's Admin leaves a partition out whose offset is about to change; taken for one without offset, its records would be "missing"."""
    topic = unique("offsets")
    create_topics(bootstrap, {topic: 3})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, 5), TopicPartition(topic, 1, 6)], asynchronous=False)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    metadata = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 7)], metadata, PATIENCE_S)
    partitions = [(topic, number) for number in range(3)]
    assert partitions[0] not in admin._stable(topic, partitions)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(admin.committed, topic, partitions, PATIENCE_S)
        with pytest.raises(TimeoutError):
            asked.result(0.5)
        with pytest.raises(CannotJudgeError) as caught:
            admin.committed(topic, partitions, 0.2)
        told = rf"a transaction that commits offsets of {topic}\[0\] has not ended for \d+ s: producer "
        assert re.search(told, str(caught.value))
        assert f", transactional id {topic}, since 20" in str(caught.value)
        assert str(caught.value).endswith(", its coordinator says Ongoing")
        producer.commit_transaction(PATIENCE_S)
        assert asked.result(PATIENCE_S) == {partitions[0]: 7, partitions[1]: 6}
    consumer.close()


def test_a2_what_a_cut_shows_stays_the_same(admin: KafkaAdmin, spark: SparkSession, bootstrap: str) -> None:
    """Ends are numbers, not "latest": two looks at one table of a growing topic count the same."""
    with Copiers(bootstrap) as pipeline:
        sources = [(pipeline.source, n) for n in range(2)]
        await_true(lambda: sum(admin.committed(pipeline.name, sources).values()) > 20, "they work")
        cut = take_cut(admin, pipeline.topics, pipeline.name, PATIENCE_S)
        options = {"bootstrap.servers": bootstrap}
        spans = {partition: span for partition, span in cut.outputs.items() if partition[0] == pipeline.output}
        table = read_topic(spark, options, spans)
        first = table.count()
        seen = sum(admin.committed(pipeline.name, sources).values())
        await_true(lambda: sum(admin.committed(pipeline.name, sources).values()) > seen, "they go on")
        assert first == table.count() > 0


def test_a3_a4_a12_an_open_transaction_ends_the_wait_and_is_named(
    admin: KafkaAdmin, spark: SparkSession, bootstrap: str
) -> None:
    """The partition that it holds back ends at its last stable offset, so that a read_committed reader does not hang; a reader who does not
    say how it reads would see the open record."""
    topic, source = unique("open"), unique("source")
    create_topics(bootstrap, {topic: 2, source: 1})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, b"committed", partition=1)
    producer.commit_transaction(PATIENCE_S)
    producer.begin_transaction()
    before_ms = time.time() * 1000
    producer.produce(topic, b"open", partition=1)
    assert producer.flush(PATIENCE_S) == 0
    began = time.monotonic()
    cut = take_cut(admin, Topics((source,), (topic,)), "nobody", wait_s=0.3)
    assert 0.3 <= cut.waited_s < time.monotonic() - began < PATIENCE_S
    (found,) = cut.open_transactions
    assert before_ms - 1000 < found.since_ms < time.time() * 1000 + 1000
    assert found == OpenTransaction(topic, 1, found.producer_id, found.epoch, 2, found.since_ms, "Ongoing", topic)
    assert cut.outputs == {(topic, 0): Range(0, 0), (topic, 1): Range(0, 2)}
    options = {"bootstrap.servers": bootstrap}
    assert [bytes(row.value) for row in read_topic(spark, options, cut.outputs).collect()] == [b"committed"]
    raw = read_topic(spark, options, {(topic, 1): Range(0, 3)}, "read_uncommitted")
    assert [bytes(row.value) for row in raw.collect()] == [b"committed", b"open"]
    producer.commit_transaction(PATIENCE_S)
    # Its marker, too: a cut right behind the commit may end before it (test_a6 in test_rules.py).
    await_true(lambda: admin.ends([(topic, 1)], committed=True) == {(topic, 1): 4}, "the marker is there", PATIENCE_S)
    later = take_cut(admin, Topics((source,), (topic,)), "nobody", PATIENCE_S)
    assert (later.outputs[topic, 1].end, later.open_transactions) == (4, ())


def test_a12_a_hanging_transaction_is_told_from_a_running_one(spark: SparkSession, cluster: Cluster) -> None:
    """Its partition's leader has it open, no coordinator lists it."""
    topic, source = unique("hanging"), unique("source")
    cluster.create_topics({topic: 1, source: 1})
    hang(spark, cluster.bootstrap, topic, 0)
    with KafkaAdmin(spark, {"bootstrap.servers": cluster.bootstrap}) as admin:
        cut = take_cut(admin, Topics((source,), (topic,)), "nobody", wait_s=0.1)
    (found,) = cut.open_transactions
    assert found == OpenTransaction(topic, 0, PRODUCER_ID, EPOCH, 0, found.since_ms, None, None)
    assert cut.outputs == {(topic, 0): Range(0, 0)}


def test_a8_log_starts_are_in_the_cut_and_what_moves_later_is_seen(admin: KafkaAdmin, bootstrap: str) -> None:
    with Copiers(bootstrap, copiers=1) as pipeline:
        source = (pipeline.source, 0)
        await_true(lambda: admin.committed(pipeline.name, [source]).get(source, 0) > 5, "it works")
    kafka = admin_client(bootstrap)

    def truncate(offset: int) -> None:
        for future in kafka.delete_records([TopicPartition(*source, offset)]).values():
            future.result(PATIENCE_S)

    truncate(2)
    cut = take_cut(admin, pipeline.topics, pipeline.name, PATIENCE_S)
    assert cut.source_start == {source: 2}
    assert moved_starts(admin, cut) == {}
    truncate(4)
    assert moved_starts(admin, cut) == {source: (2, 4)}


def test_a9_new_partitions_are_in_the_next_cut(admin: KafkaAdmin, bootstrap: str) -> None:
    """They start at 0 and have no committed offset yet."""
    with Copiers(bootstrap, copiers=1) as pipeline:
        source = (pipeline.source, 0)
        await_true(lambda: admin.committed(pipeline.name, [source]).get(source, 0) > 5, "it works")
    before = take_cut(admin, pipeline.topics, pipeline.name, PATIENCE_S)
    add_partitions(bootstrap, pipeline.source, 2)
    add_partitions(bootstrap, pipeline.output, 4)
    after = take_cut(admin, pipeline.topics, pipeline.name, PATIENCE_S)
    assert set(after.source_start) - set(before.source_start) == {(pipeline.source, 1)}
    assert set(after.outputs) - set(before.outputs) == {(pipeline.output, 3)}
    assert (after.source_start[pipeline.source, 1], after.outputs[pipeline.output, 3]) == (0, Range(0, 0))
    assert after.committed == before.committed
    assert after.topic_ids == before.topic_ids


def test_a_pattern_takes_the_topics_that_are_there(admin: KafkaAdmin, bootstrap: str, tmp_path: Path) -> None:
    """Those that the worker's pattern takes; one that takes none is no empty audit."""
    name = unique("pattern")
    create_topics(bootstrap, {f"{name}-in.a": 1, f"{name}-in.b": 1, f"other.{name}-in.a": 1})
    path = tmp_path / "pipeline.yaml"
    text = 'name: {name}\nsource: {{pattern: "^{pattern}$"}}\nsink: {{topic: out}}\n'
    path.write_text(text.format(name=name, pattern=f"{name}-in[.].*"))
    found = topics_of(load_pipeline(path), admin)
    written = ("out", f"{name}.dead-letters", f"{name}.receipts")
    assert found == Topics((f"{name}-in.a", f"{name}-in.b"), written, f"^{name}-in[.].*$")
    path.write_text(text.format(name=name, pattern=f"{name}-none"))
    with pytest.raises(CannotJudgeError, match="no topic matches the source's pattern"):
        topics_of(load_pipeline(path), admin)


def test_a11_a_group_without_offsets_has_no_c(admin: KafkaAdmin, bootstrap: str) -> None:
    """Also one that never was; what that means is for the scope and the receipts to say."""
    topic = unique("unread")
    create_topics(bootstrap, {topic: 1})
    assert take_cut(admin, Topics((topic,), ()), unique("group"), PATIENCE_S).committed == {}


def test_a10_a_recreated_topic_has_another_id(admin: KafkaAdmin, bootstrap: str) -> None:
    topic = unique("again")
    create_topics(bootstrap, {topic: 1})
    before = take_cut(admin, Topics((topic,), ()), "nobody", PATIENCE_S)
    kafka = admin_client(bootstrap)
    for future in kafka.delete_topics([topic]).values():
        future.result(PATIENCE_S)
    await_true(lambda: admin.topics([topic]) == {}, "it is gone")
    with pytest.raises(CannotJudgeError, match=f"topic {topic} does not exist"):
        take_cut(admin, Topics((topic,), ()), "nobody", PATIENCE_S)
    create_topics(bootstrap, {topic: 1})
    after = take_cut(admin, Topics((topic,), ()), "nobody", PATIENCE_S)
    assert before.topic_ids[topic] != after.topic_ids[topic]


def test_compacted_topics_and_offsets_by_time(admin: KafkaAdmin, bootstrap: str) -> None:
    topic, source = unique("compacted"), unique("source")
    create_topics(bootstrap, {topic: 1}, {"cleanup.policy": "compact,delete"})
    create_topics(bootstrap, {source: 1})
    producer = Producer({"bootstrap.servers": bootstrap})
    for timestamp in (1000, 2000, 3000):
        producer.produce(source, b"x", timestamp=timestamp)
    assert producer.flush(PATIENCE_S) == 0
    assert take_cut(admin, Topics((source,), (topic,)), "nobody", PATIENCE_S).compacted == {topic}
    found = [admin.at([(source, 0)], time_ms) for time_ms in (0, 2000, 2001, 3001)]
    assert found == [{(source, 0): 0}, {(source, 0): 1}, {(source, 0): 2}, {}]
