"""``--until-drained``: whether all is consumed that was in the source when the worker started."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker.offsets import Offsets, Partition


class Drain:
    """``ends``: of all source partitions, as they were at the start."""

    def __init__(self, ends: Mapping[Partition, int]) -> None:
        self._ends = dict(ends)

    def __call__(self, offsets: Offsets, ends_reached: Mapping[Partition, int]) -> bool:
        """Whether every partition of ours is at its end; never while we own none.

        A partition ends with a record or with commit markers; behind the last record only the end-of-partition event tells that nothing
        follows. A worker that owns nothing waits: when the others have drained theirs they leave, and their partitions come to it.
        """
        return bool(offsets.owned) and all(
            max(offsets.wanted(partition) or 0, ends_reached.get(partition, 0)) >= self._ends.get(partition, 0)
            for partition in offsets.owned
        )
