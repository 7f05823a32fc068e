"""The pipeline's own transform, run again on executors over source records that come as Arrow batches.

The time budget of a record (rule E9) needs a signal handler in the main thread of a worker and does not run here: a record on which the
transform never ends holds up its task. It would have been a dead letter; `spark.task.reaper` or a kill of the job ends the wait.
"""

from __future__ import annotations

import os
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_batch.outcomes import Stored, fingerprint
from spark_batch.plan import DEAD_LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa  # type: ignore[import-untyped]

    from transforms.loading import LoadedPipeline
    from transforms.records import HeaderList, Transform

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")
PIECE = 250
"""Records per call of the transform, as in the worker."""


class Shipped(NamedTuple):
    """A pipeline file on its way to the executors, inside the closure of a task: neither Spark's settings nor its UI show it."""

    path: str
    text: str
    env: tuple[tuple[str, str], ...]
    """The environment's values that the file refers to."""
    digest: str


class Record:
    """A source record with the methods of confluent_kafka.Message (transforms.records.SourceRecord)."""

    __slots__ = ("_headers", "_key", "_offset", "_partition", "_time", "_topic", "_value")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        headers: HeaderList | None,
        time: tuple[int, int],
    ) -> None:
        self._topic, self._partition, self._offset = topic, partition, offset
        self._key, self._value, self._headers, self._time = key, value, headers, time

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> HeaderList | None:
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return self._time


def ship(loaded: LoadedPipeline) -> Shipped:
    text = loaded.path.read_text(encoding="utf-8")
    names = sorted(set(_REFERENCE.findall(text)) & os.environ.keys())
    env = tuple((name, os.environ[name]) for name in names)
    return Shipped(str(loaded.path.resolve()), text, env, loaded.transform.digest)


@lru_cache(maxsize=4)
def load(shipped: Shipped) -> Transform:
    """The compiled transform; once per Python worker. RuntimeError where it is another one here than on the driver."""
    from transforms.loading import load_pipeline  # noqa: PLC0415 - only content depth needs the compiler on executors

    path = Path(shipped.path)
    if path.exists() and path.read_text(encoding="utf-8") == shipped.text:
        transform = load_pipeline(path, dict(shipped.env)).transform  # beside the files that it may refer to
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / path.name
            path.write_text(shipped.text, encoding="utf-8")
            transform = load_pipeline(path, dict(shipped.env)).transform
    if transform.digest != shipped.digest:
        raise RuntimeError(
            f"the transform is {transform.digest} on this executor and {shipped.digest} on the driver: "
            "ship the same version of the package transforms to both (--py-files)"
        )
    return transform


def records_of(batch: pa.RecordBatch, topic: str) -> list[Record]:
    """Columns partition, offset, key, value, headers, time_ms, time_type of one topic."""
    columns = (
        batch.column(name).to_pylist() for name in ("partition", "offset", "key", "value", "time_ms", "time_type")
    )
    headers = headers_of(batch)
    # Kafka's types: 0 the producer's time, 1 the broker's; confluent-kafka's: 1 and 2, 0 for none.
    return [
        Record(topic, partition, offset, key, value, own, (0 if time_ms < 0 else time_type + 1, time_ms))
        for (partition, offset, key, value, time_ms, time_type), own in zip(
            zip(*columns, strict=True), headers, strict=True
        )
    ]


def headers_of(batch: pa.RecordBatch) -> list[HeaderList | None]:
    """None where there are none, as confluent-kafka has it."""
    column = batch.column("headers")
    if column.null_count == len(column):
        return [None] * len(column)
    return [[(each["key"], each["value"]) for each in own] if own else None for own in column.to_pylist()]


def expectations(
    transform: Transform, records: Sequence[Record], numbers: dict[str, int]
) -> Iterator[tuple[Record, list[Stored], Stored | None]]:
    """(record, its outputs, its dead letter) of every record. `numbers`: output topics."""
    for start in range(0, len(records), PIECE):
        piece = records[start : start + PIECE]
        result = transform.run(iter(piece))
        outputs: dict[int, list[Stored]] = {}
        for topic, value, key, headers, time_ms, record, index in result.outputs:
            kept = [(name, _bytes(content)) for name, content in headers or () if name != "reckon.source"]
            print_ = fingerprint(value, key, kept)
            outputs.setdefault(id(record), []).append(Stored(index, numbers[topic], -1, -1, print_, time_ms))
        letters = {id(failure.record): _letter(failure.record, failure.error_class) for failure in result.failures}
        for record in piece:
            yield record, outputs.get(id(record), []), letters.get(id(record))


def _letter(record: Any, error: str) -> Stored:
    headers = [(name, _bytes(content)) for name, content in record.headers() or ()]
    print_ = fingerprint(record.value(), record.key(), headers)
    return Stored(0, DEAD_LETTERS, -1, -1, print_, max(record.timestamp()[1], 0), error)


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
