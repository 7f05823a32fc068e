"""The tuned naive script with a lineage header on each output: FORM chooses how the header is made.

Run by path, not as a module. Each form is one list comprehension over the kept records of one consume(), as in the worker, so
that forms differ by nothing but the header.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
from confluent_kafka import Consumer, KafkaException, Message, Producer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMIT_S = int(os.environ["COMMIT_MS"]) / 1000
SRC, DST = os.environ["SRC_TOPIC"], os.environ["DST_TOPIC"]
TEXT = [f"{SRC}/{partition}/" for partition in range(64)]
BYTES = [prefix.encode() for prefix in TEXT]
PLAIN = (-1, None, None, 0)
"""partition, callback, on_delivery, timestamp of Producer.produce, which takes them before the headers."""

Kept: TypeAlias = "Sequence[tuple[bytes, Any]]"
"""(value of the output, source message): Any because its accessors are declared optional, and a cast would cost time."""
Arguments: TypeAlias = "list[tuple[Any, ...]]"


def none(kept: Kept) -> Arguments:
    return [(DST, value, m.key(), *PLAIN) for value, m in kept]


def text(kept: Kept) -> Arguments:
    return [
        (DST, value, m.key(), *PLAIN, [("reckon.source", f"{TEXT[m.partition()]}{m.offset()}/0")]) for value, m in kept
    ]


def text_as_bytes(kept: Kept) -> Arguments:
    return [
        (DST, value, m.key(), *PLAIN, [("reckon.source", b"%b%d/0" % (BYTES[m.partition()], m.offset()))])
        for value, m in kept
    ]


def binary_offset(kept: Kept) -> Arguments:
    return [
        (DST, value, m.key(), *PLAIN, [("reckon.source", BYTES[m.partition()] + m.offset().to_bytes(8, "big"))])
        for value, m in kept
    ]


def text_in_dict(kept: Kept) -> Arguments:
    return [
        (DST, value, m.key(), *PLAIN, {"reckon.source": f"{TEXT[m.partition()]}{m.offset()}/0"}) for value, m in kept
    ]


def text_short_name(kept: Kept) -> Arguments:
    return [(DST, value, m.key(), *PLAIN, [("s", f"{TEXT[m.partition()]}{m.offset()}/0")]) for value, m in kept]


def transformed(messages: Sequence[Message]) -> Kept:
    kept = []
    for message in messages:
        error = message.error()
        if error is not None:
            raise KafkaException(error)
        fields = orjson.loads(message.value() or b"")
        if fields["status"] == "bad":
            continue
        fields["amount_cents"] = int(fields["amount"] * 100)
        fields["customer"] = fields.pop("user")
        kept.append((orjson.dumps(fields), message))
    return kept


def main(form: Callable[[Kept], Arguments]) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": os.environ["BOOTSTRAP"],
            "group.id": os.environ["GROUP"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 10,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": os.environ["BOOTSTRAP"],
            "transactional.id": os.environ["GROUP"] + "-tx",
            "compression.type": "lz4",
            "partitioner": "murmur2_random",
        }
    )
    producer.init_transactions()
    consumer.subscribe([SRC])
    in_transaction, deadline = False, 0.0
    while True:
        messages = consumer.consume(1000, timeout=0.05)
        if messages and not in_transaction:
            producer.begin_transaction()
            in_transaction, deadline = True, time.monotonic() + COMMIT_S
        for arguments in form(transformed(messages)):
            while True:
                try:
                    producer.produce(*arguments)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.poll(0)
        if in_transaction and time.monotonic() >= deadline:
            offsets = [position for position in consumer.position(consumer.assignment()) if position.offset >= 0]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
            producer.commit_transaction()
            in_transaction = False


main(globals()[os.environ["FORM"]])
