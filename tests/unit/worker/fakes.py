"""Kafka without a broker: one cluster in memory, with a producer, a consumer and a watchdog that record every call.

The cluster knows what the tests ask about: which outputs and offsets became visible by a commit, and in which order the calls came.
"""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from worker.membership import parse_group_metadata
from worker.settings import Settings, TransactionLimits, WorkerSettings
from worker.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from worker.offsets import Partition

Flag = Literal["fatal", "retriable", "txn_requires_abort"]


def kafka_error(code: int, *flags: Flag, reason: str = "made by a test") -> KafkaError:
    return KafkaError(code, reason, "fatal" in flags, "retriable" in flags, "txn_requires_abort" in flags)


def failure(code: int, *flags: Flag) -> KafkaException:
    return KafkaException(kafka_error(code, *flags))


def message(offset: int, value: bytes = b"v", *, topic: str = "in", partition: int = 0) -> Message:
    return Message(
        topic=topic,
        partition=partition,
        offset=offset,
        key=b"k",
        value=value,
        headers=None,
        timestamp=(1, 1000 + offset),
    )


def event(code: int, *flags: Flag, offset: int = 0, partition: int = 0) -> Message:
    return Message(topic="in", partition=partition, offset=offset, error=kafka_error(code, *flags))


def metadata_bytes(generation: int, member: str, group: str = "orders") -> bytes:
    """What Consumer.consumer_group_metadata returns, in librdkafka's form."""
    return b"CGMDv2:" + struct.pack("=i", generation) + group.encode() + b"\0" + member.encode() + b"\0\x01"


def settings(
    *,
    start: str = "earliest",
    records: int = 1000,
    topics: tuple[str, ...] = ("in",),
    lineage: bool = True,
    max_poll_interval_ms: int = 300_000,
) -> Settings:
    """Settings of a run, as `resolve` would make them."""
    return Settings(
        pipeline="orders",
        instance_id="a",
        group_id="orders",
        topics=topics,
        pattern=None,
        start=start,
        sinks=("out",),
        dead_letter_topic="orders.dead",
        receipt_topic="orders.receipts",
        lineage=lineage,
        transaction=TransactionLimits(records=records, bytes=1_000_000, interval_ms=1000),
        worker=WorkerSettings(instance_id="a"),
        consumer={"group.id": "orders", "max.poll.interval.ms": max_poll_interval_ms},
        producer={
            "bootstrap.servers": "127.0.0.1:1",
            "transactional.id": "orders-a",
            "transaction.timeout.ms": 30_000,
        },
        origins={},
    )


