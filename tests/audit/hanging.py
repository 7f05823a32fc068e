"""A transaction that hangs: the partition's leader has it open, and no coordinator knows of it, so that nobody will ever end it.

As left behind by brokers before KIP-890: a delayed Produce request arrives after its transaction was ended. Brokers of today refuse
that, unless `transaction.partition.verification.enable` is off; then a request of our own is enough.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any

from tests.support.topics import set_broker
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRODUCER_ID = 4_711_000
EPOCH = 3


def hang(spark: SparkSession, bootstrap: str, topic: str, partition: int) -> None:
    """Leave one record of a hanging transaction, of PRODUCER_ID and EPOCH, in a partition that the one broker of `bootstrap` leads."""
    set_broker(bootstrap, {"transaction.partition.verification.enable": "false"})
    batch = _batch(spark)
    # The broker takes the new setting a moment after the controller has it, and refuses the record until then.
    await_true(lambda: _produce(bootstrap, topic, partition, batch) == 0, "the broker takes the record", PATIENCE_S)


def _batch(spark: SparkSession) -> bytes:
    """A batch of one transactional record, made by Kafka's own client."""
    jvm: Any = spark._jvm
    kafka = jvm.org.apache.kafka.common
    records = spark.sparkContext._gateway.new_array(kafka.record.SimpleRecord, 1)  # type: ignore[union-attr]
    records[0] = kafka.record.SimpleRecord(b"hangs")
    none = kafka.compress.Compression.NONE
    batch = kafka.record.MemoryRecords.withTransactionalRecords(none, PRODUCER_ID, EPOCH, 0, records)
    return bytes(batch.buffer().array())[: batch.sizeInBytes()]


def _produce(bootstrap: str, topic: str, partition: int, batch: bytes) -> int:
    """Send a Produce request of version 7; the partition's error code."""
    host, port = bootstrap.split(":")
    body = (
        struct.pack(">hhi", 0, 7, 1)
        + _string("client")
        + _string("hanging")
        + struct.pack(">hi", -1, round(PATIENCE_S * 1000))
    )
    body += struct.pack(">i", 1) + _string(topic) + struct.pack(">iii", 1, partition, len(batch)) + batch
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        answer = stream.read(size)
    # correlation id, one topic: its name, one partition: its number, its error code
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic.encode()) + 4 + 4)
    return int(error)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
