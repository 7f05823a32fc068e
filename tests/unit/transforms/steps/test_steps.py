"""The examples in the documentation of the steps are run; and what the examples do not show."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.support.records import Record
from transforms.compiler import compile_pipeline
from transforms.spec import Pipeline
from transforms.steps import STEPS
from transforms.steps.base import Given


def run(steps: list[Any], inputs: list[Any], sink: str | None = "out") -> tuple[list[tuple[str, Any]], list[str], int]:
    """(outputs as (topic, record), messages of failures, filtered)."""
    data = {"name": "p", "source": {"topics": ["in"]}, "steps": steps, "sink": {"topic": sink} if sink else None}
    result = compile_pipeline(Pipeline.model_validate(data)).run(
        [Record(json.dumps(value).encode()) for value in inputs]
    )
    outputs = [(topic, json.loads(value or b"null")) for topic, value, *_ in result.outputs]
    return outputs, [failure.message for failure in result.failures], result.filtered


def _given(entry: Any) -> Record:
    given = entry if isinstance(entry, Given) else Given(entry)
    headers = [(name, text.encode()) for name, text in (given.headers or {}).items()]
    return Record(
        json.dumps(given.value).encode(),
        key_=None if given.key is None else given.key.encode(),
        headers_=list(headers) or None,
    )


@pytest.mark.parametrize("name", STEPS)
def test_example(name: str) -> None:
    """The example of a step does what it says; fields stand in the order that it shows."""
    example = STEPS[name].example
    spec = {
        "name": "p",
        "source": {"topics": ["in"]},
        "steps": [yaml.safe_load(example.yaml)],
        "sink": {"topic": "out"},
    }
    assert [name] == list(spec["steps"][0])  # type: ignore[index]
    result = compile_pipeline(Pipeline.model_validate(spec)).run([_given(entry) for entry in example.inputs])
    found = []
    for (topic, value, key, headers, *_), wanted in zip(result.outputs, example.outputs, strict=True):
        text = None if value is None else json.dumps(json.loads(value))
        found.append((topic, text, key and key.decode() if wanted.key is not None else None))
        if wanted.headers is not None:
            assert list(wanted.headers.items()) == [(n, v.decode()) for n, v in headers or [] if isinstance(v, bytes)]
    expected = [
        (made.topic, None if made.value is None else json.dumps(made.value), made.key) for made in example.outputs
    ]
    assert expected == found
    assert example.failures == [f"{failure.error_class}: {failure.message}" for failure in result.failures]


@pytest.mark.parametrize("name", STEPS)
def test_documented(name: str) -> None:
    """A step has a line of documentation, and the key of its YAML is its only field."""
    assert STEPS[name].summary.endswith(".")
    assert [name] == [info.alias or field for field, info in STEPS[name].model_fields.items()]


def test_set_sees_the_record_as_it_was() -> None:
    """All right-hand sides see the record before the step: two fields can swap."""
    assert run([{"set": {"a": "b", "b": "a"}}], [{"a": 1, "b": 2}]) == ([("out", {"a": 2, "b": 1})], [], 0)


def test_set_keeps_the_place_of_a_field() -> None:
    """A field that exists keeps its place, a new one comes last."""
    outputs, _, _ = run([{"set": {"c": "1", "a": "2"}}], [{"a": 1, "b": 2}])
    assert list(outputs[0][1]) == ["a", "b", "c"]


def test_set_this_copies() -> None:
    """The record as a value of its own field is the record before the step."""
    assert run([{"set": {"copy": "this", "n": "size(this)"}}], [{"a": 1}]) == (
        [("out", {"a": 1, "copy": {"a": 1}, "n": 1})],
        [],
        0,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a / 0.0", "the result is not a finite number, which JSON cannot hold"),
        ("[a / 0.0]", "the result is not a finite number, which JSON cannot hold"),
        ("a * 1e308 * 10.0", "the result is not a finite number, which JSON cannot hold"),
        ("{'k': {1: a}}", "the result is a map with a key of type int, expected string keys for JSON"),
    ],
)
def test_set_refuses_what_json_cannot_hold(text: str, message: str) -> None:
    """Such a result is an error of the record; orjson alone would write null for infinity."""
    assert ([], [message], 0) == run([{"set": {"x": text}}], [{"a": 1.5}])


def test_set_takes_literals() -> None:
    """From Python as from YAML, numbers, true and null may stand for the CEL that they look like."""
    steps = [{"set": {"i": 2, "f": 1.5, "t": True, "n": None, "u": "5u"}}]
    assert run(steps, [{}]) == ([("out", {"i": 2, "f": 1.5, "t": True, "n": None, "u": 5})], [], 0)


def test_rename_swaps() -> None:
    """Renames of one step happen at once."""
    assert run([{"rename": {"a": "b", "b": "a"}}], [{"a": 1, "b": 2}]) == ([("out", {"a": 2, "b": 1})], [], 0)


def test_rename_replaces() -> None:
    """A field of the new name is replaced."""
    assert run([{"rename": {"a": "b"}}], [{"a": 1, "b": 2}]) == ([("out", {"b": 1})], [], 0)


def test_route_first_match_and_default() -> None:
    """The first true condition decides; an entry without one takes the rest, and no sink is needed."""
    route = [{"when": "n > 1", "to": "many"}, {"when": "n > 0", "to": "one"}, {"to": "rest"}]
    expected = [("many", {"n": 2}), ("one", {"n": 1}), ("rest", {"n": 0})]
    assert (expected, [], 0) == run([{"route": route}], [{"n": 2}, {"n": 1}, {"n": 0}], sink=None)


def test_route_absorbs_errors() -> None:
    """An error in one operand of || does not matter where the other is true, in a route as anywhere."""
    route = [{"when": "missing > 1 || n == 1", "to": "yes"}, {"to": "no"}]
    expected = ([("yes", {"n": 1})], ['no such field: "missing"'], 0)
    assert expected == run([{"route": route}], [{"n": 1}, {"n": 2}], sink=None)


def test_filter_absorbs_errors() -> None:
    """`missing && false` is false: the record is filtered, not failed."""
    assert run([{"filter": "missing && n == 1"}], [{"n": 2}, {"n": 1}]) == ([], ['no such field: "missing"'], 1)


def test_names_that_need_quoting() -> None:
    """Any text is a field name; none of it is code."""
    name = "'; raise SystemExit #\n\u2028é"
    outputs, failures, _ = run(
        [{"set": {name: "1"}}, {"rename": {name: name + "2"}}, {"drop": ["x"]}, {"keep": [name + "2"]}], [{"x": 1}]
    )
    assert ([("out", {name + "2": 1})], []) == (outputs, failures)
