"""Audits in one Spark session, judgement in hand: what `spark_batch.audit` does, without its report and its process."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from spark_batch import state as states
from spark_batch.arguments import Arguments
from spark_batch.audit import Audit, loaded_of, state_of
from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.model import Depth
from spark_batch.progress import Progress
from spark_batch.security import client_settings, java_options
from spark_batch.shipping import ship_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_batch.context import Context, Judged
    from spark_batch.model import Judgement


class Auditor:
    """Call it with a pipeline file: an audit of it, as it is now."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        ship_sources(spark)

    def __call__(
        self,
        path: Path,
        depth: Depth = Depth.RECORDS,
        *,
        state: Path | None = None,
        from_beginning: bool = False,
        wait_s: float = 2.0,
    ) -> Judgement:
        return self.audit(path, depth, state=state, from_beginning=from_beginning, wait_s=wait_s)[1].judgement

    def audit(
        self,
        path: Path,
        depth: Depth = Depth.RECORDS,
        *,
        state: Path | None = None,
        from_beginning: bool = False,
        wait_s: float = 2.0,
    ) -> tuple[Context, Judged]:
        args = Arguments(
            pipeline=path,
            depth=depth,
            state=state,
            from_beginning=from_beginning,
            since_ms=None,
            out=None,
            wait_s=wait_s,
            json=False,
        )
        loaded = loaded_of(path)
        options = java_options(client_settings(loaded.spec))
        with (
            Progress() as progress,
            KafkaAdmin(self.spark, options) as admin,
            tempfile.TemporaryDirectory(prefix="reckon-audit-") as work_dir,
        ):
            audit = Audit(args, loaded, options, state_of(args, loaded), progress)
            context, judged = audit.judged(self.spark, admin, Path(work_dir))
            if state is not None and not context.cut.open_transactions:
                states.save(state, audit.next_state(context, judged))
            return context, judged
