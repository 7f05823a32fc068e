"""What the fuzzer has found: none of it may come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonschema_rs
import pytest

from tests.fuzz.configs import judged
from tests.fuzz.judge import complaints
from tests.fuzz.records import run
from tests.fuzz.targets import targets
from transforms.editor_schema import editor_schema
from transforms.samples import Sample

if TYPE_CHECKING:
    from pathlib import Path

# pytest-timeout's other way uses the timer of the record's time budget.
pytestmark = pytest.mark.timeout(240, method="thread")

DEEP = b'{"a":' * 300 + b"1" + b"}" * 300

FOUND = [
    ("step drop", b'{"customer":3}'),
    ("step drop", b'{"customer":"an email"}'),
    ("lists in lists", b'{"a":[1]}'),
    ("lists in lists", b'{"a":["a"]}'),
    ("metadata", DEEP),
    ("step validate", DEEP),
    ("step mask", b'{"card":%s}' % DEEP),
]


@pytest.mark.parametrize(("name", "value"), FOUND, ids=[f"{name}, {value.decode():.30}" for name, value in FOUND])
def test_found(name: str, value: bytes) -> None:
    """The record is an output, filtered, or a dead letter that says why."""
    [target] = [target for target in targets() if target.name == name]
    record = Sample(value, b'{"a":1}')
    assert complaints(target, [record], run(target, [record])) == []


FILES = {
    "an error at the end of the file": b"n:\ns\n",
    "a format that is a list": b"source:\n  format: []\n",
    "a step that is a number": b"steps: [1, ~, []]\n",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_files_found(text: bytes, tmp_path: Path) -> None:
    """The file is refused, with places in it."""
    validator = jsonschema_rs.Draft202012Validator(editor_schema())
    assert judged(tmp_path / "p.yaml", text, validator) == ("refused", None)
