"""A source record without Kafka."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transforms.records import HeaderList


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Implements `transforms.records.SourceRecord`; compared by identity, like confluent_kafka.Message."""

    value_: bytes | None
    key_: bytes | None = b"key"
    headers_: HeaderList | None = None
    timestamp_ms: int = 1_700_000_000_000
    topic_: str = "in"
    partition_: int = 0
    offset_: int = 0

    def topic(self) -> str:
        return self.topic_

    def partition(self) -> int:
        return self.partition_

    def offset(self) -> int:
        return self.offset_

    def key(self) -> bytes | None:
        return self.key_

    def value(self) -> bytes | None:
        return self.value_

    def headers(self) -> HeaderList | None:
        return self.headers_

    def timestamp(self) -> tuple[int, int]:
        return (1, self.timestamp_ms)
