"""A share of `python -m tests.audit specificity`: audits of a running pipeline find nothing; a broken audit would."""

from __future__ import annotations

import dataclasses
import sys
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import spark_batch.audit
from spark_batch.cut import take_cut
from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.model import Depth, ExitCode, Kind
from spark_batch.topics import read_topic
from tests.audit import specificity
from tests.audit.auditor import Auditor
from tests.audit.turmoil import Turmoil
from tests.audit.world import World
from tests.support.pipelines import Scene
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_batch.model import Cut, Partition

SEED = 20262


@pytest.fixture(scope="module")
def auditor(spark: SparkSession) -> Auditor:
    return Auditor(spark)


@pytest.mark.timeout(600)  # two minutes on a busy machine, and more audits where changes are slow to come
def test_a_running_pipeline_is_complete_at_every_look(auditor: Auditor, bootstrap: str, tmp_path: Path) -> None:
    """Aborts, unknown outcomes, a kill and rebalances take place meanwhile; every depth, from the beginning and on from the last look."""
    report = specificity.run(auditor, bootstrap, tmp_path, SEED, audits=3, rate=100, change_s=2.0)
    assert (report.alarms, report.problems, report.lacking) == ([], [], []), report.line()


def test_a_source_partition_that_is_added_and_worked_off_during_the_cut_raises_no_alarm(
    auditor: Auditor, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its sources were described, before the ends of its outputs are asked for: neither orphans now nor losses in the next audit."""
    monkeypatch.setenv("RECKON_BOOTSTRAP_SERVERS", bootstrap)
    read_offsets, looks = KafkaAdmin.committed, []
    state = tmp_path / "state"
    with Scene(bootstrap, tmp_path, records=50) as scene:
        scene.produce(60)
        scene.drain()

        def committed(admin: KafkaAdmin, *rest: Any) -> dict[Partition, int]:
            found = read_offsets(admin, *rest)
            looks.append(found)
            if len(looks) == 1:
                scene.add_partitions(3)
                scene.produce(20, partition=2)
                scene.drain()
            return found

        monkeypatch.setattr(KafkaAdmin, "committed", committed)
        first, second = auditor(scene.path, state=state), auditor(scene.path, state=state)
        assert [len(found) for found in looks[:2]] == [2, 3]
        assert (first.exit_code, first.findings, sum(first.totals.values())) == (ExitCode.COMPLETE, (), 80)
        assert (second.exit_code, second.findings, second.totals) == (ExitCode.COMPLETE, (), {})


def test_a_cut_that_looks_at_outputs_before_c_raises_false_alarms(
    auditor: Auditor, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above: the order of A1 is what keeps it quiet."""
    with Turmoil(bootstrap, tmp_path, SEED + 1, rate=200) as turmoil:

        def wrong(admin: KafkaAdmin, *rest: Any) -> Cut:
            early = take_cut(admin, *rest)
            # A transaction of each worker may have written before that look, and show its offsets after it: at most 60 records each.
            seen = sum(turmoil.scene.committed().values())
            await_true(lambda: sum(turmoil.scene.committed().values()) > seen + 300, "it goes on", PATIENCE_S)
            return dataclasses.replace(take_cut(admin, *rest), outputs=early.outputs)

        monkeypatch.setattr(spark_batch.audit, "take_cut", wrong)
        judgement = auditor(turmoil.scene.path, Depth.RECORDS, wait_s=PATIENCE_S)
    assert judgement.exit_code is ExitCode.FINDINGS
    assert {Kind.RECEIPT_MISSING, Kind.MISSING} <= judgement.finding_counts.keys()


def test_outputs_read_uncommitted_raise_false_alarms(
    auditor: Auditor, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the worlds: they hold aborted copies, which a reader of everything takes for duplicates (A4)."""
    world = World(bootstrap, tmp_path, Random(SEED + 2), records=400)
    world.write()
    assert auditor(world.path).exit_code is ExitCode.COMPLETE

    def careless(spark: Any, kafka: Any, ranges: Any, isolation: Any = None, **rest: Any) -> Any:
        return read_topic(spark, kafka, ranges, "read_uncommitted", **rest)

    readers = [module for name, module in sys.modules.items() if name.startswith("spark_batch.")]
    for module in readers:
        if getattr(module, "read_topic", None) is read_topic and module.__name__ != read_topic.__module__:
            monkeypatch.setattr(module, "read_topic", careless)
    judgement = auditor(world.path)
    assert judgement.exit_code is ExitCode.FINDINGS
    assert Kind.DUPLICATE in judgement.finding_counts
