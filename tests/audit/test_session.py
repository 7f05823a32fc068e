"""The session can read Kafka whoever started the JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Producer

from tests.support.broker import create_topics, unique
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_session_reads_a_topic(spark: SparkSession, bootstrap: str) -> None:
    """Driver and executors have the Kafka source and its client."""
    topic = unique("session")
    create_topics(bootstrap, {topic: 1})
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in (b"a", b"b"):
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    rows = spark.read.format("kafka").options(**options).load().select("offset", "value").collect()
    assert [(row.offset, bytes(row.value)) for row in rows] == [(0, b"a"), (1, b"b")]
