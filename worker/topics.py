"""The topics: at the start the worker's own (dead letters, receipts) are created, a missing source or sink is an error; their ids.

Also what can be said of topics, credentials and permissions when something cannot be read or written: librdkafka's errors do not name them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import structlog
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined] # its stubs export less than it does
from confluent_kafka.cimpl import NewTopic

from transforms.topic_pattern import matches
from worker.errors import BadConfigError, BrokerUnreachableError, ExitCode, StoppedError, WorkerError, error_of
from worker.logs import LibrdkafkaLog

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from worker.offsets import Partition
    from worker.settings import Settings
    from worker.watchdog import Watchdog

_log = structlog.get_logger("reckon.topics")

RECEIPT_CONFIG = {"message.timestamp.type": "LogAppendTime"}
"""Of the receipt topic: a worker whose clock is wrong could not write into it, or its receipts would expire before their time."""
DEAD_LETTER_CONFIG = {"message.timestamp.after.max.ms": str(2**63 - 1)}
"""Of the dead-letter topic: what sinks refuse for its timestamp must have a place (KIP-937; an hour from now by default)."""

_CLIENT_SETTINGS = (
    "bootstrap.servers",
    "client.",
    "security.",
    "sasl.",
    "ssl.",
    "socket.",
    "broker.",
    "enable.ssl",
    "enable.sasl",
    "https.",
    "debug",
)


DESCRIBE_S = 5.0
IDS_S = 1.0
"""Less, as records wait meanwhile, and receipts do without."""
LEFT_BEHIND_S = 3600.0
"""For a request to a group's coordinator: librdkafka aborts the process when the answer comes after the request's timeout (#4605, assertion
`eonce->refcnt > 0`). So it is its future that is given up, and the answer may come as late as it likes."""

_MAY_BE_SURROUNDINGS = (ExitCode.FATAL, ExitCode.FENCED, ExitCode.DEAD_LETTER_LIMIT)
"""Ends whose cause may be a topic that is gone: its outputs time out, and with them the transactions."""


class Topics:
    """Looks at topics through an admin client, which lives as long as the worker."""

    def __init__(self, settings: Settings, watchdog: Watchdog) -> None:
        self._settings = settings
        self._watchdog = watchdog
        self._errors: list[KafkaError] = []
        self._admin = AdminClient(
            {k: v for k, v in settings.producer.items() if k.startswith(_CLIENT_SETTINGS)},
            logger=LibrdkafkaLog(),
            error_cb=self._errors.append,
        )

    def check(self) -> dict[str, int]:
        """Check that all topics exist, and create the worker's own where they are missing. Returns source topic -> partitions.

        BrokerUnreachableError when no broker answers within start_timeout_s, BadConfigError when our credentials are refused, or naming
        every source and sink that is missing or not for us.
        """
        settings = self._settings
        existing = _existing(self._admin, settings, self._watchdog, self._errors)
        own = {settings.dead_letter_topic: DEAD_LETTER_CONFIG, settings.receipt_topic: RECEIPT_CONFIG}
        missing = [t for t in (*settings.topics, *settings.sinks) if t not in existing and t not in own]
        if missing:
            # Where the description finds nothing wrong, the topic was created just now, or is not described: missing all the same.
            wrong = self._wrong(missing)
            raise BadConfigError("\n".join(wrong.get(topic) or self._absent(topic) for topic in missing))
        sources = source_topics(settings, existing)
        if not sources:
            _log.warning("no topic matches the pattern yet", pattern=settings.pattern)
        for topic, config in own.items():
            if topic not in existing:
                _create(self._admin, topic, max((existing[t] for t in sources), default=1), config)
        return {topic: existing[topic] for topic in sources}

    def explained(self, problem: WorkerError) -> WorkerError:
        """The problem that ended the worker, with what is wrong with its topics and permissions now; itself, where nothing is."""
        settings = self._settings
        if problem.exit_code not in _MAY_BE_SURROUNDINGS:
            return problem
        lines = self.what_is_wrong()
        # The names of librdkafka's errors stand in every message of ours.
        if "GROUP_AUTHORIZATION_FAILED" in str(problem):
            lines.append(f"our user lacks the right Read on group {settings.group_id}")
        if "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in str(problem):
            lines.append(
                f"our user lacks the rights Write and Describe on transactional id {settings.transactional_id}"
            )
        return BadConfigError("\n".join([str(problem), *lines])) if lines else problem

    def what_is_wrong(self) -> list[str]:
        """A line for each of our topics that cannot be used now, as far as the broker tells."""
        settings = self._settings
        topics = (*settings.topics, *settings.sinks, settings.dead_letter_topic, settings.receipt_topic)
        return list(self._wrong(topics).values())

    def _wrong(self, topics: Collection[str]) -> dict[str, str]:
        """Topic -> why it cannot be used now, as far as the broker tells. Never asked to refuse a start that might succeed."""
        found = {}
        futures = self._admin.describe_topics(
            TopicCollection(list(dict.fromkeys(topics))), include_authorized_operations=True, request_timeout=DESCRIBE_S
        )
        for topic, future in futures.items():
            right = AclOperation.READ if topic in self._settings.topics else AclOperation.WRITE
            try:
                allowed = future.result(timeout=2 * DESCRIBE_S).authorized_operations
            except (KafkaException, TimeoutError) as exception:
                code = error_of(exception).code() if isinstance(exception, KafkaException) else None
                if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    found[topic] = self._absent(topic)
                elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    found[topic] = f"{self._named(topic)} may not be seen by our user: grant {right.name.title()}"
            else:
                if allowed and right not in allowed:
                    found[topic] = f"our user lacks the right {right.name.title()} on {self._named(topic)}"
        return found

    def _absent(self, topic: str) -> str:
        return f"{self._named(topic)} does not exist on {self._settings.bootstrap}: create it first"

    def _named(self, topic: str) -> str:
        settings = self._settings
        roles = {settings.receipt_topic: "receipt", settings.dead_letter_topic: "dead-letter"}
        return f"{roles.get(topic) or ('source' if topic in settings.topics else 'sink')} topic {topic}"

    def ids(self, topics: Collection[str]) -> dict[str, str]:
        """Topic ids (KIP-516) as Kafka prints them; topics whose id the broker does not tell are left out: receipts do without."""
        if not topics:
            return {}
        found = {}
        futures = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=IDS_S)
        for topic, future in futures.items():
            try:
                found[topic] = as_kafka_prints(future.result(timeout=2 * IDS_S).topic_id)
            except (KafkaException, TimeoutError) as exception:
                _log.warning("topic id unknown", topic=topic, reason=str(exception))
        return found

    def unassigned(self, member_id: str) -> frozenset[Partition] | None:
        """Source partitions that no member of the group has; none while it rebalances, or where it is for another member to see to them:
        one of them all. None where the broker does not tell in time.
        """
        try:
            (described,) = self._admin.describe_consumer_groups(
                [self._settings.group_id], request_timeout=LEFT_BEHIND_S
            ).values()
            group = described.result(timeout=2 * IDS_S)
            first = min((member.member_id for member in group.members), default="")
            if group.state is not ConsumerGroupState.STABLE or first != member_id:
                return frozenset()
            topics = self._admin.list_topics(timeout=IDS_S).topics
        except (KafkaException, TimeoutError) as exception:
            _log.warning("the group's assignment is unknown", reason=str(exception) or "no answer in time")
            return None
        held = {(p.topic, p.partition) for member in group.members for p in member.assignment.topic_partitions}
        ours = source_topics(self._settings, topics)
        return frozenset((name, n) for name in ours if name in topics for n in topics[name].partitions) - held


def as_kafka_prints(topic_id: object) -> str:
    """Librdkafka writes ids in plain base64, Kafka's own tools and the Java client in the alphabet for URLs."""
    return str(topic_id).translate(str.maketrans("+/", "-_")).rstrip("=")


