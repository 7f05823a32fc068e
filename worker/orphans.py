"""Source partitions that the group has given to nobody.

A cooperative rebalance takes two generations: in the first a member is told to give partitions up, by the second, for which that member
asks, they are given to another. A *static* member that is killed between the two comes back with what the first one left it, and asks for
nothing: the group is stable, and the partitions are nobody's until the next rebalance, whenever that is. With dynamic members the death
itself makes a rebalance; with KIP-848 the broker reconciles.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from worker.membership import is_classic
from worker.settings import STATIC_ID

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from worker.offsets import Partition
    from worker.settings import Settings

GRACE_S = 5.0
"""Beyond a session timeout, which is longer than any transaction (T7): by then whoever lives has polled, and given up what it must."""


class Orphans:
    """Looks for them once after each generation. ``unassigned``: from our member id to the partitions that we are to see to; None where
    that is not known: it is asked again.
    """

    def __init__(self, settings: Settings, unassigned: Callable[[str], AbstractSet[Partition] | None]) -> None:
        static = STATIC_ID in settings.consumer and is_classic(settings)
        self._after_s = int(settings.consumer.get("session.timeout.ms", 45_000)) / 1000 + GRACE_S if static else None
        self._unassigned = unassigned
        self._due = float("inf")
        self._known: AbstractSet[Partition] = frozenset()

    def assigned(self) -> None:
        """To be called with every generation."""
        if self._after_s is not None:
            self._due = time.monotonic() + self._after_s

    def found(self, member_id: Callable[[], str | None]) -> AbstractSet[Partition]:
        """Orphans for whose sake we should leave the group and join it anew. Not twice for the same: then it is of no use."""
        if time.monotonic() < self._due:
            return frozenset()
        self._due = float("inf")
        unassigned = self._unassigned(member_id() or "")
        if unassigned is None:
            self._due = time.monotonic() + GRACE_S
            return frozenset()
        known, self._known = self._known, unassigned
        return frozenset() if self._known == known else self._known

    def forget(self) -> None:
        """To be called when leaving for the sake of what was found did not succeed: the same may be found again."""
        self._known = frozenset()
