"""The judge against a real broker: faults planted into real topics, between an aborted transaction and an open one that nobody may see."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from devkit.reader import Reader, ReadError
from devkit.verify import (
    DEAD_LETTER,
    DEAD_LETTER_HEADERS,
    ExpectedRecord,
    Findings,
    StoredRecord,
    by_content,
    by_lineage,
    compare,
)
from devkit.verify_receipts import check_receipts, fates
from tests.support.broker import create_topics, unique
from tests.support.waiting import PATIENCE_S

BAD = 5
"""The source record that is no JSON."""
FIRST = 4
"""Where the sink's good records begin: behind three aborted records and their marker."""


class Write(NamedTuple):
    topic: str
    key: bytes
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    timestamp_ms: int


@dataclass
class Topics:
    """One pipeline's topics, each of one partition. Source records 0 to 7, of users a and b in turn; record BAD is a dead letter."""

    bootstrap: str
    name: str
    reader: Reader

    @property
    def source(self) -> str:
        return f"{self.name}.in"

    @property
    def sink(self) -> str:
        return f"{self.name}.out"

    @property
    def other(self) -> str:
        return f"{self.name}.other"

    @property
    def dead(self) -> str:
        return f"{self.name}.dead"

    @property
    def receipts(self) -> str:
        return f"{self.name}.receipts"

    def origin(self, n: int) -> Write:
        value = b"{" if n == BAD else json.dumps({"id": n}).encode()
        return Write(self.source, b"ab"[n % 2 : n % 2 + 1], value, [("trace", f"{n}")], 1_000 + n)

    def output(self, n: int) -> Write:
        lineage: tuple[str, str | bytes | None] = ("reckon.source", f"{self.source}/0/{n}/0")
        value = json.dumps({"id": n, "out": True}).encode()
        origin = self.origin(n)
        return origin._replace(topic=self.sink, value=value, headers=[*origin.headers, lineage])

    def dead_letter(self, n: int) -> Write:
        own: dict[str, str | bytes | None] = dict.fromkeys(sorted(DEAD_LETTER_HEADERS), "?")
        own |= {"reckon.source.topic": self.source, "reckon.source.partition": "0", "reckon.source.offset": f"{n}"}
        origin = self.origin(n)
        return origin._replace(topic=self.dead, headers=[*origin.headers, *own.items()])

    def receipt(self, sequence: int, start: int, end: int) -> Write:
        dead = int(start <= BAD < end)
        part = {"topic": self.source, "partition": 0, "from": start, "to": end, "read": end - start, "filtered": 0}
        part |= {"dead_lettered": dead, "written": {self.sink: end - start - dead}}
        value = {"schema": 1, "transactional_id": "t", "incarnation": "i", "sequence": sequence, "partitions": [part]}
        return Write(self.receipts, b"t", json.dumps(value).encode(), [], 1_000)

    def good(self) -> list[Write]:
        outputs = [self.dead_letter(n) if n == BAD else self.output(n) for n in range(8)]
        return [*outputs, self.receipt(1, 0, 3), self.receipt(2, 3, 8)]

    def expected(self) -> list[ExpectedRecord]:
        def due(n: int) -> ExpectedRecord:
            write = self.dead_letter(n) if n == BAD else self.output(n)
            headers = (("trace", f"{n}".encode()),)
            index = DEAD_LETTER if n == BAD else 0
            return ExpectedRecord(self.at(n), index, write.topic, write.key, write.value, headers, write.timestamp_ms)

        return [due(n) for n in range(8)]

    def at(self, n: int) -> tuple[str, int, int]:
        return (self.source, 0, n)

    @cached_property
    def sources(self) -> list[StoredRecord]:
        return self.reader.read([self.source])

    @cached_property
    def stored(self) -> list[StoredRecord]:
        return self.reader.read([self.sink, self.other, self.dead])

    def findings(self) -> Findings:
        """By lineage; by content they must be the same."""
        stored, expected = self.stored, self.expected()
        found = compare(expected, stored, by_lineage(self.dead))
        assert compare(expected, stored, by_content(self.sources, expected, self.dead)) == found
        return found

    def receipt_errors(self) -> list[str]:
        partition = (self.source, 0)
        found = fates(self.sources, self.stored, by_lineage(self.dead))
        receipts = self.reader.read([self.receipts])
        return check_receipts(receipts, {partition: 0}, {partition: 8}, found=found, dead_letter_topic=self.dead)


