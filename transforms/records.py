"""What goes into a transform and what comes out: the only types that transforms and worker share per record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HeaderList: TypeAlias = "list[tuple[str, str | bytes | None]]"


class SourceRecord(Protocol):
    """One record as read from Kafka: what confluent_kafka.Message offers, so that no record is copied on the way in.

    The audit gives its own objects of the same shape.
    """

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> HeaderList | None: ...
    def timestamp(self) -> tuple[int, int]:
        """(timestamp type, milliseconds since the epoch)."""
        ...


Output: TypeAlias = "tuple[str, bytes | None, bytes | None, HeaderList | None, int, SourceRecord, int]"
"""(topic, value, key, headers, timestamp in ms, the source record, index among that record's outputs).

A plain tuple because one is made per record: a named tuple costs five times as much to make.
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A source record that the transform could not process: the worker makes a dead letter of it."""

    record: SourceRecord
    error_class: str
    """Short and stable, e.g. "DecodeError", "CelError"; never contains data of the record."""
    message: str
    step: str
    """Which step failed, e.g. "decode", "steps[2] set"."""
    line: int
    """Line of that step in the pipeline file, 1-based; 0 where the pipeline did not come from a file."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run of source records became. Every input is an output's source, filtered, or a failure."""

    outputs: list[Output]
    """In the order of the inputs; the outputs of one input stand together, their indexes count from 0."""
    failures: list[Failure]
    filtered: int
    """Inputs that yielded no output on purpose."""


BatchFunction: TypeAlias = "Callable[[Iterable[SourceRecord]], Result]"


@dataclass(frozen=True, slots=True)
class Transform:
    """A compiled pipeline. Pure: the same records give the same result, byte for byte, in any process."""

    run: BatchFunction
    digest: str
    """`sha256:<hex>` of everything in the pipeline file that the outputs depend on, and of the compiler's version."""
    topics: tuple[str, ...]
    """Every topic an output can go to, sorted."""
    source: str
    """The generated Python, for people to read."""
