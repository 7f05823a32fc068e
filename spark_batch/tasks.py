"""Python in Spark's tasks: `in_batches` and `in_groups` are mapInArrow and applyInArrow, without what Spark's workers pay for each task.

Before a task a worker calls `importlib.invalidate_caches()` (until SPARK-54744). Before Python 3.13 that reads the directory of a zip
archive anew, once for every path within it that was imported from (CPython gh-103200): pyspark.zip has 1,500 entries and some fifteen such
paths, 0.1 s of every task. After a task it calls `gc.collect()`, and that looks at every object of numpy, pandas and pyarrow.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any
from zipimport import zipimporter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame, GroupedData


def in_batches(
    table: DataFrame, work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """What `work` makes of the Arrow batches of each Spark partition."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        unburden()
        yield from work(batches)

    return table.mapInArrow(run, schema)


def in_groups(groups: GroupedData, work: Callable[[pa.Table], pa.Table], schema: str) -> DataFrame:
    """What `work` makes of each group, which is in memory as a whole."""

    def run(table: pa.Table) -> pa.Table:
        unburden()
        return work(table)

    return groups.applyInArrow(run, schema)


def unburden() -> None:
    """Forget which paths are zip archives, and leave what stands when a worker begins its first task out of garbage collections.

    Modules that were imported stay. An import that needs an archive remembers it again, from zipimport's own cache of directories.
    """
    if not gc.get_freeze_count():  # once: later there may be garbage among what is frozen
        gc.freeze()
    remembered: dict[str, Any] = sys.path_importer_cache
    for path in [path for path, finder in remembered.items() if isinstance(finder, zipimporter)]:
        del remembered[path]
