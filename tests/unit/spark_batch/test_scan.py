"""One pass over outputs: every output lands in exactly one of bitmaps, in flight, foreign, orphans, or what was judged before."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from spark_batch.bitmaps import SIZE, unpack
from spark_batch.latency import Sample, unpack_times
from spark_batch.model import Range
from spark_batch.plan import SOURCE, Plan
from spark_batch.scan import OutputScan, SourceScan
from spark_batch.scanned import OPEN_BUCKETS, What

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAN = Plan(
    sources=(("in", 0), ("in", 1), ("other", 0)),
    begin=(0, 10, 0),
    committed=(100, 20, 10**6),
    end=(150, 20, 10**6),
    log_start=(0, 0, 0),
    never_claimed_below=(0, 5, 0),
    outputs=("out",),
    dead_letters="dead",
)


def batch(texts: Sequence[str | None], partition: int = 3, start: int = 0) -> pa.RecordBatch:
    encoded = [None if text is None else text.encode() for text in texts]
    columns = [
        pa.array([partition] * len(texts), pa.int32()),
        pa.array(range(start, start + len(texts)), pa.int64()),
        pa.array(encoded, pa.binary()),
    ]
    return pa.record_batch(columns, names=["partition", "offset", "lineage"])


def scanned(*texts: str | None, size: int = 1000, plan: Plan = PLAN) -> list[dict[str, Any]]:
    batches = [batch(texts[at : at + size], start=at) for at in range(0, len(texts), size)]
    rows = [row for made in OutputScan(plan, 0)(batches) for row in made.to_pylist()]
    assert all(row["partition"] == 3 and row["topic"] == 0 for row in rows)
    return rows


def of(rows: list[dict[str, Any]], what: What, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in names) for row in rows if row["what"] == what)


def bits(rows: list[dict[str, Any]]) -> dict[tuple[int, int], list[int]]:
    """(source, index) -> offsets seen."""
    found: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        if row["what"] == What.BITS:
            offsets = np.flatnonzero(unpack(row["once"])) + row["bucket"] * SIZE
            found.setdefault((row["source"], row["index"]), []).extend(offsets.tolist())
    return {key: sorted(set(offsets)) for key, offsets in found.items()}


def test_outputs_to_be_judged_are_seen_by_source_and_index() -> None:
    rows = scanned("in/0/1/0", "in/0/1/1", "in/0/99/0", "in/1/10/0", "other/0/70000/0")
    assert bits(rows) == {(0, 0): [1, 99], (0, 1): [1], (1, 0): [10], (2, 0): [70_000]}
    assert of(rows, What.COMMITTED, "n") == [(5,)]


def test_in_flight_is_what_lies_between_c_and_the_end_and_the_first_of_it_is_known() -> None:
    rows = scanned("in/0/99/0", "in/0/100/0", "in/0/149/0")
    assert of(rows, What.IN_FLIGHT, "n", "low") == [(2, 1)]
    assert bits(rows) == {(0, 0): [99]}


def test_outputs_of_what_was_judged_before_are_passed_over() -> None:
    assert bits(scanned("in/1/7/0")) == {}


def test_outputs_without_lineage_are_foreign() -> None:
    rows = scanned(None, "in/0/1/0", None)
    assert of(rows, What.FOREIGN, "n") == [(2,)]
    assert of(rows, What.ORPHAN, "low") == []


def test_outputs_of_another_pipeline_are_foreign_where_the_topic_that_they_name_exists() -> None:
    shared = replace(PLAN, others=frozenset({"up", "down"}))
    rows = scanned("up/0/0/0", "in/0/1/0", "gone/0/0/0", "up/0/x/0", "down/77/5/1", "up/0/1", plan=shared)
    assert of(rows, What.FOREIGN, "n") == [(2,)]
    assert of(rows, What.ORPHAN, "low", "text") == [(2, "gone/0/0/0"), (3, "up/0/x/0"), (5, "up/0/1")]
    assert bits(rows) == {(0, 0): [1]}


@pytest.mark.parametrize(
    "text", ["in/0/150/0", "in/1/4/0", "in/2/0/0", "in/99/0/0", "up/0/0/0", "", "in/0/1", "in/0/x/0"]
)
def test_an_output_that_no_source_record_can_have_is_an_orphan(text: str) -> None:
    rows = scanned("in/0/1/0", text)
    assert of(rows, What.ORPHAN, "low", "text") == [(1, text)]
    assert bits(rows) == {(0, 0): [1]}


def test_disorder_is_noticed_within_a_batch_and_across_batches_and_told_per_source() -> None:
    ascending = ["in/0/1/0", "in/1/10/0", "in/0/1/1", "in/1/11/0", "in/0/2/0"]
    assert of(scanned(*ascending, size=2), What.DISORDER, "source") == []
    for size in (1, 2, 10):
        assert of(scanned(*ascending, "in/0/1/2", size=size), What.DISORDER, "source") == [(0,)]
        assert of(scanned("in/1/10/1", "in/1/10/0", size=size), What.DISORDER, "source") == [(1,)]


def test_orphans_are_no_disorder_nor_are_outputs_in_flight_among_themselves() -> None:
    """The next audit judges those."""
    for size in (1, 10):
        texts = ("in/0/2/0", "in/0/999/0", "in/0/3/0", "in/0/149/0", "in/0/120/1", "in/0/120/0")
        assert of(scanned(*texts, size=size), What.DISORDER, "source") == []


def test_what_is_judged_behind_what_is_in_flight_is_disorder() -> None:
    """Offset 3 behind 149, with C between them: the next audit does not look at 3 any more."""
    for size in (1, 2, 10):
        rows = scanned("in/0/2/0", "in/0/149/0", "in/1/10/0", "in/0/3/0", "in/0/120/0", size=size)
        assert of(rows, What.DISORDER, "source") == [(0,)]
        assert bits(rows) == {(0, 0): [2, 3], (1, 0): [10]}
        assert of(rows, What.IN_FLIGHT, "n", "low") == [(2, 1)]
    assert of(scanned("in/1/9/0", "in/1/10/0", "in/1/8/0"), What.DISORDER, "source") == []  # judged before


def test_in_a_partition_that_retention_has_shortened_the_first_output_of_each_source_partition_is_told() -> None:
    """Whether it is to be judged or not; but neither an orphan nor one of what the last audit judged, and in no other partition."""
    texts = ["in/0/999/0", None, "in/1/11/0", "in/0/7/1", "in/0/8/0", "in/1/12/0", "other/0/3/0"]
    shortened = replace(PLAN, removed={("out", 3): 1, ("out", 4): 1, ("dead", 3): 1})
    for size in (1, 3, 10):
        rows = scanned(*texts, size=size, plan=shortened)
        assert of(rows, What.FIRST, "source", "high", "low") == [(0, 7, 3), (1, 11, 2), (2, 3, 6)]
    rows = scanned(*texts, plan=replace(shortened, judged_below=(8, 12, 4)))
    assert of(rows, What.FIRST, "source", "high", "low") == [(0, 8, 4), (1, 12, 5)]
    assert of(scanned(*texts, plan=replace(PLAN, removed={("out", 4): 1})), What.FIRST, "source") == []


def test_far_apart_offsets_are_handed_over_in_time_and_none_is_lost() -> None:
    dice = Random(3)
    texts = [f"other/0/{dice.randrange(10**6)}/{dice.randrange(60)}" for _ in range(5000)]
    rows = scanned(*texts, size=500)
    expected: dict[tuple[int, int], list[int]] = {}
    for text in set(texts):
        _, _, offset, index = text.split("/")
        expected.setdefault((2, int(index)), []).append(int(offset))
    assert bits(rows) == {key: sorted(offsets) for key, offsets in expected.items()}
    assert sum(row["n"] for row in rows if row["what"] == What.BITS) == 5000
    assert len({(row["index"], row["bucket"]) for row in rows if row["what"] == What.BITS}) > OPEN_BUCKETS


def source_batch(offsets: Sequence[int], times: Sequence[int], keys: Sequence[int | None]) -> pa.RecordBatch:
    columns = [
        pa.array([1] * len(offsets), pa.int32()),
        *(pa.array(column, pa.int64()) for column in (offsets, times, keys)),
    ]
    return pa.record_batch(columns, names=["partition", "offset", "time_ms", "key"])


def test_source_records_are_seen_by_their_own_offsets_with_their_times() -> None:
    """Times go by bucket, without those that have none; what came late is told once per partition."""
    batches = [
        source_batch([3, 5], [1000, 900], [7, 7]),
        source_batch([SIZE - 1, SIZE + 1, SIZE + 2], [-1, 2000, 1600], [7, None, 7]),
        source_batch([SIZE + 9], [500], [7]),
    ]
    sample = Sample(0, {("in", 1): (Range(0, SIZE + 9),), ("other", 1): (Range(0, 10**6),)})
    rows = [row for made in SourceScan(PLAN, "in", sample)(batches) for row in made.to_pylist()]
    assert bits(rows) == {(1, 0): [3, 5, SIZE - 1, SIZE + 1, SIZE + 2, SIZE + 9]}
    assert {row["topic"] for row in rows} == {SOURCE}
    times = [
        (row["bucket"], *(column.tolist() for column in unpack_times(row["times"])))
        for row in rows
        if row["what"] == What.TIMES
    ]
    assert times == [(0, [3, 5], [1000, 900]), (1, [1, 2], [2000, 1600]), (1, [9], [500])]
    assert of(rows, What.TARDY, "source", "n", "low", "high") == [(1, 3, 1, 100)]


def test_of_a_sample_only_the_times_that_are_drawn_are_kept() -> None:
    offsets = list(range(4000))
    sample = Sample(2)
    rows = [
        row
        for made in SourceScan(PLAN, "in", sample)([source_batch(offsets, offsets, [None] * 4000)])
        for row in made.to_pylist()
    ]
    (found,) = [unpack_times(row["times"]) for row in rows if row["what"] == What.TIMES]
    drawn = np.flatnonzero(sample.drawn(np.arange(4000))).tolist()
    assert (drawn, drawn) == (found[0].tolist(), found[1].tolist())
    assert of(rows, What.TARDY, "n") == []
    assert bits(rows) == {(1, 0): offsets}
