from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from transforms.loading import LoadedPipeline
from transforms.records import Result, Transform
from transforms.spec import Pipeline
from worker.errors import BadConfigError
from worker.membership import is_static_by_default
from worker.settings import MASK, Settings, TransactionLimits, is_secret, masked, resolve


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("RECKON_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RECKON_INSTANCE_ID", "a")


def loaded(**changes: Any) -> LoadedPipeline:
    """A pipeline as if loaded from orders.yaml."""
    fields = {
        "name": "orders",
        "source": {"topics": ["in"]},
        "sink": {"topic": "out"},
        "transaction": {"records": 5000, "bytes": 1_000_000, "interval_ms": 500},
    } | changes
    transform = Transform(lambda _: Result([], [], 0), "sha256:00", ("out",), "")
    return LoadedPipeline(Pipeline.model_validate(fields), Path("orders.yaml"), transform, {}, frozenset())


def problems(**changes: Any) -> list[str]:
    with pytest.raises(BadConfigError) as raised:
        resolve(loaded(**changes))
    return str(raised.value).splitlines()


def pinned(client: str, setting: str, origin: str, to: str) -> str:
    return f"orders.yaml: {client}: {setting} ({origin}) would break exactly-once: it is pinned to {to}; leave it out"


def test_defaults_in_full() -> None:
    """Without any setting: every value of both clients. A change here is a change of behaviour for every user."""
    settings = resolve(loaded())

    assert settings.consumer == {
        "bootstrap.servers": "127.0.0.1:9092",
        "client.id": "orders/a",
        "group.protocol": "classic",
        "reconnect.backoff.max.ms": 1_000,
        "socket.connection.setup.timeout.ms": 10_000,
        "max.poll.interval.ms": 300_000,
        "fetch.queue.backoff.ms": 5,
        "topic.metadata.refresh.interval.ms": 30_000,
        "queued.max.messages.kbytes": 65_536,
        "queued.min.messages": 10_000,
        "session.timeout.ms": 45_000,
        "heartbeat.interval.ms": 1_000,
        "group.instance.id": "a",
        "partition.assignment.strategy": "cooperative-sticky",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "allow.auto.create.topics": False,
        "group.id": "orders",
        "enable.partition.eof": True,
    }
    assert settings.producer == {
        "bootstrap.servers": "127.0.0.1:9092",
        "client.id": "orders/a",
        "reconnect.backoff.max.ms": 1_000,
        "socket.connection.setup.timeout.ms": 10_000,
        "metadata.recovery.strategy": "none",
        "transaction.timeout.ms": 30_000,
        "compression.type": "lz4",
        "linger.ms": 5,
        "partitioner": "murmur2_random",
        "queue.buffering.max.kbytes": 65_536,
        "queue.buffering.max.messages": 500_000,
        "acks": "all",
        "enable.idempotence": True,
        "delivery.report.only.error": True,
        "retry.backoff.ms": 100,
        "allow.auto.create.topics": False,
        "transactional.id": "orders/a",
    }
    assert (settings.topics, settings.start, settings.sinks) == (("in",), "earliest", ("out",))
    assert (settings.dead_letter_topic, settings.receipt_topic) == ("orders.dead-letters", "orders.receipts")
    assert (settings.transaction, settings.lineage) == (TransactionLimits(5000, 1_000_000, 500), True)
    assert (settings.bootstrap, settings.transactional_id) == ("127.0.0.1:9092", "orders/a")
    assert (settings.transaction_timeout_s, settings.max_poll_interval_s) == (30.0, 300.0)


def test_t6_two_pipelines_never_share_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever hyphens their names and their instances have."""
    monkeypatch.setenv("RECKON_INSTANCE_ID", "orders-0")
    one = resolve(loaded(name="shop")).transactional_id
    monkeypatch.setenv("RECKON_INSTANCE_ID", "0")
    assert (one, resolve(loaded(name="shop-orders")).transactional_id) == ("shop/orders-0", "shop-orders/0")


def test_t6_ids_come_from_pipeline_and_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transactional id is per instance, the same after a restart; the group is common. Default instance: the host name."""
    monkeypatch.delenv("RECKON_INSTANCE_ID")
    settings = resolve(loaded())

    assert settings.instance_id == socket.gethostname()
    assert settings.transactional_id == f"orders/{socket.gethostname()}"
    assert (settings.group_id, settings.consumer["group.id"]) == ("orders", "orders")


