"""Which offsets are judged, and what becomes of the others' outputs; a group that has not begun, or whose offsets are gone (A11); and what
receipts leave open.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, cast

import pytest

from spark_batch import planning
from spark_batch.context import Begin
from spark_batch.model import Cut, Finding, Kind, Range, Verdict
from spark_batch.planning import _numbered, _receipt_notes, lost_group

if TYPE_CHECKING:
    from spark_batch.context import Context
    from spark_batch.model import Partition
    from spark_batch.plan import Plan
    from spark_batch.planning import Aside

A, B, EMPTY = ("in", 0), ("in", 1), ("in", 2)


class Admin:
    """Kafka's, as far as it is asked."""

    now: dict[Partition, int]

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def committed(self, group: str, partitions: object) -> dict[Partition, int]:
        assert (group, set(cast("Any", partitions))) == ("g", {A, B, EMPTY})
        return self.now


def context(**committed: int) -> Context:
    offsets = {("in", int(name[1:])): offset for name, offset in committed.items()}
    cut = SimpleNamespace(
        group="g", committed=offsets, source_end={A: 9, B: 4, EMPTY: 0}, outputs={("r", 0): Range(5, 8)}
    )
    spec = SimpleNamespace(receipts_topic="r")
    made = SimpleNamespace(cut=cut, spark=None, kafka={}, loaded=SimpleNamespace(spec=spec), outputs_from={})
    return cast("Context", made)


@pytest.fixture(autouse=True)
def admin(monkeypatch: pytest.MonkeyPatch) -> type[Admin]:
    Admin.now = {}
    monkeypatch.setattr(planning, "KafkaAdmin", Admin)
    return Admin


def places(findings: list[Finding]) -> list[tuple[Kind, str, int, int | None]]:
    return [(finding.kind, finding.topic, finding.partition, finding.offset) for finding in findings]


def test_a_group_without_any_offset_that_once_had_some_is_unknown_wherever_there_was_anything() -> None:
    lost = lost_group(context(), [], "there are outputs")
    assert places(lost) == [(Kind.OFFSETS_UNKNOWN, *A, None), (Kind.OFFSETS_UNKNOWN, *B, None)]
    assert lost[0].detail == "group g: nothing is committed, but there are outputs: its offsets expired or were deleted"


def test_what_is_told_already_is_not_told_twice() -> None:
    told = [Finding(Kind.OFFSETS_UNKNOWN, *A, None), Finding(Kind.COMPACTED, *B, None)]
    assert places(lost_group(context(), told, "")) == [(Kind.OFFSETS_UNKNOWN, *B, None)]


def test_a_group_that_committed_its_first_offset_since_the_cut_has_just_begun(admin: type[Admin]) -> None:
    admin.now = {B: 1}
    assert lost_group(context(), [], "") == []


def test_a_group_with_some_offset_is_judged_by_it() -> None:
    assert lost_group(context(p1=4), [], "") == []


def test_notes_say_what_receipts_leave_open() -> None:
    assert _receipt_notes(context(), {A: [3, 0, 0, 0], B: [0, 0, 0, 0]}) == []
    unproven, nameless = _receipt_notes(context(), {A: [0, 40, 2, 0], B: [0, 2, 1, 0]})
    assert "partitions r 0 below offset 5). 42 source offsets" in unproven
    assert nameless.startswith("3 receipts do not carry the id of in:")


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
        outputs_from={},
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
        BEYOND: (0, 0),
        NEVER: (0, 0),
        MADE_ANEW: (12, 12),
    }


def test_copies_that_came_late_are_told_also_where_the_offset_is_in_doubt() -> None:
    """The next audit takes them for seen. Not of a topic that may be another one now."""
    made = plan()
    below = dict(zip(made.sources, made.judged_below, strict=True))
    assert below == {SOUND: 10, BACK: 20, GONE: 30, BEYOND: 0, NEVER: 0, MADE_ANEW: 0}
