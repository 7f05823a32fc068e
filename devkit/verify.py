"""The independent judge: what should have come out of a pipeline against what is in the topics. Pure functions.

Nothing here knows the worker or the transforms: it sees records as Kafka stores them. It reports exact lists, because
counts let a loss and a duplicate cancel each other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Partition: TypeAlias = "tuple[str, int]"
"""(topic, partition)"""
Position: TypeAlias = "tuple[str, int, int]"
"""(topic, partition, offset)"""
Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"

DEAD_LETTER = -1
"""The index, in an identity, of the dead letter of a source record; its outputs count from 0."""
Identity: TypeAlias = "tuple[Position, int]"
"""(position of the source record, index among its outputs or DEAD_LETTER): exactly one stored record may have it."""

OWN_HEADERS = "reckon."
"""Prefix of the headers that Reckon adds; all others must come through untouched."""
DEAD_LETTER_HEADERS = frozenset(
    f"{OWN_HEADERS}{name}"
    for name in (
        "error.class",
        "error.message",
        "step",
        "pipeline.line",
        "source.topic",
        "source.partition",
        "source.offset",
        "worker.version",
    )
)


class StoredRecord(NamedTuple):
    """A record as it stands in Kafka. A named tuple: the demo makes half a million of them."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int

    @property
    def position(self) -> Position:
        return self[:3]


class ExpectedRecord(NamedTuple):
    """A record that must be there, exactly once, and where."""

    source: Position
    output_index: int
    topic: str
    key: bytes | None
    value: bytes | None
    """For outputs any JSON of equal content will do; a dead letter's bytes must be these."""
    headers: Headers
    """Without Reckon's own."""
    timestamp_ms: int


Identify: TypeAlias = "Callable[[StoredRecord], Identity | None]"
"""Whose output a stored record is; None where it cannot be told."""


@dataclass(slots=True)
class Findings:
    """What is wrong, each list in the order of the identities or positions in it. All empty: the run was exactly once."""

    missing: list[Identity] = field(default_factory=list)
    duplicated: list[tuple[Identity, Position]] = field(default_factory=list)
    """Every copy after the first, with its place; of dead letters too."""
    altered: list[tuple[Identity, Position, str]] = field(default_factory=list)
    """With the names of what differs: "value", "key, timestamp", ..."""
    misrouted: list[tuple[Identity, Position]] = field(default_factory=list)
    """The right record in the wrong topic."""
    unexpected: list[Position] = field(default_factory=list)
    """Nobody's output, or the output of a record that must have none."""
    reordered: list[tuple[Identity, Position]] = field(default_factory=list)
    """Records that stand behind a later one of the same key and source partition."""
    scattered: list[tuple[str, bytes | None]] = field(default_factory=list)
    """(topic, key) that occurs in more than one partition: no order holds among its records."""
    dead_letters_missing: list[Identity] = field(default_factory=list)
    dead_letters_extra: list[Position] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not any(getattr(self, name) for name in self.__slots__)

    def lines(self, examples: int = 3) -> list[str]:
        """One line per kind of finding: how many, and the first few; empty when all is well."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return [
            f"{name.replace('_', ' ')}: {len(entries)}, e.g. {'; '.join(map(str, entries[:examples]))}"
            for name, entries in found.items()
            if entries
        ]


def by_lineage(dead_letter_topic: str) -> Identify:
    """Identities from the headers that the worker writes: lineage on outputs, the source's place on dead letters."""

    def identify(record: StoredRecord) -> Identity | None:
        headers = dict(record.headers)
        try:
            if record.topic == dead_letter_topic:
                topic, partition, offset = (
                    _text(headers, f"source.{name}") for name in ("topic", "partition", "offset")
                )
                return (topic, int(partition), int(offset)), DEAD_LETTER
            topic, partition, offset, index = _text(headers, "source").split("/")
            return (topic, int(partition), int(offset)), int(index)
        except (KeyError, ValueError):
            return None

    return identify


def _text(headers: dict[str, bytes | None], name: str) -> str:
    return (headers[OWN_HEADERS + name] or b"").decode()


def by_content(sources: Iterable[StoredRecord], expected: Iterable[ExpectedRecord], dead_letter_topic: str) -> Identify:
    """Identities without any header: the order's id, else key and timestamp, which no two of devkit.orders share.

    Several outputs of one source record are told apart by their topics, so each must have its own.
    """
    places = {name: source.position for source in sources for name in _names(source)}
    indexes = {(record.source, record.topic): record.output_index for record in expected}

    def identify(record: StoredRecord) -> Identity | None:
        source = next((places[name] for name in _names(record) if name in places), None)
        if source is None:
            return None
        return source, DEAD_LETTER if record.topic == dead_letter_topic else indexes.get((source, record.topic), 0)

    return identify


