"""Which offsets are judged, and what becomes of the outputs of those that are not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from spark_batch.context import Begin
from spark_batch.model import Cut, Range, Verdict
from spark_batch.planning import _numbered

if TYPE_CHECKING:
    from spark_batch.plan import Plan
    from spark_batch.planning import Aside

SOUND, BACK, GONE, BEYOND, NEVER, MADE_ANEW = ((name, 0) for name in "abcdef")


def plan() -> Plan:
    """Of six source partitions, three of them in doubt: one set back below its mark, one without an offset, one without a mark."""
    committed = {SOUND: 15, BACK: 5, BEYOND: 900, MADE_ANEW: 12}
    marks = {SOUND: 10, BACK: 20, GONE: 30, MADE_ANEW: 8}
    everywhere = (SOUND, BACK, GONE, BEYOND, NEVER, MADE_ANEW)
    cut = Cut(0, "g", committed, dict.fromkeys(everywhere, 2), dict.fromkeys(everywhere, 50), {}, {}, frozenset(), 0.0)
    audited = {SOUND: Range(10, 15), BACK: Range(5, 5), BEYOND: Range(2, 900), MADE_ANEW: Range(8, 12)}
    aside: Aside = {each: (Verdict.UNKNOWN, audited[each], 0) for each in (BACK, BEYOND)}
    aside[MADE_ANEW] = Verdict.UNVERIFIABLE, audited[MADE_ANEW], 0
    spec = SimpleNamespace(receipts_topic="r", dead_letter_topic="d", source=SimpleNamespace(start="earliest"))
    context = SimpleNamespace(
        cut=cut,
        audited=audited,
        marks=marks,
        seen={("out", 0): 4},
        previous={},
        begin=dict.fromkeys(audited, Begin.CONTINUED),
        topics=frozenset(),
        loaded=SimpleNamespace(spec=spec, transform=SimpleNamespace(topics=["out"])),
    )
    summaries = {SOUND: {"start": 10, "end": 10}}
    return _numbered(cast("Any", context), summaries, aside, {BACK, GONE, BEYOND})


def test_where_the_offset_is_in_doubt_outputs_from_the_mark_on_are_left_to_the_next_audit() -> None:
    """Without a mark all of them are: the next audit begins at the beginning. Nothing is judged there now."""
    made = plan()
    ends = dict(zip(made.sources, zip(made.begin, made.committed, strict=True), strict=True))
    assert ends == {
        SOUND: (10, 15),
        BACK: (20, 20),
        GONE: (30, 30),
        BEYOND: (2, 2),
        NEVER: (2, 2),
        MADE_ANEW: (12, 12),
    }


def test_copies_that_came_late_are_told_also_where_the_offset_is_in_doubt() -> None:
    """The next audit takes them for seen. Not of a topic that may be another one now."""
    made = plan()
    below = dict(zip(made.sources, made.judged_below, strict=True))
    assert below == {SOUND: 10, BACK: 20, GONE: 30, BEYOND: 0, NEVER: 0, MADE_ANEW: 0}
