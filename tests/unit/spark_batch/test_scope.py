"""What is audited, and what the cut and the last state already say."""

from __future__ import annotations

from dataclasses import replace

from spark_batch.context import Begin
from spark_batch.model import Cut, Depth, Finding, Kind, OpenTransaction, Range
from spark_batch.scope import scope_of
from spark_batch.state import State

A, B, OUT = ("in", 0), ("in", 1), ("out", 0)
CUT = Cut(
    taken_ms=0,
    group="g",
    committed={A: 10, B: 20},
    source_start={A: 0, B: 4},
    source_end={A: 12, B: 20},
    outputs={OUT: Range(3, 30)},
    topic_ids={"in": "1", "out": "2"},
    compacted=frozenset(),
    waited_s=0.0,
)
STATE = State("p", "g", Depth.RECORDS, 0, {A: 7}, {OUT: 15}, {"in": "1", "out": "2"}, {("t", "i"): 3})


def test_without_a_state_it_begins_at_the_log_start() -> None:
    scope = scope_of(CUT, None)
    assert scope.audited == {A: Range(0, 10), B: Range(4, 20)}
    assert scope.begin == {A: Begin.BEGINNING, B: Begin.BEGINNING}
    assert (scope.outputs_from, scope.previous, scope.findings) == ({OUT: 0}, None, ())


def test_with_a_state_it_goes_on_and_takes_new_partitions_whole() -> None:
    scope = scope_of(CUT, STATE)
    assert scope.audited == {A: Range(7, 10), B: Range(4, 20)}
    assert scope.begin == {A: Begin.CONTINUED, B: Begin.BEGINNING}
    assert (scope.outputs_from, scope.previous, scope.findings) == ({OUT: 15}, STATE.sequences, ())


def test_marks_are_kept_whatever_the_group_says_now() -> None:
    """Also of a partition whose offset is gone; not of one that is no source any more."""
    state = replace(STATE, committed={A: 7, B: 9, ("in", 9): 3})
    for committed in ({A: 10, B: 20}, {A: 6, B: 20}, {A: 13}, {}):
        assert scope_of(replace(CUT, committed=committed), state).marks == {A: 7, B: 9}
    assert scope_of(CUT, None).marks == {}


def test_an_output_partition_that_was_added_is_new_from_its_first_record_on() -> None:
    """Of a topic that the state does not know it cannot be said since when its records are there."""
    outputs = {OUT: Range(3, 30), ("out", 1): Range(0, 5), ("other", 0): Range(0, 9)}
    cut = replace(CUT, outputs=outputs, topic_ids={**CUT.topic_ids, "other": "3"})
    assert scope_of(cut, replace(STATE, outputs_end={OUT: 20})).seen == {OUT: 20, ("out", 1): 0}
    assert scope_of(cut, None).seen == {}
    recreated = replace(cut, topic_ids={**cut.topic_ids, "out": "9"})
    assert scope_of(recreated, replace(STATE, outputs_end={OUT: 20})).seen == {}


def test_since_begins_at_offsets_by_time_and_reads_all_outputs() -> None:
    """A partition without a record so late has nothing to judge; a time beyond C begins at C."""
    scope = scope_of(CUT, STATE, {A: 11})
    assert scope.audited == {A: Range(10, 10), B: Range(20, 20)}
    assert scope_of(CUT, STATE, {A: 2, B: 9}).audited == {A: Range(2, 10), B: Range(9, 20)}
    assert (scope.begin, scope.outputs_from, scope.previous) == (dict.fromkeys((A, B), Begin.SINCE), {OUT: 0}, None)


def test_offsets_that_cannot_be_believed_are_unknown() -> None:
    """A11: gone, beyond the end, reset backwards."""
    gone = scope_of(replace(CUT, committed={B: 20}), STATE)
    beyond = scope_of(replace(CUT, committed={A: 13, B: 20}), None)
    back = scope_of(replace(CUT, committed={A: 6, B: 20}), STATE)
    found = [(set(scope.unknown), scope.audited.get(A), scope.findings) for scope in (gone, beyond, back)]

    def unknown(offset: int | None, detail: str) -> tuple[Finding, ...]:
        return (Finding(Kind.OFFSETS_UNKNOWN, "in", 0, offset, detail=f"group g: {detail}"),)

    assert found == [
        ({A}, None, unknown(None, "its offset is gone (expired or deleted); it was audited up to 7")),
        ({A}, Range(0, 13), unknown(13, "its offset 13 lies beyond the partition's end 12")),
        ({A}, Range(6, 6), unknown(6, "its offset 6 was reset backwards; it was audited up to 7")),
    ]


def test_a_partition_that_nobody_ever_consumed_is_no_finding() -> None:
    scope = scope_of(replace(CUT, committed={B: 20}), None)
    assert [*scope.audited, *scope.unknown, *scope.findings] == [B]


def test_a_recreated_topic_is_told_and_what_the_state_says_of_it_forgotten() -> None:
    """A10."""
    scope = scope_of(replace(CUT, topic_ids={"in": "9", "out": "8"}), STATE)
    assert scope.recreated == {"in", "out"}
    assert [(finding.kind, finding.topic) for finding in scope.findings] == [
        (Kind.TOPIC_RECREATED, "in"),
        (Kind.TOPIC_RECREATED, "out"),
    ]
    assert (scope.audited[A], scope.begin[A], scope.outputs_from) == (Range(0, 10), Begin.BEGINNING, {OUT: 0})


def test_open_transactions_are_named() -> None:
    """A12: a hanging one is told from one that its coordinator knows."""
    running = OpenTransaction("out", 0, 7, 1, 5, 1_769_860_800_000, "Ongoing", "tx")
    hanging = replace(running, coordinator_state=None, transactional_id=None)
    findings = scope_of(replace(CUT, open_transactions=(running, hanging)), None).findings
    since = "last write 2026-01-31T12:00:00+00:00"
    assert findings == (
        Finding(
            Kind.OPEN_TRANSACTION,
            *OUT,
            5,
            detail=f"producer 7, epoch 1, transactional id tx: {since}; its coordinator says Ongoing",
        ),
        Finding(
            Kind.HANGING_TRANSACTION,
            *OUT,
            5,
            detail=f"producer 7, epoch 1: {since}; its coordinator does not list it: it hangs",
        ),
    )
