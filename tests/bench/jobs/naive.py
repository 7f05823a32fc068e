"""The script that a user would write with confluent-kafka, after that project's exactly-once example.

Run by path, not as a module: it knows nothing of Reckon.
"""

import json
import os
import time

import orjson
from confluent_kafka import Consumer, KafkaException, Producer

COMMIT_S = int(os.environ["COMMIT_MS"]) / 1000
DST = os.environ["DST_TOPIC"]

consumer = Consumer(
    {
        "bootstrap.servers": os.environ["BOOTSTRAP"],
        "group.id": os.environ["GROUP"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        **json.loads(os.environ.get("CONSUMER_EXTRA", "{}")),
    }
)
producer = Producer(
    {
        "bootstrap.servers": os.environ["BOOTSTRAP"],
        "transactional.id": os.environ["GROUP"] + "-tx",
        "compression.type": "lz4",
        "partitioner": "murmur2_random",  # as the Java and Go clients partition
    }
)


def produce(value: bytes, key: bytes | None) -> None:
    while True:
        try:
            producer.produce(DST, value, key)
        except BufferError:  # the local queue (100,000 messages) is full: wait for the broker
            producer.poll(0.05)
        else:
            return


def main() -> None:
    producer.init_transactions()
    consumer.subscribe([os.environ["SRC_TOPIC"]])
    in_transaction, deadline = False, 0.0
    while True:
        messages = consumer.consume(1000, timeout=0.05)
        if messages and not in_transaction:
            producer.begin_transaction()
            in_transaction, deadline = True, time.monotonic() + COMMIT_S
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            fields = orjson.loads(message.value() or b"")
            if fields["status"] == "bad":
                continue
            fields["amount_cents"] = int(fields["amount"] * 100)
            fields["customer"] = fields.pop("user")
            produce(orjson.dumps(fields), message.key())
        producer.poll(0)
        if in_transaction and time.monotonic() >= deadline:
            offsets = [position for position in consumer.position(consumer.assignment()) if position.offset >= 0]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
            producer.commit_transaction()
            in_transaction = False


main()
