"""What retention removed, of outputs, receipts and the group's offsets, is never missing and never complete (A8, A10, A11)."""

from __future__ import annotations

import shutil
from random import Random
from typing import TYPE_CHECKING

import orjson
import pytest

from devkit.reader import Reader, read
from spark_batch.model import Depth, ExitCode, Kind, Range, Verdict
from tests.audit.auditor import Auditor
from tests.audit.planting import Expected, found
from tests.audit.scenes import delete_records, recreate
from tests.audit.world import World
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_batch.model import Judgement, Partition
    from tests.audit.world import Fate, Planned

SEED = 20267


@pytest.fixture(scope="module")
def auditor(spark: SparkSession) -> Auditor:
    return Auditor(spark)


def ends(world: World, topic: str) -> dict[Partition, int]:
    with Reader(world.bootstrap) as reader:
        return reader.end_offsets(reader.partitions_of([topic]))


def verdict_of(judgement: Judgement) -> tuple[ExitCode, list[Expected], int]:
    """(exit code, findings, records expired)"""
    return judgement.exit_code, found(judgement.findings), judgement.totals.get(Verdict.EXPIRED, 0)


def late(world: World, fate: Fate) -> bool:
    topic, partition, offset = fate.place
    return offset > world.ends[topic, partition] * 3 // 4 and [each.topic for each in fate.outputs] == [world.out]


def test_outputs_that_retention_took_before_their_sources_are_expired_and_what_is_lost_beyond_doubt_is_missing(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """A sink with a shorter retention than its source: half of one of its partitions is gone, and all of one of the dead letters'."""
    world = World(bootstrap, tmp_path, Random(SEED), records=600)
    half = len(world.transactions) // 2
    done = {id(part) for transaction in world.transactions[:half] for part in transaction.parts}
    lost = world.pick(lambda fate: late(world, fate) and id(fate.part) not in done)
    lost.part.messages.remove(lost.outputs[0])
    world.write(0, half)
    shortened = {(world.out, 0): ends(world, world.out)[world.out, 0] // 2}
    shortened[world.letters, 0] = ends(world, world.letters)[world.letters, 0]
    for place, before in shortened.items():
        delete_records(world, place, before)

    def removed(planned: Planned | None) -> bool:
        if planned is None or planned.offset is None:
            return False
        return planned.offset < shortened.get((planned.topic, planned.partition), 0)

    written = [fate for fate in world.fates.values() if id(fate.part) in done]
    doubtful = {id(fate.part) for fate in written if removed(fate.letter)}
    gone = [
        fate
        for fate in written
        if removed(fate.letter)
        or any(map(removed, fate.outputs))
        # The receipt tells of a dead letter that is not there: of each record that yields nothing it may be the one.
        or (fate.filtered and id(fate.part) in doubtful)
    ]
    assert min(len(gone), len(doubtful)) > 2
    judgement = auditor(world.path)
    assert verdict_of(judgement) == (ExitCode.CANNOT_JUDGE, [], len(gone))
    assert all(any(f"{t} {p} below offset {n}" in note for note in judgement.notes) for (t, p), n in shortened.items())

    world.write(half)
    assert verdict_of(auditor(world.path)) == (ExitCode.FINDINGS, [Expected(Kind.MISSING, *lost.place)], len(gone))


def test_receipts_and_outputs_that_expired_between_two_audits_are_neither_missing_nor_complete(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    world = World(bootstrap, tmp_path, Random(SEED + 1), records=600)
    state, other = tmp_path / "state", tmp_path / "other"
    first, second = len(world.transactions) // 3, len(world.transactions) * 2 // 3
    world.write(0, first)
    assert auditor(world.path, state=state).exit_code is ExitCode.COMPLETE
    shutil.copytree(state, other)
    seen = ends(world, world.receipts)
    world.write(first, second)
    receipts = [r for r in read(bootstrap, [world.receipts]) if r.offset >= seen[r.topic, r.partition]]
    place = world.receipts, max(receipts, key=lambda r: r.partition).partition
    delete_records(world, place, ends(world, world.receipts)[place])
    world.write(second)
    expired = {
        (entry["topic"], entry["partition"], entry["from"]): entry["read"]
        for receipt in receipts
        if receipt.partition == place[1]
        for entry in orjson.loads(receipt.value or b"")["partitions"]
    }
    assert sum(expired.values()) > 20
    judgement = auditor(world.path, state=state)
    assert verdict_of(judgement) == (ExitCode.CANNOT_JUDGE, [], sum(expired.values()))
    assert any("retention removed receipts" in note for note in judgement.notes)
    exit_code, findings, offsets = verdict_of(auditor(world.path, Depth.OFFSETS, state=other))
    assert (exit_code, findings) == (ExitCode.CANNOT_JUDGE, [])
    assert offsets >= sum(expired.values()), "markers are among them"


def test_without_receipts_nobody_knows_where_a_group_began_and_without_offsets_how_far_it_came(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """A group that began at the end (`start: latest`). Its receipts expire, then its offsets; then outputs alone tell of it."""
    world = World(bootstrap, tmp_path, Random(SEED + 2), records=300, start="latest", skip=40)
    world.write()
    committed = world.committed
    for place, end in ends(world, world.receipts).items():
        delete_records(world, place, max(0, end - 2))  # of each partition at most one receipt is left, and its marker
    judgement = auditor(world.path, Depth.OFFSETS)
    assert (judgement.exit_code, judgement.findings) == (ExitCode.CANNOT_JUDGE, ())
    assert judgement.audited == {place: Range(0, end) for place, end in committed.items()}
    claimed = judgement.totals[Verdict.CLAIMED]
    assert 0 < claimed < len(world.fates) < claimed + judgement.totals[Verdict.EXPIRED]

    for place, end in ends(world, world.receipts).items():
        delete_records(world, place, end)
    judgement = auditor(world.path)
    everything = len(world.fates) + 40 * len(world.sources)
    assert verdict_of(judgement) == (ExitCode.CANNOT_JUDGE, [], everything)

    for future in world.admin.delete_consumer_groups([world.loaded.spec.group]).values():
        future.result(PATIENCE_S)
    unknown = [Expected(Kind.OFFSETS_UNKNOWN, *place, None) for place in world.sources]
    assert verdict_of(auditor(world.path, Depth.OFFSETS)) == (ExitCode.CANNOT_JUDGE, unknown, 0)
    recreate(world, world.receipts, 2)
    judgement = auditor(world.path)
    assert verdict_of(judgement) == (ExitCode.CANNOT_JUDGE, unknown, 0)
    assert judgement.totals == {Verdict.UNKNOWN: sum(judgement.cut.source_end.values())}


def test_a_pipeline_that_has_not_begun_is_no_alarm_and_receipts_without_topic_ids_are_told(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    world = World(bootstrap, tmp_path, Random(SEED + 3), records=200)
    judgement = auditor(world.path)
    assert (judgement.exit_code, judgement.findings, set(judgement.totals)) == (
        ExitCode.COMPLETE,
        (),
        {Verdict.IN_FLIGHT},
    )
    world.topic_ids = dict.fromkeys(world.topic_ids)
    world.write()
    judgement = auditor(world.path, Depth.OFFSETS)
    assert (judgement.exit_code, judgement.findings) == (ExitCode.COMPLETE, ())
    topics = sorted({topic for topic, _ in world.sources})
    assert topics == [
        topic for note in judgement.notes for topic in topics if f"do not carry the id of {topic}" in note
    ]
