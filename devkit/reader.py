"""An independent reader: whole topics, from their beginning to the ends known at the start, without a consumer group.

Every offset asked for and every record read goes with an explicit isolation level: read_committed sees what a careful consumer sees,
read_uncommitted also the copies of open and aborted transactions.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Self, TypeAlias, cast

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # its stubs forget it

from devkit.admin import admin_client
from devkit.errors import DevkitError
from devkit.verify import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from devkit.verify import Partition

REQUEST_TIMEOUT_S = 60.0
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_MOVING = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.OFFSET_NOT_AVAILABLE)
"""What a broker says of a partition while it takes it over, or has just been told of it: ask again."""
_CHUNK = 10_000
_LEVELS = {True: "read_committed", False: "read_uncommitted"}

HeaderList: TypeAlias = "list[tuple[str, str | bytes | None]]"


class ReadError(DevkitError):
    """Something could not be read, or not in time: the message names what."""


class Reader:
    """Reads topics and offsets of one cluster. Holds one client for the offsets, so that asking again costs milliseconds.

    A context manager, which lets go of that client: it must be gone before the broker is. To destroy a client whose broker has died can
    block for ever (librdkafka #4519), and the frames of a raised error would keep it until then.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = admin_client(bootstrap)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        del self._admin

    def partitions_of(self, topics: Iterable[str]) -> list[Partition]:
        """All partitions of these topics, sorted. ReadError for a topic that does not exist."""
        found: list[Partition] = []
        for topic in topics:
            metadata = self._admin.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics[topic]
            if metadata.error is not None:
                raise ReadError(f"topic {topic} on {self._bootstrap}: {metadata.error}")
            found += [(topic, number) for number in metadata.partitions]
        return sorted(found)

    def topics(self) -> set[str]:
        """The names of all topics, the brokers' own ones, too."""
        return set(self._admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics)

    def begin_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset that is still in the log, per partition."""
        return self._list_offsets(partitions, _EARLIEST, IsolationLevel.READ_UNCOMMITTED)

    def end_offsets(self, partitions: Iterable[Partition], *, committed: bool = True) -> dict[Partition, int]:
        """The last stable offset per partition, or the high watermark where ``committed`` is False.

        The last stable offset is the first offset of the earliest open transaction; the high watermark where none is open.
        """
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        return self._list_offsets(partitions, _LATEST, level)

    def _list_offsets(
        self, partitions: Iterable[Partition], spec: OffsetSpec, level: IsolationLevel
    ) -> dict[Partition, int]:
        asked = {TopicPartition(*partition): spec for partition in partitions}
        if not asked:
            return {}
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            futures = self._admin.list_offsets(asked, isolation_level=level, request_timeout=REQUEST_TIMEOUT_S)
            try:
                results = {tp: future.result(2 * REQUEST_TIMEOUT_S) for tp, future in futures.items()}
                return {(tp.topic, tp.partition): result.offset for tp, result in results.items()}
            except KafkaException as exception:
                if exception.args[0].code() not in _MOVING or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def await_stable(self, topics: Iterable[str], timeout_s: float = 60.0) -> None:
        """Wait until all that is in these topics now can be read: until each transaction that is open in them is over. ReadError, with
        the partitions that one still holds back, when it lasts.

        A commit is answered when it is decided, before its markers are written, and each partition has its own (KIP-98): the group's
        offsets, or a worker that has ended with 0, say nothing of when readers see the outputs.
        """
        partitions = self.partitions_of(topics)
        deadline = time.monotonic() + timeout_s
        # Once, and first: a stable offset that has come up to it left nothing open below it, whatever is written behind it meanwhile.
        high = self.end_offsets(partitions, committed=False)
        while True:
            stable = self.end_offsets(partitions)
            held = sorted(p for p in partitions if stable[p] < high[p])
            if not held:
                return
            if time.monotonic() > deadline:
                raise ReadError(f"a transaction is open for longer than {timeout_s:g} s in {held}")
            time.sleep(0.05)

    def committed_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The group's committed offsets; a partition without one is left out. Joins no group.

        A consumer's call and not the AdminClient's: the latter was seen to crash on a broker that was still making its offsets topic.
        With read_uncommitted, because otherwise it waits for open transactions that have offsets (UNSTABLE_OFFSET_COMMIT, librdkafka
        #3265); what it returns is committed all the same.
        """
        with _consumer(self._bootstrap, group, "read_uncommitted") as consumer:
            asked = [TopicPartition(*partition) for partition in partitions]
            found = consumer.committed(asked, timeout=REQUEST_TIMEOUT_S)
        for each in found:
            if each.error is not None:
                raise ReadError(f"committed offset of group {group}, {each.topic}/{each.partition}: {each.error}")
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def assignment(self, group: str) -> dict[str, frozenset[Partition]]:
        """Partitions per client.id of a group; empty while the group is not stable."""
        (future,) = self._admin.describe_consumer_groups([group], request_timeout=REQUEST_TIMEOUT_S).values()
        description = future.result(2 * REQUEST_TIMEOUT_S)
        if description.state.name != "STABLE":
            return {}
        return {
            member.client_id: frozenset((tp.topic, tp.partition) for tp in member.assignment.topic_partitions)
            for member in description.members
        }

    def read(
        self,
        topics: Iterable[str],
        *,
        committed: bool = True,
        starts: Mapping[Partition, int] | None = None,
        timeout_s: float = 60.0,
    ) -> list[StoredRecord]:
        """All records of these topics up to the ends as they are now; of each partition in the order of offsets.

        ``starts``: offsets to begin at instead of the log's beginning, for some or all partitions. ReadError when it takes longer
        than ``timeout_s`` or the broker reports an error.
        """
        partitions = self.partitions_of(topics)
        begins = self.begin_offsets(partitions) | {p: s for p, s in (starts or {}).items() if p in partitions}
        ends = {p: end for p, end in self.end_offsets(partitions, committed=committed).items() if end > begins[p]}
        with _consumer(self._bootstrap, "reckon-verifier", _LEVELS[committed]) as consumer:
            consumer.assign([TopicPartition(*partition, begins[partition]) for partition in ends])
            return _read_to(consumer, ends, timeout_s)


@contextlib.contextmanager
def _consumer(bootstrap: str, group: str, isolation: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            # Not the default second, for which librdkafka would stop whenever its queue is full.
            "fetch.queue.backoff.ms": 5,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _read_to(consumer: Consumer, ends: dict[Partition, int], timeout_s: float) -> list[StoredRecord]:
    """Until every end was passed: by a record or, where markers or aborted records stand last, by the end-of-partition event."""
    left = dict(ends)
    records: list[StoredRecord] = []
    deadline = time.monotonic() + timeout_s
    while left:
        if time.monotonic() > deadline:
            raise ReadError(f"the ends were not reached within {timeout_s:g} s; left: {left}; read: {len(records)}")
        for message in consumer.consume(_CHUNK, 0.2):
            error = message.error()
            if error is not None:
                _reached(left, message, error)
                continue
            record = _stored(message)
            end = ends[record.topic, record.partition]
            if record.offset < end:
                records.append(record)
            if record.offset >= end - 1:
                left.pop((record.topic, record.partition), None)
    return records


def _reached(left: dict[Partition, int], message: Message, error: KafkaError) -> None:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - the public name of librdkafka's local errors
        if error.retriable():
            return
        raise ReadError(f"{topic}/{partition}: {error}") from KafkaException(error)
    if topic is not None and partition is not None and (offset or 0) >= left.get((topic, partition), 0):
        left.pop((topic, partition), None)


def _stored(message: Message) -> StoredRecord:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    headers = cast("HeaderList", message.headers() or ())  # a list on consumed messages
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return StoredRecord(
        topic,
        partition,
        offset,
        message.key(),
        message.value(),
        tuple((name, value.encode() if isinstance(value, str) else value) for name, value in headers),
        message.timestamp()[1],
    )


def read(bootstrap: str, topics: Iterable[str], *, committed: bool = True) -> list[StoredRecord]:
    """`Reader.read`, once."""
    with Reader(bootstrap) as reader:
        return reader.read(topics, committed=committed)


def committed_offsets(bootstrap: str, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """`Reader.committed_offsets`, once."""
    with Reader(bootstrap) as reader:
        return reader.committed_offsets(group, partitions)
