"""``--until-drained``: whether all is consumed that was in the source when the worker started, by us or by others of the group."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from worker.offsets import Offsets, Partition


class Drained(Enum):
    """How far the source is consumed."""

    NO = "not our partitions"
    OURS = "ours; others of the group still have to commit"
    ALL = "every partition"


class Drain:
    """``ends``: of all source partitions, as they were at the start; a partition without a record has the end 0.

    ``committed``: the group's offsets of these partitions.
    """

    def __init__(
        self,
        ends: Mapping[Partition, int],
        committed: Callable[[Collection[Partition]], Mapping[Partition, int]],
    ) -> None:
        self._ends = dict(ends)
        self._committed = committed

    def __call__(self, offsets: Offsets, ends_reached: Mapping[Partition, int]) -> Drained:
        """A partition of ours is at its end by a record or by commit markers; behind the last record only the end-of-partition event
        tells that nothing follows. Of the others' partitions the group's offsets tell.

        A worker goes on while others have partitions that they have not committed to their ends: should one of them die, it is who is
        there to take them. What nobody has committed for want of records, commit markers for one, they commit while they wait.

        To be asked with no records at hand: after a poll without any, or a commit. It asks the group only once ours are at their ends.
        """
        owned = offsets.owned
        at = {p: max(offsets.wanted(p) or 0, ends_reached.get(p, 0)) for p in owned}
        if any(at[p] < self._ends.get(p, 0) for p in owned):
            return Drained.NO
        others = {p: end for p, end in self._ends.items() if p not in at and end > 0}
        committed = self._committed(others) if others else {}
        left = [p for p, end in others.items() if committed.get(p, 0) < end]
        return Drained.OURS if left else Drained.ALL
