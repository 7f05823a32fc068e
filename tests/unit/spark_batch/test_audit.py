"""What one audit leaves to the next."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from spark_batch.audit import Audit
from spark_batch.model import Cut, Depth, Range

if TYPE_CHECKING:
    from spark_batch.model import Partition
    from spark_batch.state import State

A, B, NEW, OUT = ("in", 0), ("in", 1), ("in", 2), ("out", 0)


def left(
    committed: dict[Partition, int], marks: dict[Partition, int], doubted: set[Partition], found: dict[Any, int]
) -> State:
    """The next state after a cut with these offsets, of which some cannot be believed."""
    cut = Cut(5, "g", committed, {}, {}, {OUT: Range(3, 30)}, {"in": "1"}, frozenset(), 0.0)
    loaded = SimpleNamespace(spec=SimpleNamespace(name="p"))
    args = SimpleNamespace(pipeline=Path("p"), depth=Depth.RECORDS)
    context = SimpleNamespace(cut=cut, marks=marks, previous={("t", "i"): 7, ("t", "j"): 2})
    judged = SimpleNamespace(doubted=frozenset(doubted), outputs_from={OUT: 11}, sequences=found)
    audit = Audit(cast("Any", args), cast("Any", loaded), {}, None, cast("Any", None))
    return audit.next_state(cast("Any", context), cast("Any", judged))


def test_the_next_audit_goes_on_from_the_cut() -> None:
    state = left({A: 10, B: 20}, {A: 7}, set(), {("t", "i"): 9})
    assert (state.committed, state.outputs_from, state.outputs_end) == ({A: 10, B: 20}, {OUT: 11}, {OUT: 30})
    assert state.sequences == {("t", "i"): 9, ("t", "j"): 2}


def test_a_partition_in_doubt_keeps_its_mark() -> None:
    """A was set back, B's offset is gone, and of the new one's nothing was audited yet: it is to be judged from its beginning."""
    state = left({A: 5, NEW: 99}, {A: 10, B: 20}, {A, B, NEW}, {})
    assert state.committed == {A: 10, B: 20}
