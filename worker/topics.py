"""The topics: at the start the worker's own (dead letters, receipts) are created, a missing source or sink is an error; their ids."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from transforms.topic_pattern import matches
from worker.errors import BadConfigError, BrokerUnreachableError, StoppedError, WorkerError, error_of
from worker.logs import LibrdkafkaLog

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from worker.settings import Settings
    from worker.watchdog import Watchdog

_log = structlog.get_logger("reckon.topics")

_CLIENT_SETTINGS = (
    "bootstrap.servers",
    "client.",
    "security.",
    "sasl.",
    "ssl.",
    "socket.",
    "broker.",
    "enable.ssl",
    "debug",
)


DESCRIBE_S = 5.0


class Topics:
    """Looks at topics through an admin client, which lives as long as the worker."""

    def __init__(self, settings: Settings, watchdog: Watchdog) -> None:
        self._settings = settings
        self._watchdog = watchdog
        self._reasons: list[str] = []
        self._admin = AdminClient(
            {k: v for k, v in settings.producer.items() if k.startswith(_CLIENT_SETTINGS)},
            logger=LibrdkafkaLog(),
            error_cb=lambda error: self._reasons.append(error.str()),
        )

    def check(self) -> None:
        """Check that all topics exist, and create the worker's own where they are missing.

        BrokerUnreachableError when no broker answers within start_timeout_s, BadConfigError naming every missing source and sink.
        """
        settings = self._settings
        existing = _existing(self._admin, settings, self._watchdog, self._reasons)
        missing = [f"source topic {t} does not exist" for t in settings.topics if t not in existing]
        own = (settings.dead_letter_topic, settings.receipt_topic)
        missing += [f"sink topic {t} does not exist" for t in settings.sinks if t not in existing and t not in own]
        if missing:
            raise BadConfigError("\n".join(f"{what} on {settings.bootstrap}: create it first" for what in missing))
        sources = source_topics(settings, existing)
        if not sources:
            _log.warning("no topic matches the pattern yet", pattern=settings.pattern)
        for topic in own:
            if topic not in existing:
                _create(self._admin, topic, partitions=max((existing[t] for t in sources), default=1))

    def ids(self, topics: Collection[str]) -> dict[str, str]:
        """Topic ids (KIP-516) as Kafka prints them; topics whose id the broker does not tell are left out: receipts do without."""
        if not topics:
            return {}
        found = {}
        futures = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=DESCRIBE_S)
        for topic, future in futures.items():
            try:
                found[topic] = as_kafka_prints(future.result(timeout=2 * DESCRIBE_S).topic_id)
            except (KafkaException, TimeoutError) as exception:
                _log.warning("topic id unknown", topic=topic, reason=str(exception))
        return found


def as_kafka_prints(topic_id: object) -> str:
    """Librdkafka writes ids in plain base64, Kafka's own tools and the Java client in the alphabet for URLs."""
    return str(topic_id).translate(str.maketrans("+/", "-_")).rstrip("=")


def source_topics(settings: Settings, existing: Iterable[str]) -> tuple[str, ...]:
    """The topics that the pipeline reads, of those that exist now."""
    pattern = settings.pattern
    if pattern is None:
        return settings.topics
    return tuple(sorted(topic for topic in existing if matches(pattern, topic)))


def _existing(admin: AdminClient, settings: Settings, watchdog: Watchdog, reasons: list[str]) -> dict[str, int]:
    """Topic -> number of partitions."""
    deadline = time.monotonic() + settings.worker.start_timeout_s
    while True:
        try:
            metadata: Any = admin.list_topics(timeout=2.0)
        except KafkaException as exception:
            if time.monotonic() > deadline:
                admin.poll(0)
                why = reasons[-1] if reasons else error_of(exception).str()
                raise BrokerUnreachableError(
                    f"no broker answers at {settings.bootstrap} within {settings.worker.start_timeout_s:g} s: {why}"
                ) from exception
            if watchdog.stopping:
                raise StoppedError(f"stopped while waiting for a broker at {settings.bootstrap}") from exception
            _log.info("waiting for a broker", bootstrap=settings.bootstrap)
        else:
            return {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}


def _create(admin: AdminClient, topic: str, partitions: int) -> None:
    """Create a topic with the broker's default replication factor."""
    (future,) = admin.create_topics([NewTopic(topic, partitions, -1)]).values()
    try:
        future.result()
    except KafkaException as exception:
        error = error_of(exception)
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return  # another worker was faster
        raise WorkerError(
            f"cannot create topic {topic}: {error.name()}: {error.str()}; create it by hand"
        ) from exception
    _log.info("created", topic=topic, partitions=partitions)
