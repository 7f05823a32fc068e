"""The audit of a pipeline, which may be running: arguments, session, cut, judgement, report, exit code.

    spark-submit spark_batch/audit.py --pipeline config/pipelines/orders.yaml [--depth content] [--state DIR] ...

or `reckon audit ...`, or `python -m spark_batch.audit ...`. On a cluster the same, with `--master spark://...`; see docs/audit.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not __package__:  # run as a script: our modules are `spark_batch.x`, never top-level `x` out of the script's folder
    _HERE = Path(__file__).resolve().parent
    sys.path[:] = [str(_HERE.parent), *(entry for entry in sys.path if Path(entry or ".").resolve() != _HERE)]

from spark_batch import arguments, state
from spark_batch.context import Context
from spark_batch.cut import moved_starts, take_cut, topics_of
from spark_batch.errors import AuditError, BadArgumentsError, CannotJudgeError
from spark_batch.model import Depth, ExitCode
from spark_batch.progress import Progress
from spark_batch.scope import scope_of
from spark_batch.security import client_settings, java_options
from spark_batch.shipping import ship_sources
from transforms.loading import PipelineError, load_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from spark_batch.arguments import Arguments
    from spark_batch.context import Judged
    from spark_batch.kafka_admin import KafkaAdmin
    from spark_batch.model import Judgement
    from spark_batch.report import ReportPaths
    from spark_batch.state import State
    from transforms.loading import LoadedPipeline

_ATTEMPTS = 3
"""Looks at topics whose retention removes records while they are read (A8)."""


def main(argv: Sequence[str] | None = None, program: str = "audit.py") -> int:
    """Run one audit; the exit code. What is wrong goes to stderr, one line of JSON to stdout."""
    try:
        args = arguments.parse(sys.argv[1:] if argv is None else argv, program)
        loaded = loaded_of(args.pipeline)
        options = java_options(client_settings(loaded.spec))
        before = state_of(args, loaded)
        with Progress() as progress:
            line = Audit(args, loaded, options, before, progress).run()
    except AuditError as problem:
        line = _failed(problem.exit_code, str(problem))
    except Exception as error:  # noqa: BLE001 - the interpreter's own code for an exception is 1: it would mean findings
        traceback.print_exc()
        line = _failed(ExitCode.CANNOT_JUDGE, f"{type(error).__name__}: the audit did not come to its end")
    print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))  # noqa: T201
    code = line["exit_code"]
    assert isinstance(code, int)
    return code


def _failed(code: ExitCode, problem: str) -> dict[str, Any]:
    print(problem, file=sys.stderr)  # noqa: T201
    return {"exit_code": code.value, "verdict": code.name.lower().replace("_", " "), "error": problem}


def loaded_of(path: Path) -> LoadedPipeline:
    """The pipeline file; BadArgumentsError says what is wrong with it."""
    try:
        return load_pipeline(path)
    except PipelineError as problem:
        raise BadArgumentsError(str(problem)) from problem


def state_of(args: Arguments, loaded: LoadedPipeline) -> State | None:
    """Where the last audit got to, if this one is to go on from there."""
    if args.state is None or args.from_beginning:
        return None
    before = state.load(args.state)
    if before is not None:
        state.check(before, args.state, loaded.spec.name, arguments.group_of(loaded.spec), args.depth)
    return before


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit whose arguments are good."""

    args: Arguments
    loaded: LoadedPipeline
    options: dict[str, str] = field(repr=False)
    before: State | None
    progress: Progress

    def run(self) -> dict[str, Any]:
        """Judge, report, remember; the line for machines."""
        from spark_batch.kafka_admin import KafkaAdmin  # noqa: PLC0415 - py4j comes with Spark
        from spark_batch.report import write_report  # noqa: PLC0415 - drawing libraries: --help does without
        from spark_batch.session import spark_session  # noqa: PLC0415

        began = time.monotonic()
        spark = spark_session()
        ship_sources(spark)
        self.progress.watch(spark.sparkContext)
        out = self.args.out or Path(f"audit-{self.loaded.spec.name}")
        with KafkaAdmin(spark, self.options) as admin, tempfile.TemporaryDirectory(prefix="reckon-audit-") as work_dir:
            context, judged = self.judged(spark, admin, Path(work_dir))
            judgement = replace(judged.judgement, took_s=time.monotonic() - began)
            self.progress.tell("writing the report")
            paths = write_report(judgement, out, judged.findings, bootstrap=self.options["bootstrap.servers"])
        # While transactions are open, what was not judged is to be looked at again.
        if self.args.state is not None and not context.cut.open_transactions:
            state.save(self.args.state, self.next_state(context, judged))
        if self.args.json:
            return dict(json.loads(paths.json.read_bytes()))
        return _line(judgement, paths)

    def judged(self, spark: SparkSession, admin: KafkaAdmin, work_dir: Path) -> tuple[Context, Judged]:
        """Judge, and once more with a new cut where retention took away what was being read: that is no loss (A8)."""
        from spark_batch.judge import judge  # noqa: PLC0415 - pyspark: --help does without

        for _ in range(_ATTEMPTS):
            context = self._context(spark, admin, work_dir)
            try:
                judged = judge(context)
            except Exception:
                if not _vanished(admin, context):
                    raise
            else:
                if judged.judgement.exit_code != ExitCode.FINDINGS or not _vanished(admin, context):
                    return context, judged
            self.progress.tell("retention took records away, looking again")
        raise CannotJudgeError(f"retention removed records while they were read, {_ATTEMPTS} times: audit more often")

    def _context(self, spark: SparkSession, admin: KafkaAdmin, work_dir: Path) -> Context:
        spec = self.loaded.spec
        cut = take_cut(
            admin, topics_of(self.loaded, admin), arguments.group_of(spec), self.args.wait_s, self.progress.tell
        )
        since = None if self.args.since_ms is None else admin.at(cut.source_start, self.args.since_ms)
        scope = scope_of(cut, self.before, since)
        return Context(
            spark=spark,
            loaded=self.loaded,
            kafka=self.options,
            cut=cut,
            begin=scope.begin,
            audited=scope.audited,
            outputs_from=scope.outputs_from,
            depth=self.args.depth,
            lineage=arguments.lineage_of(spec),
            work_dir=work_dir,
            findings=scope.findings,
            unknown=scope.unknown,
            recreated=scope.recreated,
            previous=scope.previous,
            seen=scope.seen,
            marks=scope.marks,
            topics=frozenset(admin.names()),
            tell=self.progress.tell,
        )

    def next_state(self, context: Context, judged: Judged) -> state.State:
        """Sequences of workers that wrote nothing since the last audit are kept: they may go on.

        A partition whose committed offset is in doubt keeps its mark, if it has one: with the doubtful offset in its place, the next audit
        would take what the workers do again up to the mark for their first work, and what they did before for a loss.
        """
        before = context.previous or {}
        sequences = {
            name: max(judged.sequences.get(name, 0), before.get(name, 0)) for name in {**before, **judged.sequences}
        }
        certain = {p: c for p, c in context.cut.committed.items() if p not in judged.doubted}
        depths = [self.args.depth] if self.before is None else [self.args.depth, self.before.depth]
        return state.State(
            pipeline=self.loaded.spec.name,
            group=context.cut.group,
            depth=min(depths, key=list(Depth).index),
            taken_ms=context.cut.taken_ms,
            committed=certain | {p: c for p, c in context.marks.items() if p in judged.doubted},
            outputs_from=judged.outputs_from,
            topic_ids=context.cut.topic_ids,
            sequences=sequences,
            outputs_end={partition: span.end for partition, span in context.cut.outputs.items()},
        )


