"""The ratios that a change is judged by, and the table around them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tests.bench.measure import Run, Window
from tests.bench.report import ratio_text, throughput_table
from tests.bench.verify import Verdict


@pytest.mark.parametrize(
    ("expected", "ours", "theirs"),
    [
        ("4.00", [400.0, 100.0, 900.0], [100.0, 50.0, 300.0]),
        ("1.50", [150.0], [100.0]),
        ("1.49 (tie)", [149.0], [100.0]),
        ("1.00 (tie)", [100.0], [100.0]),
        ("0.67 (tie)", [67.0], [100.0]),
        ("0.66", [66.0], [100.0]),
        ("?", [], [100.0]),
    ],
)
def test_ratio_is_median_over_median_and_a_small_gap_a_tie(
    expected: str, ours: list[float], theirs: list[float]
) -> None:
    assert expected == ratio_text(ours, theirs)


def run(engine: str, records_per_s: int, *, lost: int = 0, other: float = 0.0) -> Run:
    window = Window(
        records=records_per_s, seconds=1.0, engine_cpu_s=0.5, broker_cpu_s=0.1, other_cpu_cores=other, max_rss_mb=100
    )
    verdict = Verdict(outputs=10 - lost, expected=10, lost=lost, doubled=0, altered=0, reordered=0)
    return Run(engine, 100, window, verdict, "" if verdict.ok else str(verdict))


def lines(runs: list[Run], unavailable: dict[str, str]) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    console.print(throughput_table(runs, unavailable, 100))
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_table_shows_medians_ratios_and_what_did_not_run() -> None:
    """A run whose output was wrong counts for nothing; an engine without its toolchain is listed with the reason."""
    runs = [
        *(run("reckon", rate) for rate in (300_000, 200_000, 400_000)),
        *(run("naive", rate, other=0.4) for rate in (100_000, 90_000)),
        run("naive", 900_000, lost=1),
        run("quix", 50_000, lost=2),
    ]
    found = lines(runs, {"franz": "no go"})
    assert "reckon 3 200 / 300 / 400 1.7 100 0.00" in found
    assert "naive 2 of 3 90 / 95 / 100 5.3 100 0.40 noisy 3.16" in found
    assert any(line.startswith("quix 0 of 1 WRONG: 8 outputs for 10 expected, 2 lost") for line in found)
    assert "franz 0 not run: no go" in found
