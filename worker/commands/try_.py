"""`reckon try`: what becomes of records from standard input, without Kafka."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - typer reads annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from transforms import wording
from transforms.samples import Sample, printable, shown
from transforms.test_runner import samples
from transforms.yaml_tests import TestInput
from worker.budget import TimeBudget
from worker.commands.common import loaded, stop

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic_core import ErrorDetails

    from transforms.records import Result
    from transforms.spec import Pipeline

BUDGET_MS = 1000
"""As the worker's `record_budget_ms` is by default."""


def try_(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    *,
    envelope: Annotated[
        bool,
        typer.Option(
            "--envelope", help="Lines are objects with value or raw, and key, headers, timestamp, topic as in tests."
        ),
    ] = False,
) -> None:
    """Read records from standard input, one a line, and print what comes out of each: outputs, filtered, or dead letter.

    Without --envelope a line is the value of a record as it stands. Exit codes: 0 all read, 2 the pipeline or an envelope
    cannot be used.
    """
    ready = loaded(pipeline)
    console = Console(highlight=False, soft_wrap=True)
    counts = {"outputs": 0, "filtered": 0, "dead letters": 0}
    number = 0
    with TimeBudget(ready.transform, BUDGET_MS) as budget:
        for number, record in enumerate(_records(ready.spec, sys.stdin.buffer, envelope=envelope), 1):
            result = budget.run([record])
            for line in _lines(number, result):
                console.print(line)
            counts["outputs"] += len(result.outputs)
            counts["filtered"] += result.filtered
            counts["dead letters"] += len(result.failures)
    typer.echo(f"{number} records: " + ", ".join(f"{count} {what}" for what, count in counts.items()), err=True)


def _records(spec: Pipeline, lines: Iterable[bytes], *, envelope: bool) -> Iterator[Sample]:
    plain = TestInput(raw="")
    for number, line in enumerate(lines):
        text = line.rstrip(b"\r\n")
        if not text:
            continue
        if not envelope:
            [sample] = samples(spec, [plain.model_copy(update={"offset": number})])
            yield Sample(text, topic_=sample.topic_, offset_=number)
            continue
        try:
            entry = TestInput.model_validate(json.loads(text))
        except ValidationError as error:
            wrong = "; ".join(map(_wrong, error.errors(include_url=False)))
            stop(f"standard input, line {number + 1}: not an envelope: {wrong}")
        except ValueError as error:
            stop(f"standard input, line {number + 1}: not JSON, expected an envelope: {error}")
        yield samples(spec, [entry.model_copy(update={"offset": number if entry.offset is None else entry.offset})])[0]


def _wrong(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return wording.unknown(place, TestInput.model_fields)
    return f"{place}: {wording.message(error)}" if place else wording.message(error)


def _lines(number: int, result: Result) -> Iterator[Text]:
    for topic, value, key, headers, timestamp, record, _ in result.outputs:
        line = Text.assemble((f"{number}", "dim"), " -> ", (topic, "green"), " ", printable(shown(value)))
        if key is not None:
            line.append(f" key={printable(shown(key))}", "cyan")
        if headers:
            told = ", ".join(f"{name}:{_header(content)}" for name, content in headers)
            line.append(f" headers={printable(told)}", "cyan")
        if timestamp != record.timestamp()[1]:
            line.append(f" timestamp={timestamp}", "cyan")
        yield line
    for failure in result.failures:
        place = f"{failure.step}, line {failure.line}" if failure.line else failure.step
        yield Text.assemble(
            (f"{number}", "dim"),
            " -> ",
            ("dead letter", "red"),
            printable(f" {failure.error_class} in {place}: {failure.message}"),
        )
    if result.filtered:
        yield Text.assemble((f"{number}", "dim"), " -> ", ("filtered", "yellow"))


def _header(content: str | bytes | None) -> str:
    return content if isinstance(content, str) else shown(content)