class Clock:
    """Time that only moves when a test says so, or a poll waits in vain: no test depends on how fast the machine is."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


class SpyWatchdog(Watchdog):
    """A watchdog that is not installed and tells which operation it guards just now."""

    def __init__(self) -> None:
        super().__init__(grace_s=60, call_limit_s=60)
        self.guarding: str | None = None

    @contextmanager
    def guard(self, operation: str) -> Iterator[None]:
        self.guarding = operation
        with super().guard(operation):
            yield
        self.guarding = None


class FakeCluster:
    """``failures``: per name of a call what its next calls do: raise the exception, run the function, or nothing for None."""

    def __init__(self) -> None:
        self.watchdog = SpyWatchdog()
        self.clock = Clock()
        """Of the source and the producer."""
        self.calls: list[tuple[Any, ...]] = []
        """(name, *arguments) in order, of both clients."""
        self.guards: list[tuple[str, str | None]] = []
        """(name of the call, what the watchdog guarded during it) of the producer's calls."""
        self.failures: dict[str, deque[BaseException | Callable[[], None] | None]] = defaultdict(deque)
        self.refuses: Callable[[str, bytes | None], KafkaError | None] = lambda _topic, _value: None
        """The broker's word on one record: an error fails the whole batch of records around it."""
        self.client_refuses: Callable[[str, bytes | None], KafkaError | None] = lambda _topic, _value: None
        """The client's word on one record: produce() raises it."""
        self.log: dict[Partition, list[Message]] = {}
        self.visible: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        """Committed records per topic: (value, key, timestamp, headers)."""
        self.offsets: dict[Partition, int] = {}
        """The group's committed offsets."""
        self.pending: list[tuple[Any, ...]] = []
        self.pending_offsets: dict[Partition, int] = {}
        self.producers: list[FakeProducer] = []
        self.configs: list[dict[str, Any]] = []
        """Of the producers."""
        self.metadata = metadata_bytes(3, "member-1")

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("worker.transaction.Producer", self.make_producer)
        monkeypatch.setattr("worker.source.Consumer", lambda *_, **__: FakeConsumer(self))
        for module in ("source", "transaction", "doubt"):
            monkeypatch.setattr(f"worker.{module}.time", SimpleNamespace(monotonic=self.clock.monotonic))

    def make_producer(self, config: dict[str, Any], **callbacks: Any) -> FakeProducer:
        self.calls.append(("Producer", config["transactional.id"]))
        self.configs.append(config)
        self.producers.append(FakeProducer(self, callbacks["on_delivery"], callbacks["error_cb"], callbacks["logger"]))
        return self.producers[-1]

    def called(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, *arguments))
        action = self.failures[name].popleft() if self.failures[name] else None
        if isinstance(action, BaseException):
            raise action
        if action is not None:
            action()

    def names(self, *but: str) -> list[str]:
        """The names of all calls but some."""
        return [call[0] for call in self.calls if call[0] not in but]

    def commit(self) -> None:
        """What EndTxn(commit) does at the broker."""
        for topic, *rest in self.pending:
            self.visible[topic].append(tuple(rest))
        self.offsets |= self.pending_offsets
        self.drop()

    def drop(self) -> None:
        """What EndTxn(abort), or a fresh epoch, does at the broker."""
        self.pending = []
        self.pending_offsets = {}


class FakeProducer:
    def __init__(
        self,
        cluster: FakeCluster,
        on_delivery: Callable[[KafkaError | None, Any], None],
        error_cb: Callable[[KafkaError], None],
        logger: Any,
    ) -> None:
        self._cluster = cluster
        self.on_delivery = on_delivery
        self.error_cb = error_cb
        self.logger = logger
        self.queue: list[tuple[Any, ...]] = []
        self.stuck = 0
        """How many flushes to come deliver nothing."""

    def __len__(self) -> int:
        return len(self.queue)

    def _called(self, name: str, *arguments: Any) -> None:
        self._cluster.guards.append((name, self._cluster.watchdog.guarding))
        self._cluster.called(name, *arguments)

    def init_transactions(self, timeout: float) -> None:
        self._called("init_transactions", timeout)
        self._cluster.drop()

    def begin_transaction(self) -> None:
        self._called("begin_transaction")

    def produce(  # noqa: PLR0917 - the signature of confluent-kafka
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        callback: None,
        on_delivery: None,
        timestamp: int,
        headers: Any,
    ) -> None:
        assert (partition, callback, on_delivery) == (-1, None, None)
        self._called("produce", topic, value)
        error = self._cluster.client_refuses(topic, value)
        if error is not None:
            raise KafkaException(error)
        self.queue.append((topic, value, key, timestamp, headers))

    def poll(self, timeout: float) -> int:
        self._called("poll", timeout)
        return 0

    def flush(self, timeout: float) -> int:
        self._called("flush", timeout)
        if self.stuck:
            self.stuck -= 1
            return len(self.queue)
        errors = [
            error for topic, value, *_ in self.queue if (error := self._cluster.refuses(topic, value)) is not None
        ]
        if errors:
            for topic, *_ in self.queue:
                self.on_delivery(errors[0], message(0, topic=topic))
        else:
            self._cluster.pending += self.queue
        self.queue = []
        return 0

    def purge(self) -> None:
        self._called("purge")
        for topic, *_ in self.queue:
            self.on_delivery(kafka_error(KafkaError._PURGE_QUEUE), message(0, topic=topic))
        self.queue = []

    def send_offsets_to_transaction(self, offsets: list[TopicPartition], metadata: object, timeout: float) -> None:
        found = {(p.topic, p.partition): p.offset for p in offsets}
        self._called("send_offsets_to_transaction", found, metadata, timeout)
        self._cluster.pending_offsets |= found

    def commit_transaction(self, timeout: float) -> None:
        self._called("commit_transaction", timeout)
        assert not self.queue, "commit_transaction before everything is delivered"
        self._cluster.commit()

    def abort_transaction(self, timeout: float) -> None:
        self._called("abort_transaction", timeout)
        self._cluster.drop()


