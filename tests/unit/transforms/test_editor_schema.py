"""The JSON Schema for editors takes what loads, and marks what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.fuzz import plain_yaml
from transforms.editor_schema import DIALECT, editor_schema, schema_text
from transforms.steps import STEPS

HEAD = "name: p\nsource: {topics: [in]}\nsink: {topic: out}\n"
PIPELINES = sorted(Path("config/pipelines").glob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> jsonschema_rs.Draft202012Validator:
    jsonschema_rs.meta.validate(editor_schema())
    return jsonschema_rs.Draft202012Validator(editor_schema())


def test_the_file_in_config_is_up_to_date() -> None:
    """`reckon schema > config/schema.json` makes it."""
    assert Path("config/schema.json").read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.name)
def test_pipelines_of_the_repository(path: Path, validator: jsonschema_rs.Draft202012Validator) -> None:
    validator.validate(plain_yaml.load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", STEPS)
def test_every_step(name: str, validator: jsonschema_rs.Draft202012Validator) -> None:
    """Its example is valid; the schema says in one line what it does, which an editor shows beside the name."""
    example = plain_yaml.load(STEPS[name].example.yaml)
    validator.validate({**plain_yaml.load(HEAD), "steps": [example]})
    assert editor_schema()["$defs"]["Step"]["properties"][name]["description"] == STEPS[name].summary


GOOD = {
    "numbers and truth are CEL": "steps: [{set: {a: 1, b: 1.5, c: true, d: null}}, {filter: true}]",
    "references": "lineage: '${X}'\ntransaction: {records: '${N:-5}'}\ntombstones: '${T}'",
    "one dead letter, and several": (
        "tests:\n- {name: a, input: {raw: x}, dead_letter: {step: decode}}\n- {name: b, inputs: [{raw: x}], dead_letter: [{}]}"
    ),
    "timestamps": (
        "tests: [{name: a, input: {value: 1, timestamp: '2026-01-31T09:30:00Z'}, outputs: [{topic: out, value: 1, timestamp: 5}]}]"
    ),
    "headers": (
        "tests: [{name: a, input: {value: {}, headers: {a: b}}, outputs: [{topic: out, value: {}, headers: [[a, b], [c, null]]}]}]"
    ),
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_good(text: str, validator: jsonschema_rs.Draft202012Validator) -> None:
    validator.validate(plain_yaml.load(HEAD + text))


BAD = {
    "unknown key": "lineag: true",
    "unknown step": "steps: [{filtr: a}]",
    "two steps in one": "steps: [{filter: a, drop: [b]}]",
    "no step": "steps: [{}]",
    "unknown key of a step": "steps: [{explode: {field: a, int: b}}]",
    "wrong choice": "tombstones: keep",
    "wrong type": "transaction: {records: many}",
    "unknown key of a test": "tests: [{name: a, input: {vale: 1}, filtered: true}]",
    "no name of a test": "tests: [{input: {value: 1}, filtered: true}]",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_bad(text: str, validator: jsonschema_rs.Draft202012Validator) -> None:
    assert not validator.is_valid(plain_yaml.load(HEAD + text))


def test_what_an_editor_shows() -> None:
    """The dialect, and docstrings as descriptions."""
    schema = editor_schema()
    assert schema["$schema"] == DIALECT
    assert schema["required"] == ["name", "source"]
    tombstones: dict[str, Any] = schema["properties"]["tombstones"]
    assert tombstones["description"] == (
        "A null value is a delete. It goes to every topic that an output can go to: there the key may be."
    )
    assert (tombstones["default"], tombstones["anyOf"][0]["enum"]) == ("forward", ["forward", "drop"])
