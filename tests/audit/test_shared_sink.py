"""Several pipelines may write to one topic: each audit passes over what the others wrote."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from devkit.reader import read
from spark_batch.model import ExitCode
from tests.audit.auditor import Auditor
from tests.audit.planting import KINDS, found, sow
from tests.audit.world import World
from tests.support.broker import create_topics

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SEED = 20265


def test_outputs_of_another_pipeline_are_foreign_while_its_source_exists(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    """The same outputs are orphans while there is no such topic, and no fault once there is."""
    world, auditor = World(bootstrap, tmp_path, Random(SEED), records=300), Auditor(spark)
    planted = sow(world, [KINDS["orphan_of_another_topic"]] * 3)
    world.write()
    before = auditor(world.path)
    assert sorted((e for _, reveal in planted for e in reveal()), key=str) == sorted(found(before.findings), key=str)
    create_topics(bootstrap, {f"{world.name}.z": 1})
    after = auditor(world.path)
    assert (after.exit_code, after.findings) == (ExitCode.COMPLETE, ())
    strangers = sum(record.key == b"foreign" for record in read(bootstrap, world.sinks))
    assert sum(row.foreign for row in after.ledger) == strangers + len(planted)
    assert any("not this pipeline's" in note for note in after.notes)
