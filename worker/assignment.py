"""Where a newly assigned partition is read from."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from worker.errors import StoppedError, WorkerError, error_of, fencing_in, is_hopeless, is_passing
from worker.logs import Limiter
from worker.topics import source_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from confluent_kafka import Consumer

    from worker.offsets import Partition
    from worker.settings import Settings
    from worker.watchdog import Watchdog

    T = TypeVar("T")

CALL_S = 5.0
"""One attempt. ``committed()`` blocks while a transaction with offsets of the group is pending (UNSTABLE_OFFSET_COMMIT, #3265)."""

_log = structlog.get_logger("reckon.assignment")


def ends_of_new_topics(consumer: Consumer, settings: Settings, watchdog: Watchdog) -> dict[Partition, int]:
    """Before the group is joined, with ``start: latest``: the ends of all partitions of topics that the group has committed nothing of.

    Asked before the join, because members that begin a new group together join it together: whoever looked only when its partitions
    came could find the pins of a quicker one, and take a topic for known whose history it was told to leave out.
    """
    ends: dict[Partition, int] = {}
    if settings.start != "latest":
        return ends
    for partitions in _source_partitions(consumer, settings, watchdog):
        if not committed_offsets(consumer, partitions, settings, watchdog):
            ends |= {p: _watermarks(consumer, p, settings, watchdog)[1] for p in partitions}
    return ends


def ends_of_sources(consumer: Consumer, settings: Settings, watchdog: Watchdog) -> dict[Partition, int]:
    """The end of every partition of the source topics now, 0 where it holds nothing. A read_committed consumer's watermarks are last
    stable offsets.
    """
    found = _source_partitions(consumer, settings, watchdog)
    marks = {p: _watermarks(consumer, p, settings, watchdog) for partitions in found for p in partitions}
    return {p: high if high > low else 0 for p, (low, high) in marks.items()}


def _source_partitions(consumer: Consumer, settings: Settings, watchdog: Watchdog) -> list[list[Partition]]:
    """The partitions of each source topic that exists now."""

    def ask() -> list[list[Partition]]:
        topics = consumer.list_topics(timeout=CALL_S).topics
        found = source_topics(settings, topics)
        if any(topic not in topics for topic in found):
            # It was there a moment ago; this broker has not heard of it yet.
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        return [[(topic, number) for number in topics[topic].partitions] for topic in found]

    return _patiently("read metadata", ask, settings, watchdog)


def starting_offsets(
    consumer: Consumer,
    partitions: Sequence[Partition],
    new_topics: Mapping[Partition, int],
    settings: Settings,
    watchdog: Watchdog,
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """(start of every partition, those starts that are to be pinned by a commit).

    The group's committed offset; without one, what ``ends_of_new_topics`` found, and else the beginning of the partition. So a partition
    added to a topic later is read from its beginning whatever ``start`` says (R5). An end is pinned at once, or a crash before the first
    commit would skip what came in between.
    """
    if not partitions:
        return {}, {}
    starts = committed_offsets(consumer, partitions, settings, watchdog)
    pins = {p: new_topics[p] for p in partitions if p not in starts and p in new_topics}
    beginnings = {
        p: _watermarks(consumer, p, settings, watchdog)[0] for p in partitions if p not in starts and p not in pins
    }
    return starts | pins | beginnings, pins


def committed_offsets(
    consumer: Consumer, partitions: Iterable[Partition], settings: Settings, watchdog: Watchdog
) -> dict[Partition, int]:
    """The group's committed offsets, stable ones: pending transactions are waited for (KIP-447). Partitions without one are left out."""
    wanted = [TopicPartition(*p) for p in partitions]
    found: list[TopicPartition] = _patiently(
        "read committed offsets", lambda: _checked(consumer.committed(wanted, CALL_S)), settings, watchdog
    )
    return {(p.topic, p.partition): p.offset for p in found if p.offset >= 0}


def _watermarks(consumer: Consumer, partition: Partition, settings: Settings, watchdog: Watchdog) -> tuple[int, int]:
    call = partial(consumer.get_watermark_offsets, TopicPartition(*partition), CALL_S)
    return _patiently("read watermarks", call, settings, watchdog)


def _checked(partitions: list[TopicPartition]) -> list[TopicPartition]:
    for partition in partitions:
        if partition.error is not None:
            raise KafkaException(partition.error)
    return partitions


def _patiently(operation: str, call: Callable[[], T], settings: Settings, watchdog: Watchdog) -> T:
    """Call until it answers. What does not pass by itself is tried for half of max.poll.interval.ms: longer and the group would take the
    partitions away. While brokers are away there is no group that could, and they may be for hours.
    """
    deadline = time.monotonic() + settings.max_poll_interval_s / 2
    limiter = Limiter()
    while True:
        try:
            with watchdog.guard(operation):
                return call()
        except KafkaException as exception:
            error = error_of(exception)
            if (fenced := fencing_in(error)) is not None:
                raise fenced from exception
            fatal = error.fatal() or error.code() == KafkaError._FATAL  # noqa: SLF001 - how a consumer's comes
            too_late = time.monotonic() > deadline and not is_passing(error)
            if too_late or fatal or is_hopeless(error):
                raise WorkerError(f"cannot {operation}: {error.name()}: {error.str()}") from exception
            if watchdog.stopping:
                raise StoppedError(f"stopped while waiting to {operation}: {error.str()}") from exception
            if (more := limiter.passes(error.str())) is not None:
                _log.warning("waiting", operation=operation, error=error.name(), reason=error.str(), **more)
            time.sleep(0.1)