def test_static_membership_is_the_default_of_the_classic_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another id wins, an empty one means dynamic; with KIP-848 it is dynamic unless an id is set."""

    def found(settings: Settings) -> tuple[Any, bool]:
        return settings.consumer.get("group.instance.id"), is_static_by_default(settings)

    assert found(resolve(loaded())) == ("a", True)
    assert found(resolve(loaded(consumer={"group.instance.id": "mine"}))) == ("mine", False)
    assert found(resolve(loaded(consumer={"group.instance.id": ""}))) == (None, False)
    assert found(resolve(loaded(consumer={"group.protocol": "consumer"}))) == (None, False)
    assert found(resolve(loaded(consumer={"group.protocol": "consumer", "group.instance.id": "b"}))) == ("b", False)
    monkeypatch.setenv("RECKON_CONSUMER_GROUP_INSTANCE_ID", "")
    assert found(resolve(loaded(consumer={"group.instance.id": "mine"}))) == (None, False)


def test_group_id_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment before pipeline file before the pipeline's name."""
    assert resolve(loaded(group_id="of-the-file")).consumer["group.id"] == "of-the-file"

    monkeypatch.setenv("RECKON_GROUP_ID", "of-the-environment")

    assert resolve(loaded(group_id="of-the-file")).consumer["group.id"] == "of-the-environment"


def test_precedence_of_client_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Default < file, both clients < file, one client < environment, both < environment, one. Each origin is told."""

    def linger(settings: Settings) -> tuple[Any, str]:
        return settings.producer["linger.ms"], settings.origins["producer.linger.ms"]

    assert linger(resolve(loaded())) == (5, "default")
    assert linger(resolve(loaded(kafka={"linger.ms": 1}))) == (1, "pipeline file")
    both = loaded(kafka={"linger.ms": 1}, producer={"linger.ms": 2})
    assert linger(resolve(both)) == (2, "pipeline file")
    monkeypatch.setenv("RECKON_KAFKA_LINGER_MS", "3")
    assert linger(resolve(both)) == ("3", "environment")
    monkeypatch.setenv("RECKON_PRODUCER_LINGER_MS", "4")
    settings = resolve(both)
    assert linger(settings) == ("4", "environment")
    assert settings.consumer["linger.ms"] == "3"


def test_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA_ reaches both clients, CONSUMER_ and PRODUCER_ one; underscores are dots."""
    monkeypatch.setenv("RECKON_KAFKA_BOOTSTRAP_SERVERS", "k:1")
    monkeypatch.setenv("RECKON_CONSUMER_FETCH_MIN_BYTES", "7")
    monkeypatch.setenv("RECKON_PRODUCER_BATCH_SIZE", "8")

    settings = resolve(loaded())

    assert (settings.consumer["bootstrap.servers"], settings.producer["bootstrap.servers"]) == ("k:1", "k:1")
    assert (settings.consumer["fetch.min.bytes"], settings.producer["batch.size"]) == ("7", "8")
    assert "fetch.min.bytes" not in settings.producer
    assert "batch.size" not in settings.consumer


def test_worker_settings_from_the_environment_win_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transaction limits and lineage; what is not set stays the file's."""
    monkeypatch.setenv("RECKON_TRANSACTION_RECORDS", "10")
    monkeypatch.setenv("RECKON_TRANSACTION_INTERVAL_MS", "20")
    monkeypatch.setenv("RECKON_LINEAGE", "false")

    settings = resolve(loaded())

    assert (settings.transaction, settings.lineage) == (TransactionLimits(10, 1_000_000, 20), False)


