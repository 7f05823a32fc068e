"""Findings that Spark holds, written by Spark."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from spark_batch.report import parquet, write_report
from spark_batch.report.parquet import FindingsLostError
from tests.audit.samples import complete

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "kind string, topic string, partition int, offset long, end long, "
    "source struct<topic: string, partition: int, offset: long>, detail string"
)


def table_of(spark: SparkSession, rows: int) -> DataFrame:
    values = [("missing", "in", 0, n, None, ("in", 0, n), "gone") for n in range(rows)]
    return spark.createDataFrame(values, COLUMNS).repartition(3)


def test_findings_are_written_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    """All of them, in place of an earlier audit's; an empty table is no error."""
    write_report(complete(), tmp_path, table_of(spark, 5))
    paths = write_report(complete(), tmp_path, table_of(spark, 2000))

    found = pq.read_table(paths.findings)
    assert list(range(2000)) == sorted(found["offset"].to_pylist())
    assert set(found.schema.names) == set(parquet.SCHEMA.names)

    write_report(complete(), tmp_path, table_of(spark, 0))
    assert spark.read.parquet(str(paths.findings)).count() == 0


def test_findings_that_the_driver_cannot_see_are_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors with disks of their own leave the driver an empty folder: page and JSON are there, and the failure has a name."""

    def first_is_lost(file: Path) -> object:
        shutil.rmtree(file.parent)
        file.parent.mkdir()
        monkeypatch.setattr(parquet, "pq", pq)
        return type("Metadata", (), {"num_rows": 0})

    # The module's own name: pyarrow's is everybody's.
    monkeypatch.setattr(parquet, "pq", SimpleNamespace(read_metadata=first_is_lost))
    with pytest.raises(
        FindingsLostError, match="holds 0 of 7 findings: --out must name a folder that driver and executors"
    ):
        write_report(complete(), tmp_path, table_of(spark, 7).coalesce(1))
    assert (tmp_path / "audit.html").exists()
    assert (tmp_path / "audit.json").exists()
