"""Topics and names: of one file and its tests, and of all files together."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from transforms import topic_pattern
from transforms.failures import CLASSES, DECODE, ENCODE
from transforms.lint.view import View, problems
from transforms.loading import PipelineError
from transforms.steps import step_name
from transforms.test_files import beside, load_test_file
from transforms.wording import meant
from transforms.yaml_tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transforms.spec import Pipeline
    from transforms.yaml_tests import ExpectedDeadLetter, PipelineTest
    from transforms.yaml_tree import Path as KeyPath


def check(view: View, env: Mapping[str, str]) -> None:
    """Of one file."""
    if view.spec is None:
        return
    _sink(view, view.spec)
    tests = view.spec.tests
    _tests(view, view.spec, tests, set())
    extra = beside(view.path)
    if not extra.exists():
        return
    try:
        placed = load_test_file(extra, env)
    except PipelineError as error:
        view.findings += problems(error)  # once, also where that file is linted itself
        return
    other = View(extra, Tree(str(extra), extra.read_text(encoding="utf-8"), env), None, [])
    _tests(other, view.spec, [entry.test for entry in placed], {test.name for test in tests})
    view.findings += other.findings


def _sink(view: View, spec: Pipeline) -> None:
    route = spec.route
    # A sink that is also the default says the same twice, which is no mistake.
    if spec.sink is not None and route is not None and route.default not in (None, spec.sink.topic):
        view.warn(
            "unused", ("sink",), f"no record goes to the sink: the last route takes what is left, to {route.default}"
        )


def _tests(view: View, spec: Pipeline, tests: Sequence[PipelineTest], names: set[str]) -> None:
    for index, test in enumerate(tests):
        path: KeyPath = ("tests", index)
        if test.name in names:
            view.warn(
                "duplicate-test", (*path, "name"), f"a second test of the name {test.name!r}, expected another name"
            )
        names.add(test.name)
        inputs: list[KeyPath] = [(*path, "input")]
        if test.inputs is not None:
            inputs = [(*path, "inputs", number) for number in range(len(test.inputs))]
        for place, record in zip(inputs, test.records, strict=True):
            if record.topic is not None and not _reads(spec, record.topic):
                view.error(
                    "test-topic", (*place, "topic"), f"{record.topic} is no source topic{_of(spec.source.topics)}"
                )
        for number, output in enumerate(test.outputs or []):
            if output.topic not in spec.topics:
                place = (*path, "outputs", number, "topic")
                view.error("test-topic", place, f"no output can go to {output.topic}{_of(spec.topics)}")
        for number, letter in enumerate(test.dead_letter or []):
            place = (*path, "dead_letter", number)
            _dead_letter(view, spec, place if place in view.tree.values else place[:-1], letter)


def _dead_letter(view: View, spec: Pipeline, place: KeyPath, letter: ExpectedDeadLetter) -> None:
    names = [step_name(step) or "" for step in spec.steps]
    steps = dict.fromkeys([DECODE, *names, ENCODE, *(f"steps[{index}] {name}" for index, name in enumerate(names))])
    if letter.step is not None and letter.step not in steps:
        hint = meant(letter.step, steps) or _of(list(steps)[: len(set(names)) + 2])
        view.error("test-dead-letter", (*place, "step"), f"no step of the pipeline is {letter.step!r}{hint}")
    given = letter.error_class
    if given is not None and given not in CLASSES and not hasattr(builtins, given):
        message = f"no dead letter has the class {given!r}{meant(given, sorted(CLASSES))}"
        view.warn("test-dead-letter", (*place, "error_class"), message)


def _of(topics: Sequence[str]) -> str:
    return f", expected {' or '.join(topics)}" if 0 < len(topics) <= 5 else ""


def _reads(spec: Pipeline, topic: str) -> bool:
    source = spec.source
    if source.pattern is not None:
        return topic_pattern.matches(source.pattern, topic)
    return topic in source.topics


def check_together(views: Sequence[View]) -> None:
    """Names that two pipelines share, and records that go round in a circle of pipelines."""
    known: dict[str, View] = {}
    for view in views:
        name = view.get("name")
        if isinstance(name, str) and name in known:
            message = f"{known[name].path} has this name too: they would share a consumer group and fence each other"
            view.error("duplicate-name", ("name",), message)
        elif isinstance(name, str):
            known[name] = view
    _circles([view for view in views if view.spec is not None])


def _circles(views: Sequence[View]) -> None:
    following = {
        number: [other for other, target in enumerate(views) if _feeds(view, target)]
        for number, view in enumerate(views)
    }
    said: set[frozenset[int]] = set()
    for start in following:
        circle = _way_back(following, start)
        if circle and frozenset(circle) not in said:
            said.add(frozenset(circle))
            names = " -> ".join(str(views[number].get("name")) for number in (*circle, start))
            views[start].warn("loop", ("source",), f"records go round in a circle of pipelines: {names}")


def _feeds(view: View, target: View) -> bool:
    if view is target or view.spec is None or target.spec is None:
        return False  # a loop of one pipeline is refused when it is loaded
    spec = target.spec
    return any(_reads(spec, topic) for topic in view.spec.topics)


def _way_back(following: Mapping[int, list[int]], start: int) -> list[int] | None:
    """The shortest circle through `start`."""
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop(0)
        for other in following[way[-1]]:
            if other == start:
                return way
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return None