def test_wrong_worker_settings_are_all_told_by_their_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names as the operator spelt them, without the values."""
    monkeypatch.setenv("RECKON_GRACE_PERIOD_S", "0")
    monkeypatch.setenv("RECKON_TRANSACTION_RECORDS", "many")

    assert problems() == [
        "RECKON_TRANSACTION_RECORDS: Input should be a valid integer, unable to parse string as an integer",
        "RECKON_GRACE_PERIOD_S: Input should be greater than 0",
    ]


def test_t8_pinned_settings_are_refused() -> None:
    """Every setting that would break exactly-once, all at once, with file, client, value, origin and what it is pinned to."""
    refused = "orders.yaml: consumer: auto.offset.reset (pipeline file) cannot be set:"
    assert problems(
        consumer={"enable.auto.commit": True, "isolation.level": "read_uncommitted", "auto.offset.reset": "latest"},
        producer={"acks": 1, "enable.idempotence": False},
    ) == [
        pinned("consumer", "enable.auto.commit=True", "pipeline file", "false"),
        pinned("consumer", "isolation.level=read_uncommitted", "pipeline file", "read_committed"),
        f"{refused} set source.start in the pipeline file to earliest or latest",
        pinned("producer", "acks=1", "pipeline file", "all"),
        pinned("producer", "enable.idempotence=False", "pipeline file", "true"),
    ]


def test_t8_pinned_settings_are_refused_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The strongest layer is refused like any other, and so is the layer of both clients."""
    monkeypatch.setenv("RECKON_PRODUCER_ACKS", "1")
    monkeypatch.setenv("RECKON_CONSUMER_ENABLE_AUTO_OFFSET_STORE", "true")

    assert problems(kafka={"allow.auto.create.topics": True}) == [
        pinned("consumer", "allow.auto.create.topics=True", "pipeline file", "false"),
        pinned("consumer", "enable.auto.offset.store=true", "environment", "false"),
        pinned("producer", "allow.auto.create.topics=True", "pipeline file", "false"),
        pinned("producer", "acks=1", "environment", "all"),
    ]


@pytest.mark.parametrize("acks", ["all", "-1", -1])
def test_t8_a_pinned_setting_with_its_own_value_is_accepted(acks: object) -> None:
    """In any spelling; what goes to the client is ours."""
    settings = resolve(loaded(producer={"acks": acks, "enable.idempotence": "True"}))

    assert (settings.producer["acks"], settings.producer["enable.idempotence"]) == ("all", True)
    assert settings.origins["producer.acks"] == "pinned"


def test_settings_of_the_worker_cannot_be_set_in_a_client() -> None:
    """Ids are made by the worker; the message says where to set them instead."""
    assert problems(consumer={"group.id": "g"}, producer={"transactional.id": "t"}) == [
        "orders.yaml: consumer: group.id (pipeline file) cannot be set: set group_id in the pipeline file or RECKON_GROUP_ID",
        "orders.yaml: producer: transactional.id (pipeline file) cannot be set: it is made of the pipeline's name and RECKON_INSTANCE_ID",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"producer": {"transaction.timeout.ms": 45_000}},
            "producer transaction.timeout.ms is 45000 and consumer session.timeout.ms is 45000: the first must be lower",
        ),
        (
            {"consumer": {"max.poll.interval.ms": "40000"}},
            "consumer session.timeout.ms is 45000 and consumer max.poll.interval.ms is 40000: the first must be lower",
        ),
        (
            {"transaction": {"interval_ms": 30_000}},
            "transaction.interval_ms is 30000 and producer transaction.timeout.ms is 30000: the first must be lower",
        ),
        (
            {"producer": {"transaction.timeout.ms": 5_000}},
            "record_budget_ms is 5000 and producer transaction.timeout.ms is 5000: the first must be lower",
        ),
    ],
)
def test_t7_the_timeouts_form_a_chain(changes: dict[str, Any], message: str) -> None:
    """Each link names both settings and both values; equal is not lower."""
    assert problems(**changes) == [f"orders.yaml: {message}"]


def test_t7_all_broken_links_at_once() -> None:
    """Together with the problems of other rules."""
    assert problems(
        producer={"transaction.timeout.ms": 100, "acks": 0},
        consumer={"session.timeout.ms": 90, "max.poll.interval.ms": 90},
    ) == [
        pinned("producer", "acks=0", "pipeline file", "all"),
        "orders.yaml: transaction.interval_ms is 500 and producer transaction.timeout.ms is 100: the first must be lower",
        "orders.yaml: record_budget_ms is 5000 and producer transaction.timeout.ms is 100: the first must be lower",
        "orders.yaml: producer transaction.timeout.ms is 100 and consumer session.timeout.ms is 90: the first must be lower",
        "orders.yaml: consumer session.timeout.ms is 90 and consumer max.poll.interval.ms is 90: the first must be lower",
    ]