class FakeConsumer:
    """Owns all partitions of the cluster's log from the first poll on."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._callbacks: dict[str, Callable[[FakeConsumer, list[TopicPartition]], None]] = {}
        self._joined: bytes | None = None
        self.positions: dict[Partition, int] = {}

    def subscribe(self, topics: list[str], **callbacks: Callable[[FakeConsumer, list[TopicPartition]], None]) -> None:
        self._cluster.called("subscribe", tuple(topics))
        self._callbacks = callbacks

    def rebalance(self, kind: Literal["on_assign", "on_revoke", "on_lost"], *partitions: Partition) -> None:
        self._callbacks[kind](self, [TopicPartition(*p) for p in partitions])

    def consume(self, most: int, timeout: float) -> list[Message]:
        self._cluster.called("consume", most, timeout)
        if self._joined != self._cluster.metadata:
            # As librdkafka: another generation brings an assignment, an empty one where nothing changes; another member begins anew.
            known = self._joined is not None and parse_group_metadata(self._joined)[0]
            self._joined = self._cluster.metadata
            new = known != parse_group_metadata(self._joined)[0]
            self.rebalance("on_assign", *(self._cluster.log if new else ()))
        found: list[Message] = []
        for partition, position in self.positions.items():
            waiting = [m for m in self._cluster.log[partition] if cast("int", m.offset()) >= position]
            run = waiting[: most - len(found)]
            found += run
            if run:
                self.positions[partition] = cast("int", run[-1].offset()) + 1
        if not found:
            self._cluster.clock.passes(timeout)
        return found

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        found = {(p.topic, p.partition): p.offset for p in partitions}
        self._cluster.called("incremental_assign", found)
        self.positions |= found

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        self._cluster.called("incremental_unassign", [(p.topic, p.partition) for p in partitions])
        for p in partitions:
            self.positions.pop((p.topic, p.partition), None)

    def seek(self, target: TopicPartition) -> None:
        self._cluster.called("seek", (target.topic, target.partition), target.offset)
        self.positions[target.topic, target.partition] = target.offset

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self._cluster.called("committed", timeout)
        return [
            TopicPartition(p.topic, p.partition, self._cluster.offsets.get((p.topic, p.partition), -1001))
            for p in partitions
        ]

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = None, *, cached: bool = False
    ) -> tuple[int, int]:
        self._cluster.called(
            "get_watermark_offsets", (partition.topic, partition.partition), "cached" if cached else timeout
        )
        offsets = [cast("int", m.offset()) for m in self._cluster.log[partition.topic, partition.partition]]
        return (offsets[0], offsets[-1] + 1) if offsets else (0, 0)

    def list_topics(self, *, timeout: float) -> Any:
        self._cluster.called("list_topics", timeout)
        names = {name for name, _ in self._cluster.log}
        return SimpleNamespace(
            topics={
                name: SimpleNamespace(partitions={number: None for topic, number in self._cluster.log if topic == name})
                for name in names
            }
        )

    def memberid(self) -> str:
        return parse_group_metadata(self._cluster.metadata)[0]

    def consumer_group_metadata(self) -> bytes:
        self._cluster.called("consumer_group_metadata")
        return self._cluster.metadata

    def close(self) -> None:
        self._cluster.called("close")
