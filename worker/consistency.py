"""What the settings of a run must obey together: one assignor, timeouts that are numbers and stand in order (T7)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.settings import ClientConfig, TransactionLimits, WorkerSettings


def problems_of(
    consumer: ClientConfig, producer: ClientConfig, limits: TransactionLimits, worker: WorkerSettings
) -> list[str]:
    """One line per problem, with the values; empty where there is none."""
    return (
        _address_problems(producer)
        + _strategy_problems(consumer)
        + (_number_problems(consumer, producer) or _timeout_problems(consumer, producer, limits, worker))
    )


def plain(value: object) -> str:
    """A value as librdkafka spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _address_problems(producer: ClientConfig) -> list[str]:
    if not plain(producer["bootstrap.servers"]).strip(" ,"):
        return ["kafka: bootstrap.servers is empty, host:port was expected"]
    return []


def _strategy_problems(consumer: ClientConfig) -> list[str]:
    strategy = consumer.get("partition.assignment.strategy")
    if strategy is not None and strategy != "cooperative-sticky":
        return [
            f"consumer: partition.assignment.strategy={strategy}: the worker assigns incrementally, cooperative-sticky was expected"
        ]
    return []


def _number_problems(consumer: ClientConfig, producer: ClientConfig) -> list[str]:
    """The timeouts that the worker itself reckons with must be numbers; the rest librdkafka checks."""
    return [
        f"{kind}: {name} is {config[name]!r}, a whole number of milliseconds was expected"
        for kind, config, name in (
            ("producer", producer, "transaction.timeout.ms"),
            ("consumer", consumer, "session.timeout.ms"),
            ("consumer", consumer, "max.poll.interval.ms"),
        )
        if name in config and not plain(config[name]).isdecimal()
    ]


def _timeout_problems(
    consumer: ClientConfig, producer: ClientConfig, limits: TransactionLimits, worker: WorkerSettings
) -> list[str]:
    """T7: batch < transaction.timeout.ms < session.timeout.ms < max.poll.interval.ms.

    With KIP-848 the session timeout is the broker's (group.consumer.session.timeout.ms, 45 s by default) and cannot be seen from here.
    """
    chain: list[tuple[str, int]] = [
        ("transaction.interval_ms", limits.interval_ms),
        ("record_budget_ms", worker.record_budget_ms),
        ("producer transaction.timeout.ms", int(producer["transaction.timeout.ms"])),
        ("consumer max.poll.interval.ms", int(consumer["max.poll.interval.ms"])),
    ]
    if "session.timeout.ms" in consumer:
        chain.insert(3, ("consumer session.timeout.ms", int(consumer["session.timeout.ms"])))
    below = [(chain[0], chain[2]), *pairwise(chain[1:])]
    return [
        f"{low} is {low_value} and {high} is {high_value}: the first must be lower"
        for (low, low_value), (high, high_value) in below
        if low_value >= high_value
    ]
