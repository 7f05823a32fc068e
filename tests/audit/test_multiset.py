"""Pipelines without lineage: outputs are told by content, and what is lost, doubled, altered or in flight is found all the same."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from confluent_kafka import Producer

from devkit.reader import read
from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.model import Depth, ExitCode, Kind, Verdict
from spark_batch.multiset import _pairs
from spark_batch.sides import BEFORE, EXPECTED, FLYING, FOUND
from tests.audit.auditor import Auditor
from tests.audit.planting import KINDS, Expected, found, sow
from tests.audit.test_judge import verdicts
from tests.audit.world import World
from tests.support.pipelines import EPOCH_MS, Scene
from tests.support.waiting import PATIENCE_S
from worker.lineage import HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_batch.model import Judgement, Partition

SEED = 20264
BARE = "lineage: false\n"


@pytest.fixture(scope="module")
def auditor(spark: SparkSession) -> Auditor:
    return Auditor(spark)


def bare_world(bootstrap: str, folder: Path, seed: int, **settings: Any) -> World:
    return World(bootstrap, folder, Random(seed), more=BARE, **settings)


def strip(world: World) -> None:
    """As a worker writes them that leaves no lineage."""
    for part in world.parts():
        for planned in (each for each in part.messages if each.topic != world.letters):
            planned.headers = [header for header in planned.headers if header[0] != HEADER]


def of_others(world: World) -> list[Expected]:
    """Other writers' records cannot be told from outputs that nobody asked for."""
    return [
        Expected(Kind.ORPHAN, r.topic, r.partition, r.offset)
        for r in read(world.bootstrap, world.sinks)
        if r.key == b"foreign"
    ]


def ordered(findings: Iterable[Expected]) -> list[Expected]:
    return sorted(findings, key=str)


def judged(judgement: Judgement) -> dict[Verdict, int]:
    return {verdict: n for verdict, n in judgement.totals.items() if verdict is not Verdict.IN_FLIGHT}


