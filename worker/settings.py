"""Every setting of a run, where it came from, and the ones that are the guarantee and cannot be changed.

Precedence, the strongest first: environment, pipeline file, default. Environment (twelve factors, III): worker settings
as ``RECKON_<NAME>``, client settings as ``RECKON_KAFKA_<NAME>`` (both clients), ``RECKON_CONSUMER_<NAME>``, ``RECKON_PRODUCER_<NAME>``
with the dots of librdkafka's name as underscores: ``RECKON_KAFKA_BOOTSTRAP_SERVERS``.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from worker.consistency import plain, problems_of
from worker.environment import PREFIX, client_settings
from worker.errors import BadConfigError
from worker.pinned import ALIASES, PINNED, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transforms.loading import LoadedPipeline
    from transforms.spec import Pipeline

Origin = Literal["default", "pipeline file", "environment", "pinned"]
ClientConfig = dict[str, Any]

STATIC_ID = "group.instance.id"
"""Set, the membership in the group is static (KIP-345)."""
MASK = "********"
_SECRET = re.compile(r"pas+w|secret|token|jaas|key\.pem|oauthbearer\.config|sasl\.user|private", re.IGNORECASE)

_CONNECTION_DEFAULTS: ClientConfig = {
    # A broker that was restarted is tried again after a second at most; librdkafka waits up to ten.
    "reconnect.backoff.max.ms": 1_000,
    # As in Java's clients: a host that is gone answers nothing, and librdkafka would wait for half a minute.
    "socket.connection.setup.timeout.ms": 10_000,
}
_CONSUMER_DEFAULTS: ClientConfig = {
    **_CONNECTION_DEFAULTS,
    "group.protocol": "classic",
    "max.poll.interval.ms": 300_000,
    # librdkafka's 1000 stops fetching for a second whenever its queue is full: it alone halves the throughput (DECISIONS.md).
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 65_536,
    # How soon new partitions, and new topics that a pattern takes, are found: librdkafka's five minutes are long for people who wait.
    "topic.metadata.refresh.interval.ms": 30_000,
    # Per partition. librdkafka's 100,000 fill the processor's caches with records that are not needed yet.
    "queued.min.messages": 10_000,
}
_CLASSIC_DEFAULTS: ClientConfig = {
    "session.timeout.ms": 45_000,
    # How soon a member knows of a rebalance. Partitions that move need two: librdkafka's three seconds would be six.
    "heartbeat.interval.ms": 1_000,
    "partition.assignment.strategy": "cooperative-sticky",
}
_PRODUCER_DEFAULTS: ClientConfig = {
    **_CONNECTION_DEFAULTS,
    # After a re-bootstrap (KIP-899) librdkafka 2.16 may find no coordinator any more ("No brokers available for Transactions"), and
    # send_offsets_to_transaction hangs. What a re-bootstrap is for, a fresh producer does: it begins with bootstrap.servers.
    "metadata.recovery.strategy": "none",
    "transaction.timeout.ms": 30_000,
    "compression.type": "lz4",
    "linger.ms": 5,
    # Java's and Go's clients put a key where this does; librdkafka's own default differs.
    "partitioner": "murmur2_random",
    "queue.buffering.max.kbytes": 65_536,
    "queue.buffering.max.messages": 500_000,
}


class WorkerSettings(BaseSettings):
    """What the worker itself takes from the environment. Times with their unit in the name."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    instance_id: str = Field(default_factory=socket.gethostname, pattern=r"^[A-Za-z0-9._-]{1,128}$")
    """Unique among the live workers of a pipeline, the same again after a restart (T6). A StatefulSet's pod name is both."""
    group_id: str | None = None
    lineage: bool | None = None
    transaction_records: int | None = Field(default=None, ge=1)
    transaction_bytes: int | None = Field(default=None, ge=1)
    transaction_interval_ms: int | None = Field(default=None, ge=1)
    grace_period_s: float = Field(default=25.0, gt=0)
    """From SIGTERM to the end: below Kubernetes' terminationGracePeriodSeconds, which is 30 by default."""
    start_timeout_s: float = Field(default=30.0, gt=0)
    """How long to wait for a broker at the start."""
    record_budget_ms: int = Field(default=5_000, ge=10)
    """The longest that the transform of one record may take; what takes longer becomes a dead letter (E9)."""
    log_format: Literal["auto", "console", "json"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class TransactionLimits:
    """A transaction is committed when one of these is reached, or at once when the source has nothing more waiting."""

    records: int
    bytes: int
    interval_ms: int


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one run, resolved and checked."""

    pipeline: str
    instance_id: str
    group_id: str
    topics: tuple[str, ...]
    """Empty where there is a pattern."""
    pattern: str | None
    """In their place: all topics whose names match (librdkafka's `^...`)."""
    start: str
    sinks: tuple[str, ...]
    dead_letter_topic: str
    receipt_topic: str
    lineage: bool
    transaction: TransactionLimits
    worker: WorkerSettings
    consumer: ClientConfig
    producer: ClientConfig
    origins: dict[str, Origin]
    """Where each setting came from: "consumer.session.timeout.ms" -> "default"."""

    @property
    def transactional_id(self) -> str:
        return str(self.producer["transactional.id"])

    @property
    def bootstrap(self) -> str:
        return str(self.producer["bootstrap.servers"])

    @property
    def transaction_timeout_s(self) -> float:
        return float(self.producer["transaction.timeout.ms"]) / 1000

    @property
    def max_poll_interval_s(self) -> float:
        return float(self.consumer["max.poll.interval.ms"]) / 1000


def resolve(loaded: LoadedPipeline) -> Settings:
    """All settings of a run. BadConfigError, with every problem in it, where they cannot keep the guarantees."""
    spec = loaded.spec
    worker = _worker_settings()
    problems: list[str] = []
    origins: dict[str, Origin] = {}
    # A slash, which neither of the two can contain: with a hyphen shop-orders and 0 would be shop and orders-0, and fence each other.
    transactional_id = f"{spec.name}/{worker.instance_id}"
    group_id = worker.group_id or spec.group

    def client(kind: str, defaults: ClientConfig, own: ClientConfig) -> ClientConfig:
        config: ClientConfig = {}
        layers: list[tuple[Origin, Mapping[str, Any]]] = [
            ("default", {"bootstrap.servers": "127.0.0.1:9092", "client.id": transactional_id, **defaults}),
            ("pipeline file", {**spec.kafka, **getattr(spec, kind)}),
            ("environment", {**client_settings("KAFKA_"), **client_settings(f"{kind.upper()}_")}),
        ]
        for origin, layer in layers:
            for given_name, value in layer.items():
                name = ALIASES.get(given_name, given_name)
                refused = refusal(kind, given_name, value, origin)
                if refused is not None:
                    problems.append(f"{kind}: {refused}")
                else:
                    config[name] = value
                    origins[f"{kind}.{name}"] = origin
        for name, value in {**PINNED[kind], **own}.items():
            config[name] = value
            origins[f"{kind}.{name}"] = "pinned"
        return config

    given = {**spec.kafka, **spec.consumer, **client_settings("KAFKA_"), **client_settings("CONSUMER_")}
    kip848 = plain(given.get("group.protocol", "")) == "consumer"
    consumer = client(
        "consumer",
        _CONSUMER_DEFAULTS | ({} if kip848 else {**_CLASSIC_DEFAULTS, STATIC_ID: worker.instance_id}),
        {"group.id": group_id},
    )
    if not consumer.get(STATIC_ID):
        consumer.pop(STATIC_ID, None)  # set to nothing: dynamic membership
    producer = client("producer", _PRODUCER_DEFAULTS, {"transactional.id": transactional_id})
    limits = spec.transaction
    transaction = TransactionLimits(
        records=worker.transaction_records or limits.records,
        bytes=worker.transaction_bytes or limits.bytes,
        interval_ms=worker.transaction_interval_ms or limits.interval_ms,
    )
    problems += problems_of(consumer, producer, transaction, worker)
    origins |= _origins_in_pipeline(spec, worker)
    if problems:
        raise BadConfigError("\n".join(f"{loaded.path}: {problem}" for problem in problems))
    return Settings(
        pipeline=spec.name,
        instance_id=worker.instance_id,
        group_id=group_id,
        topics=tuple(spec.source.topics),
        pattern=spec.source.pattern,
        start=spec.source.start,
        sinks=loaded.transform.topics,
        dead_letter_topic=spec.dead_letter_topic,
        receipt_topic=spec.receipts_topic,
        lineage=spec.lineage if worker.lineage is None else worker.lineage,
        transaction=transaction,
        worker=worker,
        consumer=consumer,
        producer=producer,
        origins=origins,
    )


def _origins_in_pipeline(spec: Pipeline, worker: WorkerSettings) -> dict[str, Origin]:
    """Of what the pipeline file has a key for and the environment a variable."""
    in_file = spec.model_fields_set | {f"transaction.{name}" for name in spec.transaction.model_fields_set}
    names = ["group_id", "lineage", *(f"transaction.{name}" for name in type(spec.transaction).model_fields)]
    return {
        f"pipeline.{name}": "environment"
        if getattr(worker, name.replace(".", "_")) is not None
        else "pipeline file"
        if name in in_file
        else "default"
        for name in names
    }


def masked(settings: Settings) -> list[tuple[str, str, str]]:
    """(name, value, where it came from) of every setting, secrets masked, sorted: what ``reckon run --print-config`` shows."""
    rows = [
        (f"worker.{name}", str(value), "environment" if name in settings.worker.model_fields_set else "default")
        for name, value in settings.worker.model_dump().items()
        if name not in ("group_id", "lineage") and not name.startswith("transaction_")  # shown as the pipeline's below
    ]
    for kind, config in (("consumer", settings.consumer), ("producer", settings.producer)):
        rows += [
            (f"{kind}.{name}", MASK if is_secret(name) else plain(value), settings.origins[f"{kind}.{name}"])
            for name, value in config.items()
        ]
    limits = settings.transaction
    pipeline: dict[str, object] = {
        "group_id": settings.group_id,
        "lineage": settings.lineage,
        "transaction.records": limits.records,
        "transaction.bytes": limits.bytes,
        "transaction.interval_ms": limits.interval_ms,
    }
    rows += [
        (f"pipeline.{name}", plain(value), settings.origins[f"pipeline.{name}"]) for name, value in pipeline.items()
    ]
    return sorted(rows)


def is_secret(name: str) -> bool:
    """Whether a setting of this name may hold a secret."""
    return _SECRET.search(name) is not None


def _worker_settings() -> WorkerSettings:
    try:
        return WorkerSettings()
    except ValidationError as error:
        raise BadConfigError(
            "\n".join(
                f"{PREFIX}{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg']}"
                for problem in error.errors(include_input=False)
            )
        ) from None
