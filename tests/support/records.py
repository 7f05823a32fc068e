"""A source record without Kafka."""

from __future__ import annotations

from dataclasses import dataclass

from transforms.samples import Sample


@dataclass(frozen=True, slots=True, eq=False)
class Record(Sample):
    """A sample with a key, and a time that is not 0."""

    key_: bytes | None = b"key"
    timestamp_ms: int = 1_700_000_000_000
