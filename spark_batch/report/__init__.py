"""The report of an audit: a page for people, JSON and Parquet for machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_batch.report import json_report, page, parquet

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from spark_batch.model import Judgement


@dataclass(frozen=True, slots=True)
class ReportPaths:
    page: Path
    json: Path
    findings: Path
    """A folder of Parquet files."""


def write_report(
    judgement: Judgement, out_dir: Path, findings: DataFrame | None, *, bootstrap: str = "BOOTSTRAP:9092"
) -> ReportPaths:
    """Write audit.html, audit.json and findings/ into `out_dir`, which is made; what an earlier audit left there is replaced.

    `findings` as in context.Judged. `bootstrap` goes into the commands that the page tells; security settings do not.
    Errors: OSError; parquet.FindingsLostError, with page and JSON already written.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    paths = ReportPaths(out_dir / "audit.html", out_dir / "audit.json", out_dir / "findings")
    paths.page.write_text(page.render(judgement, bootstrap), encoding="utf-8")
    paths.json.write_bytes(json_report.encode(judgement))
    if findings is None:
        parquet.write(judgement.findings, paths.findings)
    else:
        parquet.write_table(findings, paths.findings)
    return paths
