"""The ratios that a change is judged by."""

from __future__ import annotations

import pytest

from tests.bench.report import ratio_text


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
