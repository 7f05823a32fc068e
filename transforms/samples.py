"""Records that do not come from Kafka: those of tests, of `reckon try` and of the fuzzer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transforms.records import HeaderList


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Implements `transforms.records.SourceRecord`; compared by identity, like confluent_kafka.Message."""

    content: bytes | None
    key_: bytes | None = None
    headers_: HeaderList | None = None
    timestamp_ms: int = 0
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
        return self.content

    def headers(self) -> HeaderList | None:
        return self.headers_

    def timestamp(self) -> tuple[int, int]:
        return (1, self.timestamp_ms)


def encoded(value: Any, *, text_as_is: bool) -> bytes | None:
    """A value as bytes: JSON, null as None; text without quotes if `text_as_is`, as in keys and in topics of strings."""
    if value is None:
        return None
    if isinstance(value, str) and text_as_is:
        return value.encode()
    # Not orjson: a test may hold a whole number of any size.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def shown(data: bytes | None) -> str:
    """Bytes for people: text where they are UTF-8, else as Python writes bytes; null for None."""
    if data is None:
        return "null"
    try:
        return data.decode()
    except UnicodeDecodeError:
        return repr(data)


def printable(text: str) -> str:
    """Text for one line of a terminal: what would colour it, move in it or break the line is written as JSON writes it."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
