"""Our sources for the executors: one zip, the same bytes for the same sources.

The audit ships it by itself. Where Spark wants it beforehand (YARN's and Kubernetes' cluster mode, `--py-files`):

    python -m spark_batch.shipping reckon.zip

What it does not hold is what is compiled: pyarrow, pandas, pydantic, orjson, google-re2 and the rest of `reckon[audit]`. Executors need
a Python that has them: the same virtual environment at the same place (PYSPARK_PYTHON), or one shipped by `--archives`.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("spark_batch", "transforms", "worker")
_ROOT = Path(__file__).resolve().parent.parent
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip knows

_shipped: set[str] = set()
"""Ids of the Spark applications that have them."""


def ship_sources(spark: SparkSession) -> None:
    """Give the sources that run here to the executors, once per application; nothing where they came by `--py-files`."""
    application = spark.sparkContext.applicationId
    if application in _shipped or not _ROOT.is_dir():
        return
    folder = tempfile.mkdtemp(prefix="reckon-sources-")  # executors that start later fetch it from here
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    spark.sparkContext.addPyFile(str(write_zip(Path(folder) / "reckon-sources.zip")))
    _shipped.add(application)


def write_zip(path: Path) -> Path:
    """Write the packages that an audit's executors import."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for package in _PACKAGES for file in (_ROOT / package).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.writestr(zipfile.ZipInfo(file.relative_to(_ROOT).as_posix(), _EPOCH), file.read_bytes())
    return path


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m spark_batch.shipping FILE.zip")
    write_zip(Path(sys.argv[1]))
