"""The benchmark's job: what goes in, and what must come out, both computed from a record's number alone.

The job: drop the records with status "bad" (one third), add `amount_cents = int(amount * 100)`, rename `user` to
`customer`; the key stays.
"""

from __future__ import annotations

import random
import string
from typing import TypeAlias

import orjson
from confluent_kafka import KafkaError, Message, Producer

USERS = 1000
PAD = 132
POOL_SIZE = 65536
_random = random.Random(42)  # deterministic on purpose: every run measures the same bytes
POOL = "".join(_random.choices(string.ascii_letters + string.digits, k=POOL_SIZE))

Fields: TypeAlias = "dict[str, int | float | str]"


def source_record(number: int) -> tuple[str, Fields]:
    """(key, value) of the source record with this number, about 200 bytes as JSON."""
    user = f"u{number * 7919 % USERS}"
    start = number * 31337 % (POOL_SIZE - PAD)
    return user, {
        "id": number,
        "user": user,
        "amount": (number * 37 % 1000003) / 100,
        "status": "ok" if is_kept(number) else "bad",
        "pad": POOL[start : start + PAD],
    }


def is_kept(number: int) -> bool:
    """Whether the job lets the record with this number through."""
    return number % 3 != 0


def expected_output(number: int) -> tuple[str, Fields]:
    """(key, value) that the job must make of a record that it keeps. The order of the fields means nothing."""
    key, fields = source_record(number)
    amount = fields["amount"]
    assert isinstance(amount, float)
    fields["amount_cents"] = int(amount * 100)
    fields["customer"] = fields.pop("user")
    return key, fields


def kept_count(records: int) -> int:
    """How many of the records 0 … `records` - 1 the job lets through."""
    return records - (records + 2) // 3


def load(bootstrap: str, topic: str, records: int) -> None:
    """Produces the source records 0 … `records` - 1 to `topic`, keys partitioned as by Java's clients.

    Raises RuntimeError when a record was not delivered.
    """
    failures: list[str] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 50,
            "compression.type": "lz4",
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 200_000,
            "delivery.report.only.error": True,
            "on_delivery": on_delivery,
        }
    )
    for number in range(records):
        key, fields = source_record(number)
        value = orjson.dumps(fields)
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    left = producer.flush(60)
    if left or failures:
        raise RuntimeError(f"{topic}: {left} records not sent, {len(failures)} refused, the first: {failures[:1]}")
