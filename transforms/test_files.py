"""Where the tests of a pipeline stand: in its file, and beside it in `<name>.tests.yaml`; with the place of each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from transforms import wording
from transforms.loading import LoadedPipeline, PipelineError
from transforms.steps.base import Model
from transforms.yaml_tests import MODELS, PipelineTest
from transforms.yaml_tree import Problem, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic_core import ErrorDetails

SUFFIX = ".tests.yaml"
EXPECTED = "tests of a pipeline: a list under `tests`"


class TestFile(Model):
    """A file of tests beside a pipeline."""

    __test__ = False

    tests: Annotated[list[PipelineTest], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class PlacedTest:
    test: PipelineTest
    path: Path
    line: int
    column: int


def beside(pipeline: Path) -> Path:
    """`config/orders.tests.yaml` for `config/orders.yaml`."""
    return pipeline.with_name(pipeline.stem + SUFFIX)


def is_test_file(path: Path) -> bool:
    return path.name.endswith(SUFFIX)


def pipeline_of(tests: Path) -> Path:
    """The pipeline that a file of tests stands beside. Raises `PipelineError` where there is none."""
    name = tests.name.removesuffix(SUFFIX)
    for ending in (".yaml", ".yml"):
        if (pipeline := tests.with_name(name + ending)).exists():
            return pipeline
    raise PipelineError([Problem(str(tests), 1, 1, f"tests without a pipeline, expected {name}.yaml beside them")])


def load_tests(pipeline: LoadedPipeline, env: Mapping[str, str] = os.environ) -> list[PlacedTest]:
    """The tests of a pipeline, those of its own file first. Raises `PipelineError` for the file beside it."""
    inside = pipeline.spec.tests
    found = _placed(pipeline.path, inside, _tree(pipeline.path, env)) if inside else []
    extra = beside(pipeline.path)
    return [*found, *(load_test_file(extra, env) if extra.exists() else [])]


def load_test_file(path: Path, env: Mapping[str, str] = os.environ) -> list[PlacedTest]:
    """Raises `PipelineError` with all that is wrong with the file."""
    tree = _tree(path, env)
    tests: list[PipelineTest] = []
    try:
        if tree.data is not None:
            tests = TestFile.model_validate(tree.data).tests
    except ValidationError as error:
        for details in error.errors(include_url=False):
            _report(tree, details)
    if tree.problems:
        raise PipelineError(sorted(set(tree.problems)))
    return _placed(path, tests, tree)


def _tree(path: Path, env: Mapping[str, str]) -> Tree:
    try:
        return Tree(str(path), path.read_text(encoding="utf-8"), env, EXPECTED)
    except OSError as error:
        message = f"cannot read the file: {error.strerror}, expected a file of tests"
    except UnicodeDecodeError:
        message = "cannot read the file: not UTF-8, expected a file of tests"
    raise PipelineError([Problem(str(path), 1, 1, message)])


def _placed(path: Path, tests: list[PipelineTest], tree: Tree) -> list[PlacedTest]:
    marks = [tree.values["tests", index].start_mark for index in range(len(tests))]
    return [
        PlacedTest(test, path, mark.line + 1 if mark else 1, mark.column + 1 if mark else 1)
        for test, mark in zip(tests, marks, strict=True)
    ]


def _report(tree: Tree, error: ErrorDetails) -> None:
    """One error of pydantic's, at the place that it is about."""
    path: tuple[str | int, ...] = ()
    data: Any = tree.data
    for part in error["loc"]:
        if (isinstance(data, dict) and part in data) or (isinstance(data, list) and isinstance(part, int)):
            data, path = data[part], (*path, part)  # type: ignore[index]
    node = tree.values[path]
    match error["type"]:
        case "extra_forbidden":
            names = tuple(part for part in path[:-1] if isinstance(part, str))
            known = MODELS[names].model_fields if names else TestFile.model_fields
            tree.report(tree.keys[path], wording.unknown(path[-1], known))
        case "missing":
            parent = next((part for part in reversed(path) if isinstance(part, str)), None)
            tree.report(node, wording.missing(error["loc"][-1], parent))
        case _ if path not in tree.unresolved:
            tree.report(node, wording.message(error))
