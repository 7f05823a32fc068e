"""Kafka's console consumer as a judge: what it sees, what it does not, and what it does not let pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from devkit import reader
from devkit.verify import StoredRecord
from tests.faults import brokers
from tests.faults.console import ConsoleError, ConsoleReader, parse_all
from tests.support.broker import create_topics, unique
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.arena import Arena

ODD = [b"plain", b"", None, b"null", b"NO_HEADERS", b"\\x41", b"a:b,c\tline\nend", bytes(range(256)), "é".encode()]


def _line(offset: int, value: str = "v") -> bytes:
    return f"CreateTime:5\x1fPartition:0\x1fOffset:{offset}\x1fNO_HEADERS\x1fk\x1f{value}".encode()


def test_what_is_read_again_counts_once() -> None:
    """A consumer that rejoins goes back to its committed offset: the same records again, then new ones."""
    found = parse_all("t", [_line(0), _line(1), _line(0), _line(1), _line(3, "nil")], b"nil")
    assert found == [
        StoredRecord("t", 0, 0, b"k", b"v", (), 5),
        StoredRecord("t", 0, 1, b"k", b"v", (), 5),
        StoredRecord("t", 0, 3, b"k", None, (), 5),
    ]


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([_line(0), _line(0, "w")], "read twice, and not the same"),
        ([_line(0), _line(2), _line(1)], "printed after offset 2"),
        ([b"[main] WARN something"], "not a line of the formatter"),
    ],
)
def test_what_a_reader_must_never_see(lines: list[bytes], error: str) -> None:
    """Another record at a position that was read, an offset before one that was read, and what is no record at all."""
    with pytest.raises(ConsoleError, match=error):
        parse_all("t", lines, b"nil")


def _transaction(producer: Producer, topic: str, values: list[bytes | None], *, commit: bool = True) -> None:
    producer.begin_transaction()
    for n, value in enumerate(values):
        headers: list[tuple[str, str | bytes | None]] | None = (
            [("reckon.trace", value), ("", None), ("again", b"1"), ("again", b"2")] if n % 2 else None
        )
        producer.produce(topic, value, value, n % 2, headers=headers, timestamp=1_760_000_000_000 + n)
    assert producer.flush(PATIENCE_S) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_S)


def test_sees_committed_transactions_and_no_aborted_ones(bootstrap: str, tmp_path: Path) -> None:
    """While transactions of two topics come in: all that was committed, byte for byte and in order, and nothing else.

    The last transaction is aborted: the ends are reached though nothing of it is printed. Beyond the ends there is nothing to wait for.
    """
    topics = sorted(unique("console") for _ in range(2))
    create_topics(bootstrap, dict.fromkeys(topics, 2))
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": unique("console"), "linger.ms": 0})
    producer.init_transactions(PATIENCE_S)
    with ConsoleReader(bootstrap, topics, tmp_path) as console:
        for n in range(4):
            for topic in topics:
                _transaction(producer, topic, [*ODD, f"{topic} {n}".encode()])
                _transaction(producer, topic, [f"aborted {n}".encode()] * 50, commit=False)
        with reader.Reader(bootstrap) as direct:
            direct.await_stable(topics)  # the last markers, too: else the ends would be before the last aborted records
            ends = direct.end_offsets(direct.partitions_of(topics))
            expected = direct.read(topics)
        console.await_offsets(ends)
        found = console.records()
        with pytest.raises(ConsoleError, match="has not reached"):
            console.await_offsets({(topics[0], 1): ends[topics[0], 1] + 1}, 0.1)
    assert len(found) == 2 * 4 * 10
    assert sorted(expected, key=lambda record: record.position) == sorted(found, key=lambda record: record.position)
    assert [record.position for record in found] == sorted(record.position for record in expected)


def test_says_why_a_consumer_ended(tmp_path: Path, bootstrap: str) -> None:
    """A consumer that is gone has not seen what came later: waiting for it fails, and says which and with what."""
    topic = unique("console")
    create_topics(bootstrap, {topic: 1})
    with ConsoleReader(bootstrap, [topic], tmp_path) as console:
        console.kill()
        with pytest.raises(ConsoleError, match=f"the console consumer of {topic} ended with -9"):
            console.await_offsets({(topic, 0): 1})


@pytest.mark.long
@pytest.mark.xdist_group("arena")
def test_survives_the_death_of_the_leader(arena: Arena, tmp_path: Path) -> None:
    """It goes on with the next leader, and has seen all in the end."""
    topic = unique("console")
    arena.create_topics({topic: 2})
    producer = Producer({"bootstrap.servers": arena.bootstrap, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(PATIENCE_S)
    with ConsoleReader(arena.bootstrap, [topic], tmp_path) as console:
        _transaction(producer, topic, [b"before"] * 10)
        await_true(lambda: len(console.records()) == 10, "it reads", PATIENCE_S)
        brokers.kill_node(arena, brokers.leader_of(arena, "sink", topic, 0))
        _transaction(producer, topic, [b"after"] * 10)
        arena.heal()
        with reader.Reader(arena.bootstrap) as direct:
            direct.await_stable([topic])
            console.await_offsets(direct.end_offsets(direct.partitions_of([topic])))
        assert [record.value for record in console.records()] == ([b"before"] * 5 + [b"after"] * 5) * 2
