"""Which source offsets are ours, which are read, and where to go back to. Pure: knows no Kafka client.

Three positions per owned partition, start <= next <= read:

- ``start`` where this assignment began;
- ``next``  the first offset that is not yet committed, tracked by us and never asked of ``consumer.position()`` (T1);
- ``read``  the offset after the last record of the batch at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Partition: TypeAlias = "tuple[str, int]"
"""(topic, partition)"""


@dataclass(slots=True)
class _Position:
    next: int
    read: int


class Offsets:
    """The offsets of the partitions that this worker owns."""

    def __init__(self) -> None:
        self._positions: dict[Partition, _Position] = {}

    @property
    def owned(self) -> frozenset[Partition]:
        return frozenset(self._positions)

    def assign(self, starts: Mapping[Partition, int]) -> None:
        """These partitions are ours now; the first record wanted of each is at its start offset."""
        for partition, start in starts.items():
            if partition in self._positions:
                raise ValueError(f"{partition} is assigned twice")
            self._positions[partition] = _Position(start, start)

    def release(self, partitions: Iterable[Partition]) -> None:
        """These partitions are not ours any more, revoked or lost: nothing of them may be committed (R1, R2)."""
        for partition in partitions:
            self._positions.pop(partition, None)

    def wanted(self, partition: Partition) -> int | None:
        """The lowest offset that may be read next, or None when the partition is not ours.

        A record below it was read before: a fetch that was under way while the partition came and went.
        """
        position = self._positions.get(partition)
        return None if position is None else position.read

    def read(self, partition: Partition, last: int) -> None:
        """The batch at hand now reaches up to and including the record at offset ``last``."""
        position = self._positions[partition]
        if last < position.read:
            raise ValueError(f"{partition}: offset {last} was read before; {position.read} or later was expected")
        position.read = last + 1

    def ranges(self) -> dict[Partition, tuple[int, int]]:
        """[from, to) of the batch at hand, for every partition that it has records of."""
        return {p: (x.next, x.read) for p, x in self._positions.items() if x.read > x.next}

    def committed(self) -> None:
        """The batch at hand is committed."""
        for position in self._positions.values():
            position.next = position.read

    def rewind(self) -> dict[Partition, int]:
        """Forget the batch at hand; returns where to seek to, for the partitions that it had records of (T2)."""
        seeks = {}
        for partition, position in self._positions.items():
            if position.read > position.next:
                position.read = position.next
                seeks[partition] = position.next
        return seeks

    def resolve(self, committed: Mapping[Partition, int]) -> dict[Partition, int]:
        """After a commit of unknown outcome: the broker's word on what is committed, for the partitions of the batch (E3, E4).

        The transaction committed all of them or none, so a partition's committed offset at or beyond the batch's end says that it did; an
        offset beyond it belongs to another owner, which on_lost will tell us. Returns where to seek to.
        """
        seeks = {}
        for partition, (start, end) in self.ranges().items():
            position = self._positions[partition]
            found = committed.get(partition, start)
            if found == end:
                position.next = end
            else:
                position.next = position.read = max(found, start)
                seeks[partition] = position.next
        return seeks
