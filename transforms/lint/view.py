"""A pipeline file as far as it can be understood, also where some of it is wrong, and the place of each part."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError
from yaml.nodes import ScalarNode

from transforms.lint.findings import Finding, Severity
from transforms.loading import PipelineError, load_pipeline
from transforms.steps import AnyStep, Step
from transforms.yaml_tree import Path as KeyPath
from transforms.yaml_tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from transforms.spec import Pipeline

_STEP: TypeAdapter[Step] = TypeAdapter(AnyStep)


@dataclass(slots=True)
class View:
    path: Path
    tree: Tree
    spec: Pipeline | None
    """None where the file does not load."""
    steps: list[Step | None]
    """None where a step is wrong: nothing is known about what it does."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def data(self) -> dict[str, Any]:
        return self.tree.data if isinstance(self.tree.data, dict) else {}

    def get(self, *path: str | int) -> Any:
        """A part of the plain data; None where it is missing."""
        data: Any = self.data
        for part in path:
            if isinstance(data, dict):
                data = data.get(part)
            elif isinstance(data, list) and isinstance(part, int) and part < len(data):
                data = data[part]
            else:
                return None
        return data

    def line(self, path: KeyPath) -> int:
        return self._place(path, 0)[0]

    def _place(self, path: KeyPath, offset: int | None) -> tuple[int, int]:
        if offset is None:
            mark = self.tree.keys[path].start_mark
            return (mark.line + 1, mark.column + 1) if mark else (1, 1)
        while path not in self.tree.values:
            path, offset = path[:-1], 0
        node = self.tree.values[path]
        if isinstance(node, ScalarNode) and offset:
            line, column = self.tree.place(path, offset)
        elif isinstance(node, ScalarNode):
            line, column = self.tree.place(path)
        else:
            mark = node.start_mark
            line, column = (mark.line, mark.column) if mark else (0, 0)
        return line + 1, column + 1

    def say(self, severity: Severity, rule: str, path: KeyPath, message: str, *, offset: int | None = 0) -> None:
        """`offset`: of a character in the scalar at the path; None: the key is meant, not its value."""
        self.findings.append(Finding(str(self.path), *self._place(path, offset), severity, rule, message))

    def error(self, rule: str, path: KeyPath, message: str, *, offset: int | None = 0) -> None:
        self.say("error", rule, path, message, offset=offset)

    def warn(self, rule: str, path: KeyPath, message: str, *, offset: int | None = 0) -> None:
        self.say("warning", rule, path, message, offset=offset)


def view(path: Path, env: Mapping[str, str] = os.environ) -> View | list[Finding]:
    """The file, with what is wrong with it by itself; only the latter where nothing else can be said."""
    spec, findings = None, []
    try:
        spec = load_pipeline(path, env).spec
    except PipelineError as error:
        findings = problems(error)
    if any(finding.rule == "unreadable" for finding in findings):
        return findings
    tree = Tree(str(path), path.read_text(encoding="utf-8"), env)
    if not isinstance(tree.data, dict):
        return findings
    steps = tree.data.get("steps")
    steps = [_step(step, path) for step in steps] if isinstance(steps, list) else []
    return View(path, tree, spec, steps, findings)


def problems(error: PipelineError) -> list[Finding]:
    """What loading says. That a variable is not set here is no fault of the file."""
    found = []
    for problem in error.problems:
        unset = problem.message.startswith("the environment variable ")
        rule = "unset-variable" if unset else "invalid"
        if problem.message.startswith("cannot read the file: "):
            rule = "unreadable"
        severity: Severity = "warning" if unset else "error"
        found.append(Finding(problem.path, problem.line, problem.column, severity, rule, problem.message))
    return found


def _step(data: Any, path: Path) -> Step | None:
    try:
        return _STEP.validate_python(data, context={"folder": str(path.parent)})
    except ValidationError:
        return None
