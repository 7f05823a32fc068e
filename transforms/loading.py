"""A pipeline file -> a compiled pipeline, or all of its problems at once, each as `file:line:column`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from yaml.nodes import ScalarNode

from transforms import checks, wording
from transforms.compiler import compile_pipeline
from transforms.spec import DeadLetterLimit, DeadLetters, Pipeline, Sink, Source, TransactionLimits
from transforms.steps import STEPS, step_name
from transforms.steps.assert_ import Assertion
from transforms.steps.explode import Explosion
from transforms.steps.flatten import Flattening
from transforms.steps.headers import HeaderChanges
from transforms.steps.mask import SALT, Hashing, Mask
from transforms.steps.parse_time import TimeForm
from transforms.steps.route import Route
from transforms.steps.validate import Validation
from transforms.yaml_tests import MODELS as TEST_MODELS
from transforms.yaml_tree import Path as KeyPath
from transforms.yaml_tree import Problem, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from transforms.records import Transform

__all__ = ["LoadedPipeline", "PipelineError", "Problem", "load_pipeline"]

_MODELS: dict[tuple[str, ...], type[BaseModel]] = {
    (): Pipeline,
    ("source",): Source,
    ("sink",): Sink,
    ("dead_letters",): DeadLetters,
    ("dead_letters", "limit"): DeadLetterLimit,
    ("transaction",): TransactionLimits,
    ("steps", "assert"): Assertion,
    ("steps", "explode"): Explosion,
    ("steps", "flatten"): Flattening,
    ("steps", "headers"): HeaderChanges,
    ("steps", "mask"): Mask,
    ("steps", "mask", "sha256"): Hashing,
    ("steps", "parse_time"): TimeForm,
    ("steps", "route"): Route,
    ("steps", "route_all"): Route,
    ("steps", "validate"): Validation,
    **TEST_MODELS,
}
"""Which model a mapping of the file is, by the names on its path; that of `parse_time` has the names of fields on it."""
_TYPES = ("int_type", "float_type", "bool_type")


class PipelineError(Exception):
    """A pipeline file that cannot be used, with everything that is wrong with it, in the order of the file."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    spec: Pipeline
    path: Path
    transform: Transform
    step_lines: dict[int, int]
    """Line of the file, 1-based, per index of a step."""
    referenced: frozenset[tuple[str | int, ...]]
    """Paths of the values that came from `${...}`, like ("kafka", "sasl.password"): what must be masked when it is shown."""


def load_pipeline(path: Path, env: Mapping[str, str] = os.environ) -> LoadedPipeline:
    """Reads, checks and compiles a pipeline file. Raises `PipelineError`; never another error for what is in the file."""
    tree = Tree(str(path), _read(path), env)
    spec = None if tree.data is None else _validate(tree)
    if spec is None or tree.problems:
        raise PipelineError(
            sorted(set(tree.problems), key=lambda problem: (problem.line, problem.column, problem.message))
        )
    lines = {index: _line(tree, index) for index in range(len(spec.steps))}
    return LoadedPipeline(spec, path, compile_pipeline(spec, lines), lines, frozenset(tree.referenced))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot read the file: {error.strerror}, expected a pipeline file"
    except UnicodeDecodeError:
        message = "cannot read the file: not UTF-8, expected a pipeline file"
    raise PipelineError([Problem(str(path), 1, 1, message)])


def _line(tree: Tree, step: int) -> int:
    mark = tree.values["steps", step].start_mark
    return 0 if mark is None else mark.line + 1


def _validate(tree: Tree) -> Pipeline | None:
    if not isinstance(tree.data, dict):
        tree.report(tree.values[()], f"the file is not a mapping, expected {tree.expected}")
        return None
    for broken in checks.whole_file(tree.data):
        path = broken.path if broken.path in tree.values else ()
        tree.report((tree.keys if broken.key else tree.values)[path], broken.message)
    for path, node in tree.values.items():
        if path[:1] == ("steps",) and path[2:] == SALT and path not in tree.referenced:
            tree.report(
                node, "the salt stands in the file, where everybody reads it, expected ${NAME} or ${file:/path}"
            )
    errors: list[ErrorDetails] = []
    for _ in range(2):
        try:
            return Pipeline.model_validate(tree.data, context={"folder": Path(tree.file).parent})
        except ValidationError as error:
            errors = error.errors(include_url=False)
        wanted = [_walk(tree.data, details["loc"])[0] for details in errors if details["type"] in _TYPES]
        # In {...} a reference needs quotes, also one that stands for a number: where one is wanted, it is one.
        if not any([tree.unquote(path) for path in wanted]):  # noqa: C419 - all of them
            break
    for details in errors:
        _report(tree, details)
    return None


def _report(tree: Tree, error: ErrorDetails) -> None:
    if not error["loc"]:
        return  # the check of the whole file, which has been reported with its place
    path, rest = _walk(tree.data, error["loc"])
    node = tree.values[path]
    match error["type"]:
        case "extra_forbidden":
            tree.report(tree.keys[path], _unknown(path))
        case "missing":
            parent = next((part for part in reversed(path) if isinstance(part, str)), None)
            tree.report(node, wording.missing(rest[-1], parent))
        case "union_tag_not_found":
            _report_step(tree, path)
        case "cel" if isinstance(node, ScalarNode):
            tree.report(node, error["msg"], offset=tree.place(path, error["ctx"]["offset"]))
        case "schema" if "at" in error.get("ctx", {}):
            inner: KeyPath = (*path, "schema", *error["ctx"]["at"])
            while inner not in tree.values:  # a schema in a file of its own
                inner = inner[:-1]
            tree.report(tree.values[inner], error["msg"])
        case _ if path not in tree.unresolved:
            tree.report(tree.keys[path] if "[key]" in rest else node, wording.message(error))


def _walk(data: Any, loc: tuple[str | int, ...]) -> tuple[KeyPath, list[str | int]]:
    """(the longest path of the file that an error's location names, what is left: a missing key, pydantic's own marks)."""
    path: list[str | int] = []
    rest: list[str | int] = []
    for part in loc:
        if (isinstance(data, dict) and part in data) or (isinstance(data, list) and isinstance(part, int)):
            data = data[part]  # type: ignore[index]
            path.append(part)
        else:
            rest.append(part)
    return tuple(path), rest


def _unknown(path: KeyPath) -> str:
    names = tuple(part for part in path[:-1] if isinstance(part, str))
    if len(path) == 3 and path[0] == "steps":
        return f"a second key {path[-1]!r} in one step, expected a step of its own: start the line with '- '"
    model = _MODELS[names[:2] if names[:2] == ("steps", "parse_time") else names]
    return wording.unknown(path[-1], [field.alias or name for name, field in model.model_fields.items()])


def _report_step(tree: Tree, path: KeyPath) -> None:
    """A step that is no mapping, or whose key is no step."""
    step = tree.data
    for part in path:
        step = step[part]
    assert step_name(step) is None
    if not isinstance(step, dict) or not step:
        tree.report(tree.values[path], f"not a step, expected a mapping with one of {', '.join(STEPS)}")
        return
    for key in step:
        tree.report(tree.keys[*path, key], wording.unknown(key, STEPS, "step"))
