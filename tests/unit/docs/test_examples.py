"""Every YAML block of the README and of docs/ is linted: what people copy works."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from transforms.lint import lint_files
from transforms.loading import load_pipeline
from transforms.steps import STEPS
from transforms.test_files import load_tests
from transforms.test_runner import run_tests
from worker.commands import register

# `test` and `try` use the timer of the record's time budget, which is pytest-timeout's usual way too.
pytestmark = pytest.mark.timeout(240, method="thread")

PAGES = [Path("README.md"), *sorted(Path("docs").glob("*.md"))]
_BLOCK = re.compile(r"^(?P<indent> *)```ya?ml\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_DEFAULTS = {"name": "example", "source": "{topics: [example.in]}", "sink": "{topic: example.out}"}


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, found.start()) + 2, found["text"]) for found in _BLOCK.finditer(text)]


def completed(text: str) -> str:
    """A whole pipeline: examples may be steps, one step, or some keys of a pipeline."""
    data: Any = yaml.safe_load(text)
    if isinstance(data, list):
        return "".join(f"{key}: {value}\n" for key, value in _DEFAULTS.items()) + "steps:\n" + text
    if isinstance(data, dict) and any(key in STEPS for key in data):
        indented = text.rstrip("\n").replace("\n", "\n    ")
        return completed(f"  - {indented}\n")
    missing = {key: value for key, value in _DEFAULTS.items() if key not in data}
    if _has_default(data.get("steps")):
        missing.pop("sink", None)
    return "".join(f"{key}: {value}\n" for key, value in missing.items()) + text


def _has_default(steps: Any) -> bool:
    last = steps[-1] if steps else {}
    return any("when" not in entry for entry in last.get("route", last.get("route_all", [])))


ALL = [block for page in PAGES for block in blocks(page)]


@pytest.mark.parametrize("block", ALL, ids=str)
def test_examples(block: Block, tmp_path: Path) -> None:
    """Nothing is said about it, and its tests pass."""
    file = tmp_path / "example.yaml"
    file.write_text(completed(block.text), encoding="utf-8")
    env = dict.fromkeys(re.findall(r"\$\{(\w+)", block.text), "x")
    assert [f"{finding.line}: {finding.message}" for finding in lint_files([file], env)] == []
    pipeline = load_pipeline(file, env)
    outcomes = run_tests(pipeline.spec, load_tests(pipeline, {}), lambda records: pipeline.transform.run(iter(records)))
    assert [difference for outcome in outcomes for difference in outcome.differences] == []


def transcript(page: Path, command: str) -> str:
    """What a page says that a command prints."""
    found = re.search(
        rf"^\$ .*{re.escape(command)}.*\n(?P<printed>(?s:.*?))^```$", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert found is not None
    return found["printed"]


def test_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outputs in config-as-code.md are real."""
    page = Path("docs/config-as-code.md").absolute()
    monkeypatch.chdir(tmp_path)
    pipeline = next(block.text for block in ALL if block.page.name == page.name)
    Path("payments.yaml").write_text(pipeline, encoding="utf-8")
    app = typer.Typer()
    register(app)
    runner = CliRunner(env={"FORCE_COLOR": None, "TTY_COMPATIBLE": None})  # what CI servers may set
    tried = runner.invoke(app, ["try", "payments.yaml"], input='{"status": "ok", "amount": 2}\n17\n')
    assert tried.stdout == transcript(page, "reckon try payments.yaml")
    Path("payments.yaml").write_text(pipeline.replace("amount_cents: 115}", "amount_cents: 114}"), encoding="utf-8")
    failed = runner.invoke(app, ["test", "payments.yaml"])
    assert failed.stdout == transcript(page, "reckon test payments.yaml")


def test_there_are_examples() -> None:
    """The search finds those of each page that has some."""
    assert {"README.md", "pipeline.md", "steps.md", "config-as-code.md"} <= {block.page.name for block in ALL}
    assert len(ALL) > len(STEPS)