def _vanished(admin: KafkaAdmin, context: Context) -> bool:
    """Whether retention has removed, since the cut, anything that was to be read."""
    outputs = {partition: span.end for partition, span in context.cut.outputs.items()}
    ends = {**{partition: span.end for partition, span in context.audited.items()}, **outputs}
    begins = {**{partition: span.start for partition, span in context.audited.items()}, **context.outputs_from}
    moved = moved_starts(admin, context.cut)
    return any(then < ends.get(partition, 0) and now > begins[partition] for partition, (then, now) in moved.items())


def _line(judgement: Judgement, paths: ReportPaths) -> dict[str, Any]:
    """The line on stdout: what a script decides on, and where the rest lies."""
    return {
        "exit_code": judgement.exit_code.value,
        "verdict": judgement.exit_code.name.lower().replace("_", " "),
        "pipeline": judgement.pipeline,
        "depth": judgement.depth.value,
        "records": {verdict.value: count for verdict, count in judgement.totals.items()},
        "findings": {kind.value: count for kind, count in judgement.finding_counts.items() if count},
        "cut_ms": judgement.cut.taken_ms,
        "took_s": round(judgement.took_s, 1),
        "page": str(paths.page),
        "report": str(paths.json),
        "findings_table": str(paths.findings),
    }


if __name__ == "__main__":
    sys.exit(main())
