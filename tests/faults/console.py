"""Kafka's own console consumer as a judge: what a read_committed reader in Java sees while the run goes on.

Its formatter does not print the topic, so each topic has a process of its own. Values, keys and headers are printed by the formatter
through Kafka's BytesDeserializer, which escapes all but printable ASCII: any bytes come through, and no separator occurs in them.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
import uuid
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaException

from devkit import jars, java
from devkit.errors import DevkitError
from devkit.reader import Reader
from devkit.verify import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from devkit.verify import Partition

_FIELD, _HEADER = "\x1f", "\x1e"
_STOP_S = 60.0
_POLL_S = 0.2
_BYTES = "org.apache.kafka.common.serialization.BytesDeserializer"
_FORMAT = {
    "print.timestamp": "true",
    "print.partition": "true",
    "print.offset": "true",
    "print.headers": "true",
    "print.key": "true",
    "key.separator": _FIELD,
    "headers.separator": _HEADER,
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "headers.deserializer": _BYTES,
}
_CONSUMER = {
    # What it has printed, it commits: see await_offsets.
    "enable.auto.commit": "true",
    "auto.commit.interval.ms": "300",
    # It shall outlast what is done to its coordinator without a rebalance, after which it reads again what it has not committed.
    "session.timeout.ms": "120000",
    "metadata.max.age.ms": "5000",
}
_ESCAPED = re.compile(rb"\\x([0-9A-F]{2})")


class ConsoleError(AssertionError):
    """The console consumer cannot be relied on: it ended, fell behind, or regretted a record. Says which and why."""


class ConsoleReader:
    """A context manager; its processes read from the beginning on while the block lasts, each into files in `folder`."""

    def __init__(self, bootstrap: str, topics: Iterable[str], folder: Path) -> None:
        self._bootstrap = bootstrap
        self._null = f"null-{uuid.uuid4().hex}"  # of this reader: no record has it for its value
        self._consumers = {topic: _Consumer(bootstrap, topic, folder, self._null) for topic in topics}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.callback(self.kill)
            for consumer in self._consumers.values():
                consumer.start()
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """End the processes. What they have printed stays."""
        for consumer in self._consumers.values():
            consumer.kill()

    def await_offsets(self, ends: Mapping[Partition, int], timeout_s: float = 120.0) -> None:
        """Until all before these stable ends is printed. ConsoleError when it is not in time, or a consumer has ended.

        The consumers' groups tell: a position is committed once what lies before it was printed, also where aborted records and
        markers lie there, of which the output shows nothing.
        """
        deadline = time.monotonic() + timeout_s
        left = dict(ends)
        with Reader(self._bootstrap) as reader:
            while True:
                for topic in {topic for topic, _ in left}:
                    consumer = self._consumers[topic]
                    with contextlib.suppress(KafkaException, DevkitError):  # a coordinator moves: asked again
                        done = reader.committed_offsets(consumer.group, [p for p in left if p[0] == topic])
                        left = {p: end for p, end in left.items() if p[0] != topic or done.get(p, 0) < end}
                if not any(left.values()):  # of a partition that is empty nothing will be committed
                    return
                for topic in {topic for topic, _ in left}:
                    self._consumers[topic].check()
                if time.monotonic() > deadline:
                    raise ConsoleError(f"the console consumer has not reached within {timeout_s:g} s: {left}")
                time.sleep(_POLL_S)

    def records(self) -> list[StoredRecord]:
        """What was printed until now, by topic and partition, in the order of printing.

        A consumer that rejoined its group prints again what it had not committed: a position counts once. ConsoleError when it
        was another record the second time, or when a partition's offsets do not rise otherwise.

        Not told apart: a header's name with ":" in it, from a name that ends there. All else is byte for byte what is stored.
        """
        null = self._null.encode()
        return [one for topic, consumer in self._consumers.items() for one in parse_all(topic, consumer.lines(), null)]


class _Consumer:
    """One process, of one topic."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, null: str) -> None:
        self.group = f"console-{uuid.uuid4().hex[:12]}"
        self._topic = topic
        self._out, self._log = folder / f"{topic}.console", folder / f"{topic}.console.log"
        path = os.pathsep.join(map(str, [*jars.jar_paths("kafka"), *jars.jar_paths("kafka-tools")]))
        self._command = [
            *(str(java.find_java()), "-Xmx96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path),
            *("org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap),
            *("--topic", topic, "--group", self.group, "--isolation-level", "read_committed", "--from-beginning"),
            *(part for name, value in _CONSUMER.items() for part in ("--command-property", f"{name}={value}")),
            *(
                part
                for name, value in {**_FORMAT, "null.literal": null}.items()
                for part in ("--formatter-property", f"{name}={value}")
            ),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._out.open("wb") as out, self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=log)

    def kill(self) -> None:
        """It leaves nothing behind that matters."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_S)

    def check(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            tail = self._log.read_text(errors="replace")[-3000:]
            raise ConsoleError(f"the console consumer of {self._topic} ended with {self._process.returncode}:\n{tail}")

    def lines(self) -> list[bytes]:
        """Whole lines; the last one may be under way."""
        return self._out.read_bytes().split(b"\n")[:-1]


def parse_all(topic: str, lines: Iterable[bytes], null: bytes) -> list[StoredRecord]:
    """All lines of a topic's output as `ConsoleReader.records` gives them; `null` is what is printed where there is no value."""
    found: dict[int, dict[int, StoredRecord]] = {}
    for line in lines:
        record = parse(topic, line, null)
        seen = found.setdefault(record.partition, {})
        before = seen.get(record.offset)
        if before is not None and before != record:
            raise ConsoleError(f"read twice, and not the same: first {before}, then {record}")
        if before is None and seen and record.offset < next(reversed(seen)):
            raise ConsoleError(f"{record} was printed after offset {next(reversed(seen))}")
        seen[record.offset] = record
    return [record for _, seen in sorted(found.items()) for record in seen.values()]


def parse(topic: str, line: bytes, null: bytes) -> StoredRecord:
    """A line of the output. ConsoleError naming the line when it has another form."""

    def value_of(text: bytes) -> bytes | None:
        return None if text == null else _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), text)

    def header_of(text: bytes) -> tuple[str, bytes | None]:
        name, colon, value = text.partition(b":")
        if not colon:
            raise ValueError(text)
        return name.decode(), value_of(value)

    try:
        timestamp, partition, offset, headers, key, value = line.split(_FIELD.encode())
        return StoredRecord(
            topic,
            int(partition.removeprefix(b"Partition:")),
            int(offset.removeprefix(b"Offset:")),
            value_of(key),
            value_of(value),
            () if headers == b"NO_HEADERS" else tuple(map(header_of, headers.split(_HEADER.encode()))),
            int(timestamp.removeprefix(b"CreateTime:")),
        )
    except ValueError as error:
        raise ConsoleError(f"{topic}: not a line of the formatter: {line!r}") from error