@pytest.mark.parametrize(
    "where", ["consumer", "kafka", "RECKON_CONSUMER_GROUP_PROTOCOL", "RECKON_KAFKA_GROUP_PROTOCOL"]
)
def test_r3_kip848_has_no_session_timeout_and_no_assignor(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka refuses both with the new protocol, wherever it was chosen; T7 is checked without the session timeout."""
    changes = {} if where.startswith("RECKON_") else {where: {"group.protocol": "consumer"}}
    if not changes:
        monkeypatch.setenv(where, "consumer")

    settings = resolve(loaded(**changes))

    assert settings.consumer["group.protocol"] == "consumer"
    assert {"session.timeout.ms", "partition.assignment.strategy"} & set(settings.consumer) == set()
    assert problems(**changes, producer={"transaction.timeout.ms": 300_000}) == [
        "orders.yaml: producer transaction.timeout.ms is 300000 and consumer max.poll.interval.ms is 300000: the first must be lower"
    ]


def test_r3_the_environment_chooses_the_classic_protocol_against_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the classic protocol's settings are back."""
    monkeypatch.setenv("RECKON_CONSUMER_GROUP_PROTOCOL", "classic")

    settings = resolve(loaded(consumer={"group.protocol": "consumer"}))

    assert settings.consumer["partition.assignment.strategy"] == "cooperative-sticky"
    assert settings.consumer["session.timeout.ms"] == 45_000


def test_r3_other_assignors_are_refused() -> None:
    """The worker assigns incrementally only."""
    assert problems(consumer={"partition.assignment.strategy": "range"}) == [
        "orders.yaml: consumer: partition.assignment.strategy=range: the worker assigns incrementally, cooperative-sticky was expected"
    ]


def test_secrets_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No secret's value is in what is shown, whichever way it came in; the rest is shown with its origin, sorted."""
    monkeypatch.setenv("RECKON_KAFKA_SASL_PASSWORD", "geheim-1")
    secrets = {"ssl.key.password": "geheim-2", "sasl.oauthbearer.client.secret": "geheim-3", "ssl.key.pem": "geheim-4"}

    rows = masked(resolve(loaded(kafka={**secrets, "ssl.ca.location": "/ca"})))

    assert "geheim" not in str(rows)
    assert rows == sorted(rows)
    shown = {name: (value, origin) for name, value, origin in rows}
    for client in ("consumer", "producer"):
        assert shown[f"{client}.sasl.password"] == (MASK, "environment")
        assert {shown[f"{client}.{name}"] for name in secrets} == {(MASK, "pipeline file")}
        assert shown[f"{client}.ssl.ca.location"] == ("/ca", "pipeline file")
    assert shown["consumer.isolation.level"] == ("read_committed", "pinned")
    assert shown["producer.linger.ms"] == ("5", "default")
    assert shown["worker.instance_id"] == ("a", "environment")
    assert shown["worker.grace_period_s"] == ("25.0", "default")


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("sasl.password", True),
        ("sasl.username", True),
        ("ssl.keystore.password", True),
        ("sasl.oauthbearer.config", True),
        ("sasl.jaas.config", True),
        ("ssl.key.pem", True),
        ("ssl.ca.pem", False),
        ("ssl.key.location", False),
        ("client.id", False),
    ],
)
def test_which_names_are_secret(name: str, secret: bool) -> None:  # noqa: FBT001 - a table
    """By the name alone: values are never looked at."""
    assert is_secret(name) is secret


def test_an_empty_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECKON_KAFKA_BOOTSTRAP_SERVERS", "")
    assert problems() == ["orders.yaml: kafka: bootstrap.servers is empty, host:port was expected"]


def test_origins_of_what_the_pipeline_file_may_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECKON_LINEAGE", "false")
    rows = masked(resolve(loaded(transaction={"records": 7})))
    assert [row for row in rows if row[0].startswith("pipeline.")] == [
        ("pipeline.group_id", "orders", "default"),
        ("pipeline.lineage", "false", "environment"),
        ("pipeline.transaction.bytes", "33554432", "default"),
        ("pipeline.transaction.interval_ms", "100", "default"),
        ("pipeline.transaction.records", "7", "pipeline file"),
    ]