def source_topics(settings: Settings, existing: Iterable[str]) -> tuple[str, ...]:
    """The topics that the pipeline reads, of those that exist now."""
    pattern = settings.pattern
    if pattern is None:
        return settings.topics
    return tuple(sorted(topic for topic in existing if matches(pattern, topic)))


def _existing(
    admin: AdminClient, settings: Settings, watchdog: Watchdog, errors: Sequence[KafkaError]
) -> dict[str, int]:
    """Topic -> number of partitions. ``errors``: what librdkafka tells of brokers meanwhile."""
    deadline = time.monotonic() + settings.worker.start_timeout_s
    while True:
        try:
            metadata: Any = admin.list_topics(timeout=2.0)
        except KafkaException as exception:
            admin.poll(0)  # serves librdkafka's errors and its log
            why = _why(errors, error_of(exception), settings.producer)
            if any(error.code() == KafkaError._AUTHENTICATION for error in errors):  # noqa: SLF001
                raise BadConfigError(
                    f"{settings.bootstrap} refuses our credentials: {why}\n"
                    "check security.protocol, sasl.mechanisms, sasl.username and sasl.password"
                ) from exception
            if time.monotonic() > deadline:
                raise BrokerUnreachableError(
                    f"no broker answers at {settings.bootstrap} within {settings.worker.start_timeout_s:g} s: {why}"
                ) from exception
            if watchdog.stopping:
                raise StoppedError(f"stopped while waiting for a broker at {settings.bootstrap}") from exception
            _log.info("waiting for a broker", bootstrap=settings.bootstrap, reason=why)
        else:
            return {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}


def _why(errors: Sequence[KafkaError], last: KafkaError, config: Mapping[str, Any]) -> str:
    """The last that librdkafka said of a broker. That all of them are down says nothing; when it is all that is said, connections were
    made and closed again.
    """
    said = [error.str() for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]  # noqa: SLF001
    if said:
        return said[-1]
    if errors:
        protocol = config.get("security.protocol", "plaintext")
        return f"connections are closed without a word: is security.protocol={protocol} what the broker expects?"
    return last.str()


def _create(admin: AdminClient, topic: str, partitions: int, config: Mapping[str, str]) -> None:
    """Create a topic with the broker's default replication factor; without the settings where the broker does not know them."""
    (future,) = admin.create_topics([NewTopic(topic, partitions, -1, config=dict(config))]).values()
    try:
        future.result()
    except KafkaException as exception:
        error = error_of(exception)
        if config and error.code() == KafkaError.INVALID_CONFIG:
            _create(admin, topic, partitions, {})
            return
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return  # another worker was faster
        if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
            raise BadConfigError(
                f"our user can neither see topic {topic} nor create it: where it exists, grant Write on it; else create it by hand, or "
                "grant Create too"
            ) from exception
        raise WorkerError(
            f"cannot create topic {topic}: {error.name()}: {error.str()}; create it by hand"
        ) from exception
    _log.info("created", topic=topic, partitions=partitions)
