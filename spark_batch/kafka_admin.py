"""Kafka's own Java Admin client, through the JVM that Spark runs anyway: the only file that talks to it.

So the audit needs no second Kafka client, and reaches the cluster with the very options of Spark's source. Every call waits for its answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from spark_batch.errors import CannotJudgeError, CannotStartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from spark_batch.model import Partition

_ADMIN = "org.apache.kafka.clients.admin"
_TIMEOUT_MS = 30_000
_TOGETHER_S = 5.0
_POLL_S = 0.02
_OFFSETS_TOPIC = "__consumer_offsets"
_UNREACHABLE = frozenset({"TimeoutException", "ConfigException", "BootstrapResolutionException"})


@dataclass(frozen=True, slots=True)
class Topic:
    id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class OpenProducer:
    """A producer with an open transaction in one partition, as the partition's leader knows it (DescribeProducers, KIP-664)."""

    producer_id: int
    epoch: int
    start_offset: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction as its coordinator knows it (ListTransactions and DescribeTransactions, KIP-664)."""

    transactional_id: str
    state: str
    epoch: int
    partitions: frozenset[Partition]
    producer_id: int = -1
    since_ms: int = -1
    """When it began, milliseconds since the epoch; -1: none has."""


class AdminError(CannotJudgeError):
    """The cluster refused a request; `cause` is the simple name of Kafka's exception."""

    def __init__(self, what: str, cause: str, message: str) -> None:
        super().__init__(f"cannot {what}: {cause}: {message}")
        self.cause = cause


