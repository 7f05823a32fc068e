"""All findings as Parquet, for a query or for driving records again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.errors import AuditError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from spark_batch.model import Finding

SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field(
            "source",
            pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]),
        ),
        pa.field("detail", pa.string(), nullable=False),
    ]
)
"""Columns as in model.Finding."""


class FindingsLostError(AuditError):
    """Executors wrote findings to where the driver does not see them."""


def write(findings: Sequence[Finding], folder: Path) -> None:
    """`findings` as one file in `folder`, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = ("topic", "partition", "offset")
    rows = [
        {
            "kind": finding.kind.value,
            "topic": finding.topic,
            "partition": finding.partition,
            "offset": finding.offset,
            "end": finding.end,
            "source": finding.source and dict(zip(names, finding.source, strict=True)),
            "detail": finding.detail,
        }
        for finding in findings
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "part-0.parquet")


def write_table(findings: DataFrame, folder: Path) -> None:
    """`findings` by Spark: nothing of them goes through the driver, however many they are.

    On a cluster whose machines share no folder, each executor would write to its own disk and Spark would call that a success. So the rows
    written are counted on the way and again in what the driver sees; FindingsLostError where these differ.
    """
    written = Observation()
    counted = findings.observe(written, F.count(F.lit(1)).alias("rows"))
    counted.write.mode("overwrite").parquet(folder.absolute().as_uri())
    expected = written.get["rows"]
    seen = sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))
    if seen != expected:
        raise FindingsLostError(
            f"{folder} holds {seen:,} of {expected:,} findings: --out must name a folder that driver and executors share"
        )
