"""``python -m tests.faults``: the campaign, until so many faults have taken place; a page and a JSON file tell of it."""

from __future__ import annotations

import os
import shutil
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tests.faults import report
from tests.faults.arena import Arena
from tests.faults.campaign import Result, play, rounds_of, summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_batch.model import Depth, Judgement

PROPERTIES = {
    # KIP-848's sessions are the brokers' to end, and the partitions of the dead wait for that (docs/faults.md)
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.heartbeat.interval.ms": "300",
    # A coordinator that could not write the end of a transaction within the transaction's timeout (30 s by default, 2.5 s here) tries again
    # when its sender of markers next wakes up, after so long where nothing else is to do (TransactionMarkerChannelManager.retryLogAppends).
    "request.timeout.ms": "3000",
}
"""Of the brokers: their timeouts are as short as those of the workers, and like the broker's session in devkit.properties."""


def main(
    faults: Annotated[int, typer.Option(help="As many as must take place, at least.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of everything that is planned.")] = 1,
    plans: Annotated[int, typer.Option(help="Faults of workers per round.")] = 45,
    only: Annotated[int | None, typer.Option(help="Play this round alone.")] = None,
    minutes: Annotated[float, typer.Option(help="Begin no further round after so long.")] = 90,
    *,
    audit: Annotated[bool, typer.Option(help="Let the audit judge, too.")] = True,
    out: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("faults-report"),
) -> None:
    """Faults on three real brokers until there were enough of them; exit code 1 if a judge found anything, or if there were too few."""
    began, results = time.monotonic(), list[Result]()
    wanted = faults if only is None else None
    auditor = auditor_here() if audit else None
    with Arena(PROPERTIES) as arena:
        os.environ["RECKON_BOOTSTRAP_SERVERS"] = arena.bootstrap  # for the audit, which reads the pipeline files here
        for planned in islice(rounds_of(seed, plans), only, None if only is None else only + 1):
            folder = out / f"round-{planned.number}"  # the workers' logs; kept where the round went wrong
            folder.mkdir(parents=True, exist_ok=True)
            result = play(planned, arena, folder, auditor)
            if result.ok:
                shutil.rmtree(folder)
            results.append(result)
            page = report.write(results, out, seed=seed, wanted=wanted, plans=plans)
            typer.echo(_line(result))
            if not report.too_few(results, faults) or time.monotonic() - began > 60 * minutes:
                break
    typer.echo(f"{summary(results)}\n" + "\n".join(report.liveness(results)) + f"\n{page}")
    if few := report.too_few(results, wanted):
        typer.echo(f"{few}: after {minutes:g} minutes no further round was begun")
    if few or not all(result.ok for result in results):
        raise typer.Exit(1)


def auditor_here() -> Callable[[Path, Depth], Judgement]:
    """The audit in this process: one Spark session for all rounds."""
    from spark_batch.session import spark_session  # noqa: PLC0415 - seconds, which a run without an audit need not wait
    from tests.audit.auditor import Auditor  # noqa: PLC0415

    return Auditor(spark_session("local[2]", {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "1500m"}))


def _line(result: Result) -> str:
    bad = [*result.problems, *(f"{o.judge}: {problem}" for o in result.opinions for problem in o.problems)]
    verdict = "exactly once" if result.ok else "NOT: " + "; ".join(problem[:300] for problem in bad)
    return (
        f"{result.round.name}: {len(result.faults)} faults, {result.sent:,} records, {result.took_s:.0f} s, {verdict}"
    )


if __name__ == "__main__":
    typer.run(main)
