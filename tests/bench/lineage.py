"""What a lineage header costs per record, by its form: `python -m tests.bench.lineage`. Decides worker/lineage.py's form."""

from __future__ import annotations

import sys
import uuid
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from tests.bench.engines import JOBS, RUN, Engine
from tests.bench.lab import broker_for_bench
from tests.bench.measure import Window, measure
from tests.bench.workload import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMS = ("none", "text", "text_as_bytes", "binary_offset", "text_in_dict", "text_short_name")
"""Functions of jobs/lineage.py; that is a script, not a module to import."""
COMMIT_MS = 100
WARM_UP = 100_000
app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each form, interleaved.")] = 5,
    records: Annotated[int, typer.Option(min=100_000, help="Source records inside the clock of one run.")] = 600_000,
) -> None:
    """Measure the forms of the lineage header side by side, outputs verified, and print the CPU time each one costs."""
    RUN.mkdir(exist_ok=True)
    command = [sys.executable, str(JOBS / "lineage.py")]
    engines = [Engine(form, lambda: command, {"FORM": form}, WARM_UP) for form in FORMS]
    windows: dict[str, list[Window]] = {engine.name: [] for engine in engines}
    with broker_for_bench() as broker, broker.topic(f"lineage-in-{uuid.uuid4().hex[:8]}") as source:
        load(broker.bootstrap, source, WARM_UP + records)
        broker.await_group_coordinator(source)
        for turn in range(rounds):
            for engine in engines if turn % 2 == 0 else reversed(engines):
                run = measure(engine, broker, source, records, COMMIT_MS)
                if run.window is None or not run.counts:
                    sys.exit(f"{engine.name}: {run.error}")
                windows[engine.name].append(run.window)
    Console(highlight=False).print(table(windows))


def table(windows: Mapping[str, Sequence[Window]]) -> Table:
    shown = Table(
        title="CPU us per source record (two thirds of them become outputs)", title_justify="left", box=SIMPLE
    )
    shown.add_column("form", no_wrap=True)
    for heading in ("min", "median", "max", "more than none"):
        shown.add_column(heading, justify="right")
    bare = median(window.cpu_us_per_record for window in windows["none"])
    for form, its in windows.items():
        costs = [window.cpu_us_per_record for window in its]
        figures = (min(costs), median(costs), max(costs), median(costs) - bare)
        shown.add_row(form, *(f"{figure:.2f}" for figure in figures))
    return shown


if __name__ == "__main__":
    app()
