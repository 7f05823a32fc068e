"""The benchmark: `python -m tests.bench`. Engines side by side on one broker, runs interleaved, every output verified."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import uuid
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tests.bench.engines import DEFAULT_ENGINES, ENGINES, RUN, Engine, Unavailable
from tests.bench.lab import Broker, broker_for_bench
from tests.bench.latency import Latency, measure_latency
from tests.bench.measure import Run, measure
from tests.bench.report import latency_table, throughput_table
from tests.bench.workload import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(highlight=False, soft_wrap=True)


@dataclass
class Results:
    """Everything measured, as it is written to RUN after each run: an interrupted benchmark keeps what it has."""

    records: int
    rounds: int
    unavailable: dict[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)

    def write(self, path: Path) -> None:
        facts = {"python": platform.python_version(), "cores": os.cpu_count(), "machine": platform.machine()}
        path.write_text(json.dumps({**facts, **asdict(self)}, indent=1) + "\n")


@app.command()
def main(
    engines: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = ",".join(DEFAULT_ENGINES),
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each engine, interleaved.")] = 3,
    records: Annotated[int, typer.Option(min=100_000, help="Source records inside the clock of one run.")] = 1_000_000,
    commit_ms: Annotated[str, typer.Option(help="Commit intervals in ms, separated by commas.")] = "100",
    *,
    latency: Annotated[bool, typer.Option("--latency", help="Also the latency at 1000 records/s.")] = False,
) -> None:
    """Run the same exactly-once job in our worker and in its peers, and print the ratios."""
    if not Path("/proc/self/stat").exists():
        raise typer.BadParameter("the benchmark reads CPU times from /proc: it needs Linux")
    chosen, intervals = _engines(engines), _intervals(commit_ms)
    RUN.mkdir(exist_ok=True)
    results, path = Results(records, rounds), RUN / time.strftime("results-%Y%m%d-%H%M%S.json")
    ready = _prepared(chosen, results)
    with broker_for_bench() as broker:
        for run in _throughput(broker, ready, results, intervals):
            results.runs.append(run)
            results.write(path)
            console.print(f"  {run.engine:18} {run.commit_ms:5} ms  {_short(run)}")
        for interval in intervals if latency else ():
            for engine in ready:
                results.latencies.append(measure_latency(engine, broker, interval))
                results.write(path)
    for interval in intervals:
        console.print(throughput_table(results.runs, results.unavailable, interval))
    if latency:
        console.print(latency_table(results.latencies))
    console.print(f"results: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    if not all(run.counts for run in results.runs):
        sys.exit(1)


def _throughput(broker: Broker, engines: Sequence[Engine], results: Results, intervals: Sequence[int]) -> Iterator[Run]:
    """The runs, as they end. Each round starts with another engine: none always follows the same one."""
    with ExitStack() as topics:
        sources: dict[int, str] = {}
        for total in sorted({engine.warm_up + results.records for engine in engines}):
            console.print(f"loading {total:,} records ...")
            sources[total] = topics.enter_context(broker.topic(f"bench-in-{uuid.uuid4().hex[:8]}"))
            load(broker.bootstrap, sources[total], total)
            broker.await_group_coordinator(sources[total])
        # A broker that was just started compiles its code while the first engine is measured, and would count against it.
        console.print("one run that does not count, for the broker's sake ...")
        measure(engines[0], broker, sources[engines[0].warm_up + results.records], results.records, intervals[0])
        for turn in range(results.rounds):
            first = turn % max(1, len(engines))
            for interval in intervals:
                for engine in (*engines[first:], *engines[:first]):
                    yield measure(engine, broker, sources[engine.warm_up + results.records], results.records, interval)


def _engines(names: str) -> list[Engine]:
    chosen = list(ENGINES) if names == "all" else names.split(",")
    unknown = [name for name in chosen if name not in ENGINES]
    if unknown:
        raise typer.BadParameter(f"no engine {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    return [ENGINES[name] for name in chosen]


def _intervals(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--commit-ms {text}: expected whole numbers separated by commas") from None


def _prepared(chosen: Sequence[Engine], results: Results) -> list[Engine]:
    """The engines that can run here; why the others cannot goes into the results."""
    ready = []
    for engine in chosen:
        try:
            engine.prepare()
        except Unavailable as reason:
            results.unavailable[engine.name] = str(reason)
        else:
            ready.append(engine)
    return ready


def _short(run: Run) -> str:
    if run.window is None or run.error:
        return run.error
    rate, cost = run.window.records_per_s, run.window.cpu_us_per_record
    return f"{rate:10,.0f} records/s {cost:6.1f} us/record  {run.verdict}"


if __name__ == "__main__":
    app()