class KafkaAdmin:
    """A context manager over one Admin client. Offsets are of [start, end): the log start, and the offset after the last one."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - pyspark's only way to the JVM
        self._jvm = jvm
        self._package: Any = self._class(_ADMIN)
        self._bootstrap = options["bootstrap.servers"]
        properties = jvm.java.util.Properties()
        timeouts = {"default.api.timeout.ms": str(_TIMEOUT_MS), "request.timeout.ms": str(_TIMEOUT_MS // 2)}
        for name, value in {**timeouts, **options}.items():
            properties.setProperty(name, value)
        self._admin: Any = self._call("make a client of the cluster", lambda: self._package.Admin.create(properties))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._admin.close()

    def names(self) -> set[str]:
        """Names of all topics that may be seen, internal ones left out."""
        return set(self._call("list the topics", self._admin.listTopics().names().get))

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """Id and number of partitions of each topic that exists."""
        futures = self._admin.describeTopics(self._list(names)).topicNameValues()
        found = {}
        for name in names:
            try:
                about = self._call(f"describe topic {name}", futures.get(name).get)
            except AdminError as error:
                if error.cause == "UnknownTopicOrPartitionException":
                    continue
                raise
            found[name] = Topic(about.topicId().toString(), about.partitions().size())
        return found

    def compacted(self, topics: Iterable[str]) -> frozenset[str]:
        """Those topics whose cleanup.policy contains "compact"."""
        kind = self._class("org.apache.kafka.common.config.ConfigResource.Type").TOPIC
        resource = self._class("org.apache.kafka.common.config.ConfigResource")
        resources = {topic: resource(kind, topic) for topic in topics}
        configs = self._call(
            "read the topics' cleanup.policy (needs DescribeConfigs)",
            self._admin.describeConfigs(self._list(resources.values())).all().get,
        )
        return frozenset(
            topic for topic, key in resources.items() if "compact" in configs.get(key).get("cleanup.policy").value()
        )

    def committed(
        self, group: str, partitions: Iterable[Partition], wait_s: float = _TIMEOUT_MS / 1000
    ) -> dict[Partition, int]:
        """The group's committed offsets; a partition without one is absent.

        Stable ones (KIP-447): of a partition whose offset is in a transaction that has not ended there is no answer, and Java's Admin
        leaves it out in silence (ListConsumerGroupOffsetsHandler). So we ask until there is one for each: for all of them together, so
        that all offsets of a transaction are there or none; after some seconds, because among many workers some transaction may always
        be open, for the missing ones alone. AdminError names those that stay open for `wait_s` seconds, and their transactions.
        """
        wanted, began = set(partitions), time.monotonic()
        found = self._stable(group, wanted)
        while missing := wanted - found.keys():
            waited_s = time.monotonic() - began
            if waited_s > wait_s:
                names = ", ".join(f"{topic}[{number}]" for topic, number in sorted(missing))
                why = f"a transaction that commits offsets of {names} has not ended for {waited_s:.0f} s: {self._committing(group)}"
                found |= self._stable(group, missing)
                if missing <= found.keys():  # it has, while its name was asked for
                    continue
                raise AdminError(f"read the offsets of group {group}", "UnstableOffsetCommitException", why)
            time.sleep(_POLL_S)
            found = self._stable(group, wanted) if waited_s < _TOGETHER_S else found | self._stable(group, missing)
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def _committing(self, group: str) -> str:
        """A sentence that names the transactions over the partition of offsets in which the group's are kept (KIP-664)."""
        try:
            number = abs(self._jvm.java.util.Objects.hashCode(group)) % 2**31
            kept = self.topics([_OFFSETS_TOPIC]).get(_OFFSETS_TOPIC)
            if kept is None:
                return f"which one cannot be told (that needs Describe on {_OFFSETS_TOPIC})"
            listed = self._call("list transactions", self._admin.listTransactions().all().get)
            found = self._transactions([it.transactionalId() for it in listed])
        except CannotJudgeError as error:
            return f"which one cannot be told ({error})"
        open_ones = [
            f"producer {it.producer_id}, epoch {it.epoch}, transactional id {it.transactional_id}, since "
            f"{datetime.fromtimestamp(it.since_ms / 1000, UTC).isoformat(timespec='seconds')}, its coordinator says {it.state}"
            for it in sorted(found, key=lambda each: each.since_ms)
            if (_OFFSETS_TOPIC, number % kept.partitions) in it.partitions  # as GroupMetadataManager.partitionFor
        ]
        unseen = "no coordinator lists one: it hangs, or may not be seen (needs Describe on its transactional id)"
        return "; ".join(open_ones) or unseen

    def _stable(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int | None]:
        """Offset, or None where none was ever committed; a partition whose offset is about to change is absent."""
        spec = self._package.ListConsumerGroupOffsetsSpec().topicPartitions(
            self._list(map(self._partition, partitions))
        )
        options = self._package.ListConsumerGroupOffsetsOptions().requireStable(True)
        specs = self._jvm.java.util.HashMap()
        specs.put(group, spec)
        asked = self._admin.listConsumerGroupOffsets(specs, options).partitionsToOffsetAndMetadata(group)
        offsets = self._call(f"read the offsets of group {group}", asked.get)
        return {
            self._key(entry.getKey()): None if entry.getValue() is None else entry.getValue().offset()
            for entry in offsets.entrySet()
        }

    def starts(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Log start offsets."""
        return self._offsets(partitions, self._package.OffsetSpec.earliest(), committed=False)

    def ends(self, partitions: Iterable[Partition], *, committed: bool) -> dict[Partition, int]:
        """High watermarks; with `committed` last stable offsets: below them every transaction has ended (A4)."""
        return self._offsets(partitions, self._package.OffsetSpec.latest(), committed=committed)

    def at(self, partitions: Iterable[Partition], time_ms: int) -> dict[Partition, int]:
        """The first offset with a timestamp at or after a time; a partition without one is absent."""
        found = self._offsets(partitions, self._package.OffsetSpec.forTimestamp(time_ms), committed=False)
        return {partition: offset for partition, offset in found.items() if offset >= 0}

    def _offsets(self, partitions: Iterable[Partition], spec: Any, *, committed: bool) -> dict[Partition, int]:
        levels = self._class("org.apache.kafka.common.IsolationLevel")
        options = self._package.ListOffsetsOptions(levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED)
        specs = self._jvm.java.util.HashMap()
        for partition in partitions:
            specs.put(self._partition(partition), spec)
        found = self._call("list offsets", self._admin.listOffsets(specs, options).all().get)
        return {self._key(entry.getKey()): entry.getValue().offset() for entry in found.entrySet()}

    def open_producers(self, partitions: Iterable[Partition]) -> dict[Partition, list[OpenProducer]]:
        """Producers with an open transaction, per partition."""
        asked = {partition: self._partition(partition) for partition in partitions}
        result = self._admin.describeProducers(self._list(asked.values()))
        found: dict[Partition, list[OpenProducer]] = {}
        for partition, key in asked.items():
            state = self._call(f"describe the producers of {partition}", result.partitionResult(key).get)
            found[partition] = [
                OpenProducer(
                    producer.producerId(),
                    producer.producerEpoch(),
                    producer.currentTransactionStartOffset().getAsLong(),
                    producer.lastTimestamp(),
                )
                for producer in state.activeProducers()
                if producer.currentTransactionStartOffset().isPresent()
            ]
        return found

    def transactions(self, producer_ids: Iterable[int]) -> dict[int, Transaction]:
        """What the coordinators know of these producers; a producer that none lists is absent."""
        wanted = frozenset(producer_ids)
        # Unfiltered: py4j unboxes every Long, so a collection of them, as filterProducerIds wants it, cannot be made from here.
        listed = self._call("list transactions", self._admin.listTransactions().all().get)
        found = self._transactions([it.transactionalId() for it in listed if it.producerId() in wanted])
        return {each.producer_id: each for each in found}

    def _transactions(self, names: Sequence[str]) -> list[Transaction]:
        result = self._admin.describeTransactions(self._list(names))
        found = []
        for name in names:
            try:
                about = self._call(f"describe transaction {name}", result.description(name).get)
            except AdminError as error:
                if error.cause == "TransactionalIdNotFoundException":  # expired meanwhile
                    continue
                raise
            partitions = frozenset(map(self._key, about.topicPartitions()))
            began = about.transactionStartTimeMs()
            found.append(
                Transaction(
                    name,
                    about.state().toString(),
                    about.producerEpoch(),
                    partitions,
                    about.producerId(),
                    began.getAsLong() if began.isPresent() else -1,
                )
            )
        return found

    def _partition(self, partition: Partition) -> Any:
        return self._class("org.apache.kafka.common.TopicPartition")(*partition)

    @staticmethod
    def _key(partition: Any) -> Partition:
        return partition.topic(), partition.partition()

    def _class(self, name: str) -> Any:
        found = self._jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def _list(self, items: Iterable[object]) -> Any:
        found = self._jvm.java.util.ArrayList()
        for item in items:
            found.add(item)
        return found

    def _call(self, what: str, call: Callable[[], Any]) -> Any:
        """What `call` returns; AdminError for what Kafka says, CannotStartError where there is no broker."""
        try:
            return call()
        except Py4JJavaError as error:
            thrown = error.java_exception
            while thrown.getCause() is not None:
                thrown = thrown.getCause()
            cause, message = thrown.getClass().getSimpleName(), str(thrown.getMessage())
        if cause in _UNREACHABLE:
            raise CannotStartError(f"no answer from {self._bootstrap}: cannot {what}: {cause}: {message}")
        raise AdminError(what, cause, message)
