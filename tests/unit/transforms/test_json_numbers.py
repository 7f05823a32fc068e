"""Which numbers of JSON survive: what docs/pipeline.md ("JSON numbers") says is true."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.records import Record
from transforms.compiler import compile_pipeline
from transforms.spec import Pipeline


def _run(steps: list[Any], value: str, form: str = "json") -> tuple[str | None, str | None]:
    """(the output, the error class of the dead letter)."""
    data = {
        "name": "p",
        "source": {"topics": ["in"], "format": form},
        "steps": steps,
        "sink": {"topic": "out", "format": form},
    }
    result = compile_pipeline(Pipeline.model_validate(data)).run([Record(value.encode())])
    outputs = [value.decode() for _, value, *_ in result.outputs if value is not None]
    errors = [failure.error_class for failure in result.failures]
    return outputs[0] if outputs else None, errors[0] if errors else None


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("123456789012345678901234567890", "1.2345678901234568e+29"),
        ("1.10", "1.1"),
        ("1E5", "100000.0"),
        ("0.12345678901234567890", "0.12345678901234568"),
    ],
)
def test_numbers_of_a_value_that_changes(source: str, written: str) -> None:
    """Another field is set: this one is written as the int or double that it was read as. Otherwise it is left alone."""
    value = f'{{"id":{source}}}'
    assert _run([{"set": {"x": "1"}}], value) == (f'{{"id":{written},"x":1}}', None)
    leaving_alone: list[dict[str, Any]] = [
        {"filter": "id != 1"},
        {"key": "'k'"},
        {"headers": {"set": {"h": "'x'"}}},
        {"assert": {"that": "id != 1"}},
        {"validate": {"schema": {"required": ["id"]}}},
        {"route": [{"when": "id != 1", "to": "out"}]},
    ]
    for step in leaving_alone:
        assert _run([step], value) == (value, None)


@pytest.mark.parametrize(("source", "fits"), [("18446744073709551615", True), ("18446744073709551616", False)])
def test_what_to_do(source: str, fits: bool) -> None:  # noqa: FBT001
    """A string survives, text survives, and an assertion sees a double where digits are lost."""
    change = {"set": {"x": "1"}}
    value = f'{{"id":{source}}}'
    text = f'{{"id":"{source}"}}'
    assert _run([change], text) == (text[:-1] + ',"x":1}', None)
    assert _run([{"value": "this + '!'"}], value, "string") == (value + "!", None)
    kept = (value[:-1] + ',"x":1}', None)
    assert _run([{"assert": {"that": "type(id) == int"}}, change], value) == (
        kept if fits else (None, "AssertionFailed")
    )


def test_beyond_the_range_of_a_double() -> None:
    """Refused where a step reads the value."""
    value = '{"id":1e400}'
    assert _run([], value) == (value, None)
    assert _run([{"filter": "true || this.x"}], value) == (None, "DecodeError")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("id > 9223372036854775807", "true"),
        ("string(id)", '"18446744073709551615"'),
        ("double(id)", "1.8446744073709552e+19"),
        ("id", "18446744073709551615"),
        ("id + 1", None),
        ("id - 1", None),
        ("id / 1", None),
        ("-id", None),
    ],
)
def test_ints_from_two_to_the_63(expression: str, expected: str | None) -> None:
    """Compared, converted and stored like others; a result that an int cannot hold is an error (docs/cel.md)."""
    output, error = _run([{"set": {"x": expression}}], '{"id":18446744073709551615}')
    if expected is None:
        assert (output, error) == (None, "CelError")
    else:
        assert (output, error) == (f'{{"id":18446744073709551615,"x":{expected}}}', None)
