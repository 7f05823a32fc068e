from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
import structlog
from confluent_kafka import KafkaError, TopicPartition

from tests.unit.worker.fakes import FakeCluster, FakeConsumer, failure, kafka_error, message, settings
from worker.assignment import committed_offsets, ends_of_new_topics, ends_of_sources, starting_offsets
from worker.errors import ConsumerFencedError, WorkerError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from worker.offsets import Partition

A: Partition = ("in", 0)
B: Partition = ("in", 1)
C: Partition = ("other", 0)


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time stands still but for the pauses."""
    pauses: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append)
    monkeypatch.setattr("worker.assignment.time", clock)
    monkeypatch.setattr("worker.logs.time", SimpleNamespace(monotonic=lambda: 0.0))  # what is said twice is told once
    return pauses


def cluster(**offsets: int) -> FakeCluster:
    """Partitions from 3 to 5, 7 to 8, and empty."""
    found = FakeCluster()
    found.log = {A: [message(3), message(4)], B: [message(7, partition=1)], C: []}
    found.offsets = {{"a": A, "b": B, "c": C}[name]: offset for name, offset in offsets.items()}
    return found


def starts(
    cluster: FakeCluster, *partitions: Partition, start: str = "earliest"
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    consumer = cast("Consumer", FakeConsumer(cluster))
    config = settings(start=start, topics=("in", "other"))
    new_topics = ends_of_new_topics(consumer, config, cluster.watchdog)
    cluster.calls.clear()
    return starting_offsets(consumer, partitions, new_topics, config, cluster.watchdog)


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_the_groups_committed_offset_is_the_start(start: str) -> None:
    """Also where it is 0; nothing is pinned, and the watermarks are not asked for."""
    kafka = cluster(a=4, b=0)

    assert starts(kafka, A, B, start=start) == ({A: 4, B: 0}, {})
    assert kafka.names() == ["committed"]


def test_without_a_committed_offset_earliest_starts_at_the_beginning() -> None:
    """The beginning is the low watermark, not 0."""
    assert starts(cluster(), A, B, C) == ({A: 3, B: 7, C: 0}, {})


def test_latest_starts_a_new_group_at_the_end_and_pins_it() -> None:
    """The end is committed with the first transaction, or a crash before it would skip what came in between."""
    assert starts(cluster(), A, B, start="latest") == ({A: 5, B: 8}, {A: 5, B: 8})


def test_r5_a_new_partition_starts_at_its_beginning_also_with_latest() -> None:
    """The group has committed something of the topic: so the partition is new and its records were written before discovery.

    Also when the partition that has an offset belongs to another member; another topic is judged for itself.
    """
    assert starts(cluster(a=4), B, start="latest") == ({B: 7}, {})
    assert starts(cluster(a=4), A, B, start="latest") == ({A: 4, B: 7}, {})
    assert starts(cluster(c=0), A, C, start="latest") == ({A: 5, C: 0}, {A: 5})


def test_latest_is_judged_before_the_join() -> None:
    """Another member's pin, committed while this one joined, does not make the topic a known one; a later partition is new all the same."""
    kafka = cluster()
    consumer, config = cast("Consumer", FakeConsumer(kafka)), settings(start="latest", topics=("in",))
    new_topics = ends_of_new_topics(consumer, config, kafka.watchdog)
    assert new_topics == {A: 5, B: 8}

    kafka.offsets[A] = 5
    kafka.log["in", 2] = [message(0, partition=2)]
    kafka.log[B].append(message(8, partition=1))

    found = starting_offsets(consumer, [B, ("in", 2)], new_topics, config, kafka.watchdog)
    assert found == ({B: 8, ("in", 2): 0}, {B: 8})


def test_earliest_asks_nothing_before_the_join() -> None:
    """There is nothing to judge."""
    kafka = cluster()

    assert ends_of_new_topics(cast("Consumer", FakeConsumer(kafka)), settings(), kafka.watchdog) == {}
    assert kafka.calls == []


def test_no_partitions_no_calls() -> None:
    """Cooperative rebalances often assign nothing."""
    kafka = cluster()

    assert starts(kafka) == ({}, {})
    assert kafka.calls == []


def test_unstable_offsets_are_waited_for(slept: list[float]) -> None:
    """A pending transaction of a predecessor, a timeout, a coordinator on the move: asked again until there is an answer."""
    kafka = cluster(a=4)
    kafka.failures["committed"].extend(
        [
            failure(KafkaError.UNSTABLE_OFFSET_COMMIT),
            failure(KafkaError._TIMED_OUT),
            failure(KafkaError.NOT_COORDINATOR, "retriable"),
        ]
    )

    assert starts(kafka, A) == ({A: 4}, {})
    assert kafka.calls == [("committed", 5.0)] * 4
    assert slept == [0.1] * 3