def producer_of(bootstrap: str, writes: list[Write]) -> Producer:
    """Of an open transaction in which these records have reached the broker."""
    config = {"bootstrap.servers": bootstrap, "transactional.id": unique("plant"), "linger.ms": 1}
    producer = Producer(
        config | {"transaction.timeout.ms": 600_000}
    )  # one that is to stay open does, however slow the test
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for write in writes:
        rest: dict[str, Any] = {"headers": write.headers, "timestamp": write.timestamp_ms}
        producer.produce(write.topic, write.value, write.key, 0, **rest)
    assert producer.flush(PATIENCE_S) == 0
    return producer


@pytest.fixture
def reader(bootstrap: str) -> Iterator[Reader]:
    with Reader(bootstrap) as reader:
        yield reader


@pytest.fixture
def plant(bootstrap: str, reader: Reader) -> Iterator[Callable[[Callable[[Topics], list[Write]]], Topics]]:
    """Commits what a function makes of the topics, after an aborted transaction and before an open one.

    Each begins when the markers of the one before stand everywhere: they are written after its end was answered, and have offsets.
    """
    still_open: list[Producer] = []

    def commit(make: Callable[[Topics], list[Write]]) -> Topics:
        topics = Topics(bootstrap, unique("verify"), reader)
        names = (topics.source, topics.sink, topics.other, topics.dead, topics.receipts)
        create_topics(bootstrap, dict.fromkeys(names, 1))
        noise = [topics.output(n) for n in range(3)]
        producer_of(bootstrap, noise).abort_transaction(PATIENCE_S)
        reader.await_stable(names)
        producer_of(bootstrap, [*(topics.origin(n) for n in range(8)), *make(topics)]).commit_transaction(PATIENCE_S)
        reader.await_stable(names)
        still_open.append(producer_of(bootstrap, [*noise, topics.dead_letter(0), topics.receipt(9, 8, 9)]))
        return topics

    yield commit
    for producer in still_open:
        producer.abort_transaction(PATIENCE_S)


Plant = Callable[[Callable[[Topics], list[Write]]], Topics]


def test_a_good_run_has_no_findings_whatever_is_aborted_or_open(plant: Plant) -> None:
    topics = plant(Topics.good)
    assert topics.findings() == Findings()
    assert topics.receipt_errors() == []
    everything = topics.reader.read([topics.sink, topics.dead], committed=False)
    assert len(everything) == 3 + 8 + 3 + 1, "the noise is really there, and read_uncommitted sees it"


def test_the_reader_stops_at_the_last_stable_offset(plant: Plant) -> None:
    """The open transaction begins behind eleven records and the markers of two transactions."""
    topics = plant(Topics.good)
    partition = (topics.sink, 0)
    assert topics.reader.end_offsets([partition]) == {partition: FIRST + 7 + 1}
    assert topics.reader.end_offsets([partition], committed=False) == {partition: FIRST + 7 + 1 + 3}
    assert [record.offset for record in topics.reader.read([topics.sink])] == list(range(FIRST, FIRST + 7))


def test_a_lost_record(plant: Plant) -> None:
    topics = plant(lambda t: [write for n, write in enumerate(t.good()) if n != 2])
    assert topics.findings() == Findings(missing=[(topics.at(2), 0)])
    (error,) = topics.receipt_errors()
    assert error.endswith("the topics hold 3 read, 1 filtered, 0 dead letters, outputs: 2 in " + topics.sink)


