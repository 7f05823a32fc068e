"""Receipts against the topics: do they tile every source partition, and are their counts true? Pure functions."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from devkit.verify import Identify, Partition, Position, StoredRecord

SCHEMA = 1

Fates: TypeAlias = "Mapping[Position, list[str]]"
"""For every source record the topics in which something stands that came from it; none: it was filtered, or lost."""


class Range(NamedTuple):
    """What one receipt says of one source partition: offsets [from, to) and the counts of what became of them."""

    partition: Partition
    start: int
    end: int
    read: int
    filtered: int
    dead_lettered: int
    written: dict[str, int]

    def __str__(self) -> str:
        return f"{_name(self.partition)}, offsets [{self.start}, {self.end})"


def fates(sources: Iterable[StoredRecord], actual: Iterable[StoredRecord], identify: Identify) -> Fates:
    """What is in the topics, told by source record."""
    found: dict[Position, list[str]] = {source.position: [] for source in sources}
    for record in actual:
        identity = identify(record)
        if identity is not None and identity[0] in found:
            found[identity[0]].append(record.topic)
    return found


def check_receipts(
    receipts: Iterable[StoredRecord],
    start: Mapping[Partition, int],
    committed: Mapping[Partition, int],
    *,
    found: Fates,
    dead_letter_topic: str,
) -> list[str]:
    """What is wrong with the receipts, one line each; empty when all is well.

    `start`: the offset at which the group began, per source partition. `committed`: the group's committed offset now.
    `found`: see `fates`; every receipt's counts must be those of its range in it.
    """
    errors: list[str] = []
    ranges: list[Range] = []
    sequences: dict[tuple[str, str], list[int]] = defaultdict(list)
    for record in receipts:
        try:
            receipt = _parse(record.value)
            sequences[receipt["transactional_id"], receipt["incarnation"]].append(int(receipt["sequence"]))
            ranges += [_range(part) for part in receipt["partitions"]]
        except (ValueError, KeyError, TypeError) as error:
            errors.append(f"unreadable receipt at {record.position}: {error!r}")
    by_partition: dict[Partition, list[Range]] = defaultdict(list)
    for one in sorted(ranges, key=lambda one: one[:3]):
        by_partition[one.partition].append(one)
    for partition in sorted(start.keys() | committed.keys() | by_partition.keys()):
        begin = start.get(partition, 0)
        errors += _tiling(partition, by_partition[partition], begin, committed.get(partition, begin))
    errors += _sequence_errors(sequences)
    return errors + _count_errors(ranges, found, dead_letter_topic)


def _parse(value: bytes | None) -> dict[str, Any]:
    receipt: dict[str, Any] = json.loads(value or b"")
    if receipt["schema"] != SCHEMA:
        raise ValueError(f"schema {receipt['schema']}, {SCHEMA} was expected")
    return receipt


def _range(part: dict[str, Any]) -> Range:
    return Range(
        partition=(part["topic"], int(part["partition"])),
        start=int(part["from"]),
        end=int(part["to"]),
        read=int(part["read"]),
        filtered=int(part["filtered"]),
        dead_lettered=int(part["dead_lettered"]),
        written=dict(part["written"]),
    )


def _tiling(partition: Partition, ranges: list[Range], start: int, committed: int) -> list[str]:
    """`ranges` of this partition, by their beginnings."""
    errors = [f"{one}: an empty range" for one in ranges if one.start >= one.end]
    reached = start
    for one in ranges:
        if reached < one.start:
            errors.append(f"{_name(partition)}: offsets [{reached}, {one.start}) have no receipt")
        elif reached > one.start:
            errors.append(
                f"{_name(partition)}: offsets [{one.start}, {min(reached, one.end)}) have more than one receipt"
            )
        reached = max(reached, one.end)
    if reached < committed:
        errors.append(f"{_name(partition)}: offsets [{reached}, {committed}) have no receipt")
    elif reached > committed:
        errors.append(f"{_name(partition)}: receipts reach offset {reached}, but {committed} is committed")
    return errors


def _sequence_errors(sequences: Mapping[tuple[str, str], list[int]]) -> list[str]:
    return [
        f"{transactional_id}, incarnation {incarnation}: sequence numbers are not 1 to {len(numbers)} once each"
        for (transactional_id, incarnation), numbers in sequences.items()
        if sorted(numbers) != list(range(1, len(numbers) + 1))
    ]


def _count_errors(ranges: list[Range], found: Fates, dead_letter_topic: str) -> list[str]:
    offsets: dict[Partition, list[int]] = defaultdict(list)
    for topic, partition, offset in sorted(found):
        offsets[topic, partition].append(offset)
    errors = []
    for one in ranges:
        here = offsets[one.partition]
        inside = here[bisect_left(here, one.start) : bisect_left(here, one.end)]
        topics = [found[(*one.partition, offset)] for offset in inside]
        written = Counter(topic for each in topics for topic in each)
        dead = written.pop(dead_letter_topic, 0)
        says = (one.read, one.filtered, one.dead_lettered, {k: v for k, v in one.written.items() if v})
        true = (len(inside), sum(not each for each in topics), dead, dict(written))
        if says != true:
            errors.append(f"{one}: the receipt says {_counts(*says)}; the topics hold {_counts(*true)}")
    return errors


def _counts(read: int, filtered: int, dead_lettered: int, written: dict[str, int]) -> str:
    outputs = ", ".join(f"{count} in {topic}" for topic, count in sorted(written.items())) or "none"
    return f"{read} read, {filtered} filtered, {dead_lettered} dead letters, outputs: {outputs}"


def _name(partition: Partition) -> str:
    return f"{partition[0]}/{partition[1]}"