@pytest.mark.parametrize(
    ("call", "operation"),
    [
        ("committed", "read committed offsets"),
        ("get_watermark_offsets", "read watermarks"),
        ("list_topics", "read metadata"),
    ],
)
def test_patience_ends_before_the_group_loses_it(call: str, operation: str, slept: list[float]) -> None:
    """After half of max.poll.interval.ms the worker stops with what it wanted and why it did not get it: what does not pass by itself."""
    kafka = cluster()
    kafka.failures[call].extend([failure(KafkaError.UNKNOWN)] * 100)
    consumer = cast("Consumer", FakeConsumer(kafka))

    with pytest.raises(WorkerError, match=rf"^cannot {operation}: UNKNOWN: made by a test$"):
        ends_of_new_topics(consumer, settings(start="latest", max_poll_interval_ms=2000), kafka.watchdog)

    assert sum(slept) == pytest.approx(1.0, abs=0.15)


def test_brokers_that_are_away_are_waited_for(slept: list[float]) -> None:
    """However long: while there is no coordinator, nobody takes the partitions away. It is not told each time."""
    kafka = cluster(a=4)
    kafka.failures["committed"].extend([failure(KafkaError._TIMED_OUT)] * 500)
    consumer = cast("Consumer", FakeConsumer(kafka))

    with structlog.testing.capture_logs() as logs:
        found = committed_offsets(consumer, [A], settings(max_poll_interval_ms=2000), kafka.watchdog)

    assert found == {A: 4}
    assert len(slept) == 500
    assert [line["event"] for line in logs] == ["waiting"]


def test_a_fatal_error_is_not_waited_for(slept: list[float]) -> None:
    """The consumer will never answer again."""
    kafka = cluster()
    kafka.failures["committed"].append(failure(KafkaError.INCONSISTENT_GROUP_PROTOCOL, "fatal"))

    with pytest.raises(
        WorkerError, match=r"^cannot read committed offsets: INCONSISTENT_GROUP_PROTOCOL: made by a test$"
    ):
        starts(kafka, A)
    assert slept == []


def test_a_fenced_consumer_is_told_as_such(slept: list[float]) -> None:
    """Another consumer can ask in its place."""
    kafka = cluster()
    kafka.failures["committed"].append(failure(KafkaError.FENCED_INSTANCE_ID, "fatal"))

    with pytest.raises(ConsumerFencedError, match=r"^made by a test$"):
        starts(kafka, A)
    assert slept == []


def test_the_ends_of_sources_are_those_of_every_partition(slept: list[float]) -> None:
    """Patiently: a broker that has just come answers before it leads its partitions, and one may not have heard of a topic yet."""
    kafka = cluster()
    kafka.failures["get_watermark_offsets"].append(failure(KafkaError.NOT_LEADER_FOR_PARTITION, "retriable"))
    missing = kafka.log.pop(C)
    slow = FakeConsumer(kafka)
    list_topics = slow.list_topics

    def then_comes(*, timeout: float) -> object:
        found = list_topics(timeout=timeout)
        kafka.log[C] = missing
        return found

    setattr(slow, "list_topics", then_comes)  # noqa: B010 - mypy would not let a method be assigned

    config = settings(topics=("in", "other"))
    assert ends_of_sources(cast("Consumer", slow), config, kafka.watchdog) == {A: 5, B: 8, C: 0}
    assert len(slept) == 2


def test_an_error_of_one_partition_is_an_error_of_the_call() -> None:
    """Taking it for "nothing committed" would read the partition from its beginning again."""

    class PartitionError:
        """confluent-kafka's own cannot be made with an error in Python."""

        topic, partition, offset, error = "in", 0, -1001, kafka_error(KafkaError.UNSTABLE_OFFSET_COMMIT)

    answers = [[PartitionError()], [TopicPartition("in", 0, 4)]]
    consumer = SimpleNamespace(committed=lambda *_: answers.pop(0))

    found = committed_offsets(cast("Consumer", consumer), [A], settings(), FakeCluster().watchdog)

    assert found == {A: 4}
    assert answers == []


def test_partitions_without_a_committed_offset_are_left_out() -> None:
    """librdkafka's -1001 is no offset."""
    kafka = cluster(a=4)

    assert committed_offsets(cast("Consumer", FakeConsumer(kafka)), [A, B], settings(), kafka.watchdog) == {A: 4}
