"""`reckon test`: runs the tests of pipelines."""

from __future__ import annotations

from functools import partial
from pathlib import Path  # noqa: TC003 - typer reads annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from transforms.coverage import Point, coverage
from transforms.loading import LoadedPipeline, PipelineError, load_pipeline
from transforms.samples import printable
from transforms.test_files import PlacedTest, is_test_file, load_tests, pipeline_of
from transforms.test_runner import Outcome, run_tests, samples
from worker.budget import TimeBudget
from worker.commands.common import FINDINGS, UNUSABLE, pipelines, stop, yaml_files
from worker.commands.junit import write_junit
from worker.commands.try_ import BUDGET_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transforms.records import Result, SourceRecord, Transform


def pipeline_tests(
    files: Annotated[list[Path], typer.Argument(help="Pipeline files, or directories with them.")],
    *,
    junit: Annotated[Path | None, typer.Option(help="Write the outcomes to this file, as JUnit XML.")] = None,
) -> None:
    """Run the tests of pipelines: those of their `tests:`, and those beside them in <name>.tests.yaml.

    Prints which steps, branches and routes no test reached. Exit codes: 0 all passed, 1 a test failed, 2 a file cannot be used; the
    tests of the others run all the same.
    """
    console = Console(highlight=False, soft_wrap=True)
    outcomes: dict[Path, list[Outcome] | PipelineError] = {}
    for path in pipelines(yaml_files(files)):
        outcomes[path] = suite = _suite(console, path)
        if isinstance(suite, PipelineError):
            typer.echo(str(suite), err=True)
    suites = [suite for suite in outcomes.values() if not isinstance(suite, PipelineError)]
    total, unusable = sum(map(len, suites)), len(outcomes) - len(suites)
    failed = sum(bool(outcome.differences) for suite in suites for outcome in suite)
    told = f"{total - failed} passed, {failed} failed" + (f", {unusable} not usable" if unusable else "")
    console.print(told, style="red" if failed or unusable else "green" if total else "yellow")
    if junit is not None:
        try:
            write_junit(junit, outcomes)
        except OSError as error:
            stop(f"{junit}: cannot write the file: {error.strerror}")
    raise typer.Exit(UNUSABLE if unusable else FINDINGS if failed else 0)


def _suite(console: Console, path: Path) -> list[Outcome] | PipelineError:
    """Runs the tests of one pipeline, and tells what came out."""
    try:
        if is_test_file(path):
            pipeline_of(path)  # there is none
        pipeline = load_pipeline(path)
        tests = load_tests(pipeline)
    except PipelineError as error:
        return error
    outcomes = run_tests(pipeline.spec, tests, partial(_run, pipeline.transform))
    _report(console, pipeline, tests, outcomes)
    return outcomes


def _run(transform: Transform, records: Sequence[SourceRecord]) -> Result:
    """As the worker runs it: a record that takes too long is a dead letter."""
    with TimeBudget(transform, BUDGET_MS) as budget:
        return budget.run(records)


def _report(
    console: Console, pipeline: LoadedPipeline, tests: Sequence[PlacedTest], outcomes: Sequence[Outcome]
) -> None:
    for outcome in outcomes:
        if outcome.differences:
            placed = outcome.placed
            console.print(
                Text(f"{placed.path}:{placed.line}:{placed.column}: FAILED {printable(placed.test.name)}", "red")
            )
            for difference in outcome.differences:
                for line in difference.splitlines():
                    console.print(Text("  " + printable(line), _style(line)))
    if not tests:
        console.print(Text(f"{pipeline.path}: no tests", "yellow"))
        return
    records = [record for placed in tests for record in samples(pipeline.spec, placed.test.records)]
    points = coverage(pipeline.spec, records, _run)
    passed = sum(not outcome.differences for outcome in outcomes)
    console.print(Text(f"{pipeline.path}: {passed} of {len(tests)} passed; reached {_reached(points)}"))
    for point in points:
        if not point.reached:
            console.print(
                Text(f"{pipeline.path}:{pipeline.step_lines[point.step]}: not reached: {point.what}", "yellow")
            )


def _reached(points: Sequence[Point]) -> str:
    reached = sum(point.reached for point in points)
    return f"{reached} of {len(points)} steps, branches and routes"


def _style(line: str) -> str:
    return {"-": "red", "+": "green"}.get(line.strip()[:1], "")
