"""Inputs whose outputs no retry can deliver (E8): noted here, and sent to the dead letters when their batch is replayed.

The client refuses a record by name. The broker refuses a whole batch of records, so that the one at fault is still to be found: until
then the partitions of that batch are read carefully, in small transactions, each record delivered by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker.errors import UndeliverableError
    from worker.offsets import Offsets, Partition

CAREFUL_RECORDS = 200
"""Records per transaction while the record that the broker refuses is looked for."""


class Diversions:
    """What is known of undeliverable outputs at the moment; empty but in the rarest of hours."""

    def __init__(self) -> None:
        self.reasons: dict[tuple[str, int, int], str] = {}
        """(topic, partition, offset) of an input that goes to the dead letters -> why."""
        self._careful: dict[Partition, int] = {}

    @property
    def careful(self) -> bool:
        """Whether a record that the broker refuses is being looked for."""
        return bool(self._careful)

    def note(self, error: UndeliverableError, ranges: Mapping[Partition, tuple[int, int]]) -> None:
        """Remember the inputs at fault, or, where none is named, to look for them in ``ranges``."""
        if error.reasons:
            self.reasons |= error.reasons
        else:
            self._careful |= {partition: end for partition, (_, end) in ranges.items()}

    def forget(self, offsets: Offsets) -> None:
        """Drop what was noted for records that are committed by now, or not ours any more."""
        if not self._careful and not self.reasons:
            return
        wanted = offsets.wanted
        self._careful = {p: end for p, end in self._careful.items() if (at := wanted(p)) is not None and at < end}
        self.reasons = {c: why for c, why in self.reasons.items() if (at := wanted(c[:2])) is not None and at <= c[2]}
