"""No run counts unverified: every output is compared, field by field, with what the job must make of its source record."""

from __future__ import annotations

import time
from dataclasses import dataclass

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.bench.workload import expected_output, is_kept, kept_count

READ_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with an engine's output; all zero when nothing is."""

    outputs: int
    expected: int
    lost: int
    doubled: int
    altered: int
    """Key or value not what the job makes of the source record, or not a record of the job at all."""
    reordered: int
    """Outputs that stand behind a later record of the same key."""

    @property
    def ok(self) -> bool:
        return self.outputs == self.expected and not (self.lost or self.doubled or self.altered or self.reordered)

    def __str__(self) -> str:
        if self.ok:
            return f"verified: {self.outputs} outputs"
        return (
            f"WRONG: {self.outputs} outputs for {self.expected} expected, {self.lost} lost, {self.doubled} doubled, "
            f"{self.altered} altered, {self.reordered} reordered"
        )


class Verifier:
    """Takes outputs, those of one partition in their order, and judges them against the source records 0 … n - 1."""

    def __init__(self, records: int) -> None:
        self._records = records
        self._seen = bytearray(records)
        self._last: dict[bytes, int] = {}
        self._outputs = self._doubled = self._altered = self._reordered = 0

    def add(self, key: bytes | None, value: bytes | None) -> None:
        self._outputs += 1
        number = self._number_of(key, value)
        if number is None or key is None:
            self._altered += 1
            return
        self._doubled += self._seen[number]
        self._seen[number] = 1
        self._reordered += self._last.get(key, -1) > number
        self._last[key] = number

    def _number_of(self, key: bytes | None, value: bytes | None) -> int | None:
        """The number of the source record whose exact output this is, or None."""
        try:
            fields = orjson.loads(value or b"")
            number = fields["id"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return None
        if type(number) is not int or not 0 <= number < self._records or not is_kept(number):
            return None
        expected_key, expected_fields = expected_output(number)
        # 1 == 1.0 in Python and, rightly so, for `amount`: engines may write 1e7, 1.0E7 or 10000000. Cents are integers.
        same = key == expected_key.encode() and fields == expected_fields and type(fields["amount_cents"]) is int
        return number if same else None

    def verdict(self) -> Verdict:
        expected = kept_count(self._records)
        return Verdict(
            outputs=self._outputs,
            expected=expected,
            lost=expected - sum(self._seen),
            doubled=self._doubled,
            altered=self._altered,
            reordered=self._reordered,
        )


def verify_topic(bootstrap: str, topic: str, records: int) -> Verdict:
    """Reads `topic` read_committed to its end and judges it.

    Raises KafkaException on a read error, TimeoutError when the end was not reached (an open transaction hides it).
    """
    verifier = Verifier(records)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench-verify",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
        }
    )
    try:
        reading = set(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in reading])
        deadline = time.monotonic() + READ_LIMIT_S
        while reading:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}: the end of partitions {sorted(reading)} not reached in {READ_LIMIT_S} s")
            for message in consumer.consume(10_000, 0.2):
                error = message.error()
                if error is None:
                    verifier.add(message.key(), message.value())
                elif error.code() == KafkaError._PARTITION_EOF:
                    reading.discard(message.partition() or 0)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return verifier.verdict()