def _names(record: StoredRecord) -> list[object]:
    """What a record can be recognised by, the surest first."""
    key_and_time = (record.key, record.timestamp_ms)
    try:
        return [json.loads(record.value or b"")["id"], key_and_time]
    except (ValueError, KeyError, TypeError):
        return [key_and_time]


def compare(expected: Iterable[ExpectedRecord], actual: Iterable[StoredRecord], identify: Identify) -> Findings:
    """Every expected record exactly once, unaltered, in its topic, in order per key; nothing else.

    `actual`: all records of the sink topics and of the dead-letter topic, read read_committed.
    """
    wanted = {(record.source, record.output_index): record for record in expected}
    in_order = sorted(actual, key=lambda record: record[:3])
    identities = [identify(record) for record in in_order]
    findings = Findings()
    seen: set[Identity] = set()
    firsts: list[tuple[Identity, StoredRecord]] = []
    for identity, record in zip(identities, in_order, strict=True):
        want = None if identity is None else wanted.get(identity)
        if identity is None or want is None:
            _surplus(findings, identity, record)
        elif identity in seen:
            findings.duplicated.append((identity, record.position))
        else:
            seen.add(identity)
            firsts.append((identity, record))
            _judge(findings, identity, want, record)
    absent = sorted(wanted.keys() - seen)
    findings.missing = [identity for identity in absent if identity[1] != DEAD_LETTER]
    findings.dead_letters_missing = [identity for identity in absent if identity[1] == DEAD_LETTER]
    findings.reordered = _reordered(firsts)
    findings.scattered = _scattered(in_order)
    return findings


def _surplus(findings: Findings, identity: Identity | None, record: StoredRecord) -> None:
    dead = identity is not None and identity[1] == DEAD_LETTER
    (findings.dead_letters_extra if dead else findings.unexpected).append(record.position)


def _judge(findings: Findings, identity: Identity, want: ExpectedRecord, got: StoredRecord) -> None:
    if want.topic != got.topic:
        findings.misrouted.append((identity, got.position))
    dead = identity[1] == DEAD_LETTER
    differs = []
    if want.key != got.key:
        differs.append("key")
    if want.value != got.value and (dead or not _same_json(want.value, got.value)):
        differs.append("value")
    if got.headers or want.headers:
        kept = tuple(header for header in got.headers if not header[0].startswith(OWN_HEADERS))
        if kept != want.headers:
            differs.append("headers")
    if want.timestamp_ms != got.timestamp_ms:
        differs.append("timestamp")
    if dead and not {name for name, value in got.headers if value is not None} >= DEAD_LETTER_HEADERS:
        differs.append("dead-letter headers")
    if differs:
        findings.altered.append((identity, got.position, ", ".join(differs)))


def _same_json(one: bytes | None, other: bytes | None) -> bool:
    """Equal content in any layout. Through text, because in Python 1 == 1.0 == True, and in JSON they differ."""
    if one is None or other is None:
        return one is other
    try:
        return json.dumps(json.loads(one), sort_keys=True) == json.dumps(json.loads(other), sort_keys=True)
    except ValueError:
        return False


def _reordered(firsts: list[tuple[Identity, StoredRecord]]) -> list[tuple[Identity, Position]]:
    """Duplicates are left out: a copy that stands late is a duplicate, not a disorder."""
    latest: dict[tuple[str, int, bytes | None, Partition], tuple[int, int]] = {}
    found = []
    for identity, record in firsts:
        (topic, partition, offset), index = identity
        lane = (record.topic, record.partition, record.key, (topic, partition))
        if latest.get(lane, (-1, -1)) > (offset, index):
            found.append((identity, record.position))
        else:
            latest[lane] = (offset, index)
    return found


def _scattered(actual: list[StoredRecord]) -> list[tuple[str, bytes | None]]:
    """Records without a key may stand anywhere."""
    home: dict[tuple[str, bytes | None], int] = {}
    away = {
        (record.topic, record.key)
        for record in actual
        if record.key is not None and home.setdefault((record.topic, record.key), record.partition) != record.partition
    }
    return sorted(away, key=str)
