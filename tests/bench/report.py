"""The tables that people read, and the ratios that a change is judged by."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.table import Table

from tests.bench.engines import OURS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.bench.latency import Latency
    from tests.bench.measure import Run

TIE = 1.5
"""The same code's cost drifts by up to this factor on a shared machine: a smaller gap says nothing."""
QUIET_CORES = 0.15


def throughput_table(runs: Sequence[Run], unavailable: Mapping[str, str], commit_ms: int) -> Table:
    """One line per engine: medians over its runs that count, and what became of the others."""
    table = Table(title=f"Throughput, commit every {commit_ms} ms", title_justify="left", box=SIMPLE)
    table.add_column("engine", no_wrap=True)
    table.add_column("runs", justify="right")
    table.add_column("1000 records/s\nmin / median / max", justify="right", min_width=19)
    for heading in ("CPU us\n/record", "max RSS\nMB", "other\ncores", "ours is\ntimes it"):
        table.add_column(heading, justify="right")
    at_interval = [run for run in runs if run.commit_ms == commit_ms]
    ours = _rates(run for run in at_interval if run.engine == OURS)
    for engine in dict.fromkeys(run.engine for run in at_interval):
        its = [run for run in at_interval if run.engine == engine]
        windows = [run.window for run in its if run.counts and run.window is not None]
        counted = f"{len(windows)}" if len(windows) == len(its) else f"{len(windows)} of {len(its)}"
        if not windows:
            table.add_row(engine, counted, its[-1].error)
            continue
        rates = [window.records_per_s for window in windows]
        others = [window.other_cpu_cores for window in windows if window.other_cpu_cores is not None]
        table.add_row(
            engine,
            counted,
            f"{min(rates) / 1e3:.0f} / {median(rates) / 1e3:.0f} / {max(rates) / 1e3:.0f}",
            f"{median(window.cpu_us_per_record for window in windows):.1f}",
            f"{max(window.max_rss_mb for window in windows)}",
            f"{median(others):.2f}{' noisy' if median(others) > QUIET_CORES else ''}" if others else "?",
            ratio_text(ours, rates) if engine != OURS else "",
        )
    for engine, reason in unavailable.items():
        table.add_row(engine, "0", f"not run: {reason}")
    return table


def ratio_text(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """How many times faster ours is, median over median; a gap under TIE either way is called a tie."""
    if not ours:
        return "?"
    ratio = median(ours) / median(theirs)
    tie = 1 / TIE < ratio < TIE
    return f"{ratio:.2f}" + (" (tie)" if tie else "")


def latency_table(latencies: Sequence[Latency]) -> Table:
    table = Table(
        title="Latency at 1000 records/s, produced to seen by a read_committed reader", title_justify="left", box=SIMPLE
    )
    table.add_column("engine")
    for heading in ("commit ms", "p50 ms", "p99 ms", "max ms"):
        table.add_column(heading, justify="right")
    for one in latencies:
        table.add_row(one.engine, str(one.commit_ms), f"{one.p50_ms:.0f}", f"{one.p99_ms:.0f}", f"{one.max_ms:.0f}")
    return table


def _rates(runs: Iterable[Run]) -> list[float]:
    return [run.window.records_per_s for run in runs if run.counts and run.window is not None]
