"""The audit put to the test at length: `python -m tests.audit sensitivity` and `python -m tests.audit specificity`."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_batch.session import spark_session
from tests.audit import sensitivity as sensitive
from tests.audit import specificity as specific
from tests.audit.auditor import Auditor
from tests.support.broker import choose_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@contextmanager
def _lab() -> Iterator[tuple[Auditor, str, Path]]:
    """An auditor, a broker's address and a folder, for as long as the block lasts."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reckon-audit-tests-")))
        bootstrap = stack.enter_context(choose_broker().run())
        spark = spark_session("local[2]", {"spark.sql.shuffle.partitions": "4"})
        stack.callback(spark.stop)
        yield Auditor(spark), bootstrap, folder


@app.command()
def sensitivity(
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 1,
    rounds: Annotated[int, typer.Option(min=0, help="Mixed worlds at each depth.")] = 4,
    only: Annotated[str, typer.Option(help="Only worlds whose name contains this.")] = "",
) -> None:
    """Plant defects of all kinds, alone and mixed, and audit: each must be found with its exact place, and nothing else."""
    began = time.monotonic()
    planted, found, missed, extra, audits = Counter[str](), 0, 0, 0, 0
    problems: list[str] = []
    with _lab() as (auditor, bootstrap, folder):
        for outcome in sensitive.everything(auditor, bootstrap, folder, seed, rounds, only=only):
            audits += 1
            planted += outcome.planted
            found += (outcome.expected & outcome.found).total()
            missed, extra = missed + len(outcome.missed), extra + len(outcome.extra)
            lines = outcome.lines()
            problems += lines
            print(
                f"{outcome.what} at {outcome.depth}: {outcome.planted.total()} planted, {outcome.took_s:.1f} s",
                flush=True,
            )
            print("".join(f"    {line}\n" for line in lines), end="", flush=True)
    print(f"planted per kind: {dict(sorted(planted.items()))}")
    print(
        f"seed {seed}: {planted.total()} defects planted in {audits} audited worlds; findings: {found} as expected, {missed} missed, "
        f"{extra} extra; {len(problems)} problems; {time.monotonic() - began:.0f} s"
    )
    sys.exit(1 if problems else 0)


@app.command()
def specificity(
    audits: Annotated[int, typer.Option(min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 1,
    rate: Annotated[float, typer.Option(help="Source records per second.")] = 300,
) -> None:
    """Audit a pipeline that is running, with aborts, kills and rebalances: not one finding may come of it."""
    with _lab() as (auditor, bootstrap, folder):
        report = specific.run(
            auditor, bootstrap, folder, seed, audits, rate=rate, tell=lambda line: print(line, flush=True)
        )
    for alarm in report.alarms + report.problems:
        print(f"ALARM {alarm}")
    for what in report.lacking:
        print(f"did not take place: {what}")
    print(f"seed {seed}: {report.line()}")
    sys.exit(1 if report.alarms or report.problems or report.lacking else 0)


if __name__ == "__main__":
    app()
