"""Every offset that a group has ever committed, from the log in which its coordinator keeps them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from devkit.reader import Reader
from tests.faults.arena import coordinating_partition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devkit.verify import Partition, StoredRecord

_TOPIC = "__consumer_offsets"
_OFFSET_KEYS = (0, 1)  # versions of the key (OffsetCommitKey); other numbers are of other records


class Step(NamedTuple):
    """One committed offset; None: it was deleted."""

    partition: Partition
    offset: int | None


def history(bootstrap: str, group: str) -> list[Step]:
    """In the order in which they stand in the log; of transactions only what was committed.

    Whole once no transaction is under way there, which is waited for, and as long as the log was not compacted, which starts with its
    second segment: 100 MB, many times what a campaign writes.
    """
    with Reader(bootstrap) as reader:
        reader.await_stable([_TOPIC])
        partitions = reader.partitions_of([_TOPIC])
        ours = (_TOPIC, coordinating_partition(group, len(partitions)))
        others = reader.end_offsets([partition for partition in partitions if partition != ours])
        return steps_of(reader.read([_TOPIC], starts=others), group)


def steps_of(records: Iterable[StoredRecord], group: str) -> list[Step]:
    """This group's among the records of the offsets topic."""
    found = []
    for record in records:
        key = record.key or b""
        if struct.unpack_from(">h", key)[0] not in _OFFSET_KEYS:
            continue
        name, at = _text(key, 2)
        topic, at = _text(key, at)
        if name == group:
            (number,) = struct.unpack_from(">i", key, at)
            # OffsetCommitValue, in each of its versions: the version, then the offset.
            offset = None if record.value is None else struct.unpack_from(">q", record.value, 2)[0]
            found.append(Step((topic, number), offset))
    return found


def steps_back(steps: Iterable[Step]) -> list[str]:
    """Where an offset is lower than one before it, or gone."""
    highest: dict[Partition, int] = {}
    problems = []
    for (topic, number), offset in steps:
        before = highest.get((topic, number), 0)
        if offset is None or offset < before:
            problems.append(f"{topic}[{number}]: the group's offset went from {before} to {offset}")
        highest[topic, number] = max(before, offset or 0)
    return problems


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length
