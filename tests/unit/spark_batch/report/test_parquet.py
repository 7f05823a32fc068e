"""Findings as Parquet, without Spark; with it: tests/audit/test_report.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from spark_batch.model import Finding, Kind
from spark_batch.report import write_report
from spark_batch.report.parquet import SCHEMA, write
from tests.audit.samples import of_all_kinds

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    """All columns, nulls among them; what an earlier audit left is gone."""
    write([Finding(Kind.ORPHAN, "old", 0, 1)] * 3, tmp_path / "findings")
    write(
        [
            Finding(Kind.MISSING, "in", 3, 17, None, None, "gone"),
            Finding(Kind.DUPLICATE, "out", 1, 9, 10, ("in", 0, 4)),
        ],
        tmp_path / "findings",
    )

    table = pq.read_table(tmp_path / "findings")

    assert table.schema.equals(SCHEMA)
    none = {"end": None, "source": None}
    assert [
        {"kind": "missing", "topic": "in", "partition": 3, "offset": 17, **none, "detail": "gone"},
        {
            "kind": "duplicate",
            "topic": "out",
            "partition": 1,
            "offset": 9,
            "end": 10,
            "source": {"topic": "in", "partition": 0, "offset": 4},
            "detail": "",
        },
    ] == table.to_pylist()


def test_no_findings_are_an_empty_table(tmp_path: Path) -> None:
    """With all columns: a query need not ask whether there is a file."""
    write([], tmp_path / "findings")
    assert (0, SCHEMA.names) == (
        pq.read_table(tmp_path / "findings").num_rows,
        pq.read_schema(next((tmp_path / "findings").iterdir())).names,
    )


def test_a_report_is_three_things_in_a_folder(tmp_path: Path) -> None:
    """The folder is made."""
    paths = write_report(of_all_kinds(), tmp_path / "a" / "b", None)
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == ["audit.html", "audit.json", "findings"]
    assert paths.page.read_text(encoding="utf-8").endswith("</html>")
    assert pq.read_table(paths.findings).num_rows == len(of_all_kinds().findings)
