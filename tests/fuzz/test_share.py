"""A share of the fuzzing for every run of the tests; the whole is `make fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz import configs, records

# pytest-timeout's other way uses the timer of the record's time budget.
pytestmark = pytest.mark.timeout(240, method="thread")


def test_records() -> None:
    """Every record is an output, filtered, or a dead letter, in time and in order."""
    tally = records.fuzz(40_000, seed=5)
    assert tally.failures == []
    assert tally.records == 40_000


def test_configs() -> None:
    """Every mutated file loads, or says what is wrong with it, and where."""
    tally = configs.fuzz(150, seed=5)
    assert tally.failures == []
    assert tally.outcomes["loads"] > 10
    assert tally.outcomes["refused"] > 50