def test_real_workers_without_lineage_are_complete_by_content_and_the_next_audit_goes_on_from_there(
    bootstrap: str, auditor: Auditor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECKON_BOOTSTRAP_SERVERS", bootstrap)
    state = tmp_path / "state"
    with Scene(bootstrap, tmp_path, records=100, more=BARE) as scene:
        scene.produce(250)
        scene.produce_in_transactions(200)
        twins = Producer({"bootstrap.servers": bootstrap})
        for _ in range(5):  # the same to the last bit: nobody can tell their outputs apart
            twins.produce(scene.source, b'{"n": 1}', b"twin", 0, timestamp=EPOCH_MS)
        assert twins.flush(PATIENCE_S) == 0
        scene.drain()
        first = auditor(scene.path, state=state)
        assert (first.exit_code, first.findings, first.depth) == (ExitCode.COMPLETE, (), Depth.CONTENT)
        assert judged(first) == verdicts(scene)
        assert "lineage: false" in first.notes[0]
        assert all(row.foreign == row.in_flight == 0 for row in first.ledger)
        assert all(balance.claimed == balance.found > 0 for balance in first.balances)
        scene.produce(150)
        scene.drain()
        second = auditor(scene.path, state=state)
        assert (second.exit_code, second.findings) == (ExitCode.COMPLETE, ())
        total = {verdict: n + judged(second)[verdict] for verdict, n in judged(first).items()}
        assert total == verdicts(scene)


def test_at_depth_offsets_lineage_is_not_needed(bootstrap: str, auditor: Auditor, tmp_path: Path) -> None:
    world = bare_world(bootstrap, tmp_path, SEED, records=200)
    world.write()
    judgement = auditor(world.path, Depth.OFFSETS)
    assert (judgement.exit_code, judgement.depth) == (ExitCode.COMPLETE, Depth.OFFSETS)
    assert set(judged(judgement)) == {Verdict.CLAIMED}


def test_each_lost_doubled_and_altered_output_is_found_and_nothing_else(
    bootstrap: str, auditor: Auditor, tmp_path: Path
) -> None:
    """An altered output is one that is missing and an orphan; so is one in the wrong topic."""
    world = bare_world(bootstrap, tmp_path, SEED, records=900)
    same = ["missing_output", "missing_all_of_several", "missing_and_denied", "doubled_at_once", "doubled_later"]
    same += ["tripled", "doubled_and_missing", "dead_missing", "dead_doubled"]
    once = ["receipt_missing", "receipt_figures"]  # two receipts side by side would leave one gap
    planted = sow(world, [KINDS[name] for name in (*same, *same, *once)])
    split = ["altered_value", "altered_key", "altered_header", "altered_timestamp", "misrouted"]
    altered = sow(world, [KINDS[name] for name in split for _ in range(2)])
    strip(world)
    world.write()
    judgement = auditor(world.path)
    expected = [each for _, reveal in planted for each in reveal()] + of_others(world)
    for each in (each for _, reveal in altered for each in reveal()):
        assert each.source is not None
        expected.append(Expected(Kind.ORPHAN, each.topic, each.partition, each.offset))
        expected.append(Expected(Kind.MISSING, *each.source))
    assert ordered(expected) == ordered(found(judgement.findings))
    assert judgement.exit_code is ExitCode.FINDINGS


def test_outputs_in_flight_are_no_orphans_and_the_next_audit_judges_them(
    bootstrap: str, auditor: Auditor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the transactions is committed while the cut is taken: after the group's offsets were read, before the outputs' ends."""
    world = bare_world(bootstrap, tmp_path, SEED + 1, records=600)
    strip(world)
    half = len(world.transactions) // 2
    late = {id(part) for transaction in world.transactions[half:] for part in transaction.parts}
    lost = world.pick(lambda fate: len(fate.outputs) == 1 and id(fate.part) in late)
    lost.part.messages.remove(lost.outputs[0])
    world.write(0, half)
    read_offsets, calls = KafkaAdmin.committed, 0

    def committed(
        admin: KafkaAdmin, group: str, partitions: Iterable[Partition], wait_s: float = PATIENCE_S
    ) -> dict[Partition, int]:
        nonlocal calls
        offsets = read_offsets(admin, group, partitions, wait_s)
        calls += 1
        if calls == 1:
            world.write(half)
        return offsets

    monkeypatch.setattr(KafkaAdmin, "committed", committed)
    state = tmp_path / "state"
    first = auditor(world.path, state=state)
    assert ordered(of_others(world)) == ordered(found(first.findings))
    assert sum(row.in_flight for row in first.ledger if row.role == "output") > 100
    second = auditor(world.path, state=state)
    assert [Expected(Kind.MISSING, *lost.place)] == found(second.findings)
    assert sum(judged(first).values()) + sum(judged(second).values()) == len(world.fates)


_Side: TypeAlias = "tuple[int, int | None, int]"


def _fates(spark: SparkSession, rows: list[_Side]) -> list[tuple[str, int | None, int | None]]:
    """`rows`: what, offset of the source record or null, place. All of one content. Returns (fate, source offset, place)."""
    schema = "what int, source int, offset bigint, index bigint, topic int, print binary, time_ms bigint, partition int, place bigint"
    made = [
        (what, None if at is None else 0, at, None if at is None else 0, 0, b"x", 5, 0, place)
        for what, at, place in rows
    ]
    pairs = _pairs(spark.createDataFrame(made, schema)).orderBy("n").collect()
    return [
        (row["fate"], row["slot"] and row["slot"]["offset"], row["there"] and row["there"]["place"]) for row in pairs
    ]


def test_outputs_of_equal_content_are_dealt_out_in_order(spark: SparkSession) -> None:
    must: list[_Side] = [(EXPECTED, 3, -1), (EXPECTED, 8, -1)]
    may: list[_Side] = [(FLYING, 20, -1)]
    there: list[_Side] = [(FOUND, None, place) for place in (50, 51, 52, 53)]
    assert _fates(spark, must + there[:1]) == [("right", 3, 50), ("missing", 8, None)]
    assert _fates(spark, must + there[:2]) == [("right", 3, 50), ("right", 8, 51)]
    assert _fates(spark, must + may + there) == [
        ("right", 3, 50),
        ("right", 8, 51),
        ("flying", 8, 52),
        ("double", 8, 53),
    ]
    assert _fates(spark, may + there[:1]) == [("flying", None, 50)]
    assert _fates(spark, there[:1]) == [("orphan", None, 50)]


def test_what_the_last_audit_may_have_judged_is_neither_orphan_nor_duplicate_and_never_passed_over_in_silence(
    spark: SparkSession,
) -> None:
    must: _Side = (EXPECTED, 3, -1)
    old, new = (BEFORE, None, 7), (FOUND, None, 50)
    assert _fates(spark, [old]) == [("judged before", None, 7)]
    assert _fates(spark, [must, old]) == [("right", 3, 7)]
    assert _fates(spark, [must, old, new]) == [("right", 3, 50), ("doubtful", 3, 7)]
