"""A topic as a DataFrame: offsets pinned, isolation explicit, loss never ignored (A2, A3, A4). The only file that reads Kafka's records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from spark_batch.model import Partition, Range

Isolation: TypeAlias = Literal["read_committed", "read_uncommitted"]

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)

_FETCHING = {
    "kafka.max.poll.records": "5000",
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.fetch.max.wait.ms": "20",
}
"""Twice as fast as the consumer's defaults. What is read is there already, so that waiting for more gains nothing. But a consumer that has
come to the end of a topic has asked for more, and after each poll Spark asks for the partition's first and last offset on the same
connection: that answer stands behind the other one, which comes after fetch.max.wait.ms, 500 by default."""


def read_topic(
    spark: SparkSession,
    kafka: Mapping[str, str],
    ranges: Mapping[Partition, Range],
    isolation: Isolation = "read_committed",
    *,
    splits: int = 0,
    headers: bool = True,
) -> DataFrame:
    """The records of the ranges, columns as in SCHEMA, of any number of topics. Within a Spark partition they stand in order of offset.

    `kafka`: Java client options. `splits`: at least so many Spark partitions; 0: one per Kafka partition, so that one task sees all of it
    in order. `headers`: without them a record costs a sixth less, and the column is missing. A range that ends beyond the last stable
    offset would wait for two minutes and then fail (A3).
    """
    wanted = {partition: bounds for partition, bounds in sorted(ranges.items()) if bounds.end > bounds.start}
    if not wanted:
        empty = spark.createDataFrame([], SCHEMA).limit(
            0
        )  # by which Spark knows that it is empty: no task looks for its records
        return empty if headers else empty.drop("headers")
    assigned: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for (topic, partition), bounds in wanted.items():
        assigned.setdefault(topic, []).append(partition)
        starts.setdefault(topic, {})[str(partition)] = bounds.start
        ends.setdefault(topic, {})[str(partition)] = bounds.end
    reader = (
        spark.read.format("kafka")
        .options(**_FETCHING)
        .options(**{f"kafka.{name}": value for name, value in kafka.items()})
        .option("kafka.isolation.level", isolation)
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", json.dumps(starts))
        .option("endingOffsets", json.dumps(ends))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", str(headers).lower())
    )
    return (reader.option("minPartitions", str(splits)) if splits else reader).load()
