"""The pipelines in config/ pass the tests that stand in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from transforms.loading import load_pipeline
from transforms.test_files import load_tests
from transforms.test_runner import run_tests

FOLDER = Path(__file__).parents[3] / "config" / "pipelines"
NAMES = ["clickstream", "customers-cdc", "iot-readings", "orders", "outbox"]


def test_names() -> None:
    """A file is one pipeline, and has its name."""
    files = sorted(FOLDER.glob("*.yaml"))
    assert NAMES == [file.stem for file in files] == [load_pipeline(file, {}).spec.name for file in files]


@pytest.mark.parametrize("name", NAMES)
def test_tests(name: str) -> None:
    """Each has tests, and they pass without any environment."""
    loaded = load_pipeline(FOLDER / f"{name}.yaml", {})
    outcomes = run_tests(loaded.spec, load_tests(loaded, {}), loaded.transform.run)
    assert len(outcomes) >= 3
    assert [outcome.differences for outcome in outcomes] == [()] * len(outcomes)
