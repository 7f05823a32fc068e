"""A share of `python -m tests.audit sensitivity`: defects of every kind are found with their exact place, and nothing else is."""

from __future__ import annotations

import dataclasses
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from devkit.reader import read
from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.model import Depth, ExitCode, Kind, Verdict
from tests.audit.auditor import Auditor
from tests.audit.planting import KINDS, Expected, expected_at, found, sow
from tests.audit.scenes import SCENES, add_partition, set_offset
from tests.audit.sensitivity import judged, mixed, scene
from tests.audit.world import World
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_batch.model import Partition
    from tests.audit.world import Fate, Place, Planned

SEED = 20261


@pytest.fixture(scope="module")
def auditor(spark: SparkSession) -> Auditor:
    return Auditor(spark)


def test_every_kind_mixed_in_one_world_is_found_at_depth_content(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """Two of each, in a group that began at offset 32,700 of its source: around a boundary of bitmaps."""
    outcome = mixed(auditor, bootstrap, tmp_path, SEED, [*KINDS.values()] * 2, skip=32_700)
    assert outcome.lines() == []
    assert outcome.planted.total() == 2 * len(KINDS)


def test_every_kind_that_shows_without_the_transform_is_found_at_depth_records(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    kinds = [kind for kind in KINDS.values() if Depth.RECORDS in kind.depths]
    outcome = mixed(auditor, bootstrap, tmp_path, SEED + 1, kinds, depth=Depth.RECORDS, skip=100)
    assert outcome.lines() == []


def test_receipts_are_judged_at_depth_offsets(auditor: Auditor, bootstrap: str, tmp_path: Path) -> None:
    kinds = [kind for kind in KINDS.values() if Depth.OFFSETS in kind.depths] * 3
    outcome = mixed(auditor, bootstrap, tmp_path, SEED + 2, kinds, depth=Depth.OFFSETS)
    assert outcome.lines() == []


def test_a_double_and_a_loss_in_one_receipt_range_do_not_cancel(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """The same output topic and the same bucket of offsets: a count per window would balance."""
    world = World(bootstrap, tmp_path, Random(SEED + 3), records=600, window=30)
    planted = sow(world, [KINDS["doubled_and_missing"]])
    world.write()
    outcome = judged(auditor, world, "both", Depth.RECORDS, Counter(), expected_at(Depth.RECORDS, planted))
    assert outcome.lines() == []
    assert {each.kind for each in outcome.expected} == {Kind.MISSING, Kind.DUPLICATE}
    claimed = sum((part.written for part in world.parts()), Counter[str]())
    stored = Counter(r.topic for r in read(bootstrap, world.sinks) if "reckon.source" in dict(r.headers))
    assert claimed == stored, "totals must not show it, else this shows nothing"


def test_partitions_whose_offsets_were_set_by_hand_and_a_truncated_one_are_told_beside_other_defects(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """A11, A8: each in a partition of its own of one pipeline, in which outputs are missing and doubled besides."""
    names = ["set back to a boundary", "set back into a receipt", "set forward", "beyond the end", "truncated"]
    which = [each for name in names for each in SCENES if name in each.name]
    kinds = [KINDS["missing_output"], KINDS["doubled_later"]]
    outcome = scene(auditor, bootstrap, tmp_path, SEED + 4, which, kinds, depth=Depth.RECORDS)
    assert outcome.lines() == []


def test_topics_that_are_compacted_or_were_recreated_are_told_and_not_judged(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """A7, A10: with a transaction that is still open besides."""
    which = [each for each in SCENES if each.name in ("source compacted", "source recreated", "open transaction")]
    outcome = scene(auditor, bootstrap, tmp_path, SEED + 5, which, depth=Depth.RECORDS)
    assert outcome.lines() == []


def test_a_deleted_group_is_told_from_a_pipeline_that_has_not_begun(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """A11: its receipts are there. Its records are unknown then, not in flight."""
    (which,) = (each for each in SCENES if each.name == "group deleted")
    outcome = scene(auditor, bootstrap, tmp_path, SEED + 6, [which], depth=Depth.RECORDS)
    assert outcome.lines() == []


# Increments


def test_what_comes_after_the_last_audit_for_records_judged_then_is_one_too_many(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """Two ways: a zombie writes an output once more, into a partition that was added since; a hand sets offsets back, the workers do a
    range again and go on, so that at the last audit no offset looks strange. The first audit, of what was there until then, found
    nothing; one in between, before the range is done again, cannot tell more than that the offsets were set back.
    """
    world = World(bootstrap, tmp_path, Random(SEED + 10), records=600)
    half = len(world.transactions) // 2
    fate = next(f for f in world.transactions[0].parts[0].fates if len(f.outputs) == 1)
    zombie = fate.outputs[0].copy()
    state = tmp_path / "state"
    world.write(0, half)
    first = auditor(world.path, state=state)
    assert (first.exit_code, found(first.findings)) == (ExitCode.COMPLETE, [])

    again = world.transactions[half - 1]
    sources = {id(planned): each.place for each in world.fates.values() for planned in _planned(each)}
    copies: list[tuple[Planned, Place]] = []
    for part in again.parts:
        set_offset(world, part.place, part.from_)
        part.messages, originals = [planned.copy() for planned in part.messages], part.messages
        copies += [(copy, sources[id(old)]) for copy, old in zip(part.messages, originals, strict=True)]
    between = auditor(world.path, state=state)
    back = [Expected(Kind.OFFSETS_UNKNOWN, *part.place, part.from_) for part in again.parts]
    assert (between.exit_code, Counter(found(between.findings))) == (ExitCode.CANNOT_JUDGE, Counter(back))

    zombie.partition = add_partition(world, zombie.topic)
    world.transactions.insert(half, dataclasses.replace(again, sequence=1, incarnation="another", late=[zombie]))
    world.write(half)
    second = auditor(world.path, state=state)

    doubles = [Expected(Kind.DUPLICATE, *copy.place, source=source) for copy, source in [*copies, (zombie, fate.place)]]
    overlaps = [Expected(Kind.RECEIPT_OVERLAP, *part.place, part.from_, part.to) for part in again.parts]
    assert Counter(found(second.findings)) == Counter(doubles + overlaps)


def test_offsets_that_were_gone_for_a_while_and_are_restored_cost_nothing_but_the_audit_in_between(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """Nothing is missing, nothing was done twice: the audit goes on where it was before the group was deleted."""
    world = World(bootstrap, tmp_path, Random(SEED + 11), records=400)
    half = len(world.transactions) // 2
    state = tmp_path / "state"
    world.write(0, half)
    offsets = committed(world, half)
    assert auditor(world.path, state=state).exit_code is ExitCode.COMPLETE
    for future in world.admin.delete_consumer_groups([world.loaded.spec.group]).values():
        future.result(PATIENCE_S)
    between = auditor(world.path, state=state)
    gone = [Expected(Kind.OFFSETS_UNKNOWN, *place, None) for place in offsets]
    assert (between.exit_code, Counter(found(between.findings))) == (ExitCode.CANNOT_JUDGE, Counter(gone))
    for place, offset in offsets.items():
        set_offset(world, place, offset)
    world.write(half)
    last = auditor(world.path, state=state)
    assert (last.exit_code, found(last.findings)) == (ExitCode.COMPLETE, [])
    records_judged = sum(records for verdict, records in last.totals.items() if verdict is not Verdict.IN_FLIGHT)
    assert records_judged == sum(len(part.fates) for t in world.transactions[half:] for part in t.parts)


def test_an_output_behind_those_of_later_records_is_told_though_these_were_in_flight_at_the_cut(
    auditor: Auditor, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C lies between the two. Told once: by the audit that judges the earlier record, the next one does not look at it."""
    world = World(bootstrap, tmp_path, Random(SEED + 12), records=400)
    half = len(world.transactions) // 2
    early, number = next(
        (fate, at)
        for transaction in world.transactions[half // 2 : half]
        for fate in (each for part in transaction.parts for each in part.fates if len(each.outputs) == 1)
        for at, later in enumerate(world.transactions[half:], half)
        if fate.place[:2] in {part.place for part in later.parts}
        and any(
            (planned.topic, planned.partition) == (fate.outputs[0].topic, fate.outputs[0].partition)
            for part in later.parts
            if part.place == fate.place[:2]
            for planned in part.messages
        )
    )
    moved = early.outputs[0]
    early.part.messages.remove(moved)
    world.transactions[number].late.append(moved)
    world.write(0, half)
    read_offsets, looks = KafkaAdmin.committed, []

    def read_and_go_on(admin: KafkaAdmin, *rest: Any) -> dict[Partition, int]:
        looks.append(read_offsets(admin, *rest))
        if len(looks) == 1:
            world.write(half, number + 1)
        return looks[-1]

    monkeypatch.setattr(KafkaAdmin, "committed", read_and_go_on)
    state = tmp_path / "state"
    first = auditor(world.path, state=state)
    assert found(first.findings) == [Expected(Kind.REORDERED, *moved.place, source=early.place)]
    world.write(number + 1)
    last = auditor(world.path, state=state)
    assert (last.exit_code, found(last.findings)) == (ExitCode.COMPLETE, [])


def committed(world: World, end: int) -> dict[Partition, int]:
    """What the group has committed after so many transactions."""
    return {part.place: part.to for transaction in world.transactions[:end] for part in transaction.parts}


def _planned(fate: Fate) -> list[Planned]:
    return [*fate.outputs, *([fate.letter] if fate.letter else [])]