def test_a_doubled_record(plant: Plant) -> None:
    topics = plant(lambda t: [*t.good(), t.output(1)])
    assert topics.findings() == Findings(duplicated=[((topics.at(1), 0), (topics.sink, 0, FIRST + 7))])
    assert len(topics.receipt_errors()) == 1


def test_reordered_records(plant: Plant) -> None:
    topics = plant(lambda t: [t.output(2), t.output(1), t.output(0), *t.good()[3:]])
    assert topics.findings() == Findings(reordered=[((topics.at(0), 0), (topics.sink, 0, FIRST + 2))])
    assert topics.receipt_errors() == []


def test_altered_records(plant: Plant) -> None:
    def alter(t: Topics) -> list[Write]:
        writes = t.good()
        writes[0] = writes[0]._replace(value=b'{"id": 0, "out": 1}')
        writes[1] = writes[1]._replace(timestamp_ms=7, headers=writes[1].headers[1:])
        return writes

    topics = plant(alter)
    assert topics.findings() == Findings(
        altered=[
            ((topics.at(0), 0), (topics.sink, 0, FIRST), "value"),
            ((topics.at(1), 0), (topics.sink, 0, FIRST + 1), "headers, timestamp"),
        ]
    )


def test_an_orphan(plant: Plant) -> None:
    topics = plant(lambda t: [*t.good(), Write(t.sink, b"x", b'{"id": 77}', [], 5)])
    assert topics.findings() == Findings(unexpected=[(topics.sink, 0, FIRST + 7)])


def test_a_record_in_the_wrong_topic(plant: Plant) -> None:
    topics = plant(lambda t: [t.output(0)._replace(topic=t.other), *t.good()[1:]])
    assert topics.findings() == Findings(misrouted=[((topics.at(0), 0), (topics.other, 0, 0))])


def test_dead_letters_missing_and_extra(plant: Plant) -> None:
    topics = plant(lambda t: [t.dead_letter(6) if n == BAD else write for n, write in enumerate(t.good())])
    assert topics.findings() == Findings(
        dead_letters_missing=[(topics.at(BAD), DEAD_LETTER)], dead_letters_extra=[(topics.dead, 0, 0)]
    )


def test_a_missing_receipt(plant: Plant) -> None:
    topics = plant(lambda t: t.good()[:-1])
    assert topics.receipt_errors() == [f"{topics.source}/0: offsets [3, 8) have no receipt"]


def test_overlapping_receipts(plant: Plant) -> None:
    topics = plant(lambda t: [*t.good()[:-1], t.receipt(2, 2, 8)])
    assert topics.receipt_errors() == [f"{topics.source}/0: offsets [2, 3) have more than one receipt"]


def test_an_empty_topic_has_no_records(bootstrap: str, reader: Reader) -> None:
    topic = unique("empty")
    create_topics(bootstrap, {topic: 2})
    assert reader.read([topic]) == []


def test_a_topic_of_nothing_but_aborted_records_has_none(bootstrap: str, reader: Reader) -> None:
    """Here only the end-of-partition event says that the end is reached."""
    topic = unique("aborted")
    create_topics(bootstrap, {topic: 1})
    producer_of(bootstrap, [Write(topic, b"k", b"v", [], 1)] * 10).abort_transaction(PATIENCE_S)
    reader.await_stable([topic])
    assert reader.read([topic]) == []
    assert len(reader.read([topic], committed=False)) == 10


def test_a_topic_that_does_not_exist_is_an_error(reader: Reader) -> None:
    with pytest.raises(ReadError, match=r"topic no-such-topic on .*UNKNOWN_TOPIC_OR_PART"):
        reader.read(["no-such-topic"])


def test_committed_offsets_are_read_without_joining_the_group(bootstrap: str, reader: Reader) -> None:
    topic, group = unique("committed"), unique("group")
    create_topics(bootstrap, {topic: 2})
    member = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    member.commit(offsets=[TopicPartition(topic, 1, 7)], asynchronous=False)
    member.close()
    assert reader.committed_offsets(group, [(topic, 0), (topic, 1)]) == {(topic, 1): 7}
