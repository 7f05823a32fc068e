"""What the examples of the steps do not show."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from tests.support.records import Record
from transforms import failures
from transforms.compiler import compile_pipeline
from transforms.errors import ParseError
from transforms.spec import Pipeline
from transforms.steps.parse_time import parse_time

if TYPE_CHECKING:
    from transforms.records import Result


def result_of(steps: list[Any], inputs: list[Any], **more: Any) -> Result:
    data = {"name": "p", "source": {"topics": ["in"]}, "steps": steps, "sink": {"topic": "out"}, **more}
    return compile_pipeline(Pipeline.model_validate(data)).run(
        [Record(json.dumps(value).encode(), offset_=number) for number, value in enumerate(inputs)]
    )


def run(steps: list[Any], inputs: list[Any], **more: Any) -> list[Any]:
    """Values of the outputs, then `class: message` of the failures."""
    result = result_of(steps, inputs, **more)
    values = [json.loads(value or b"null") for _, value, *_ in result.outputs]
    return [*values, *(f"{failure.error_class}: {failure.message}" for failure in result.failures)]


CASTS: list[tuple[str, object, object]] = [
    ("int", "7", 7),
    ("int", 7.9, 7),
    ("int", -7.9, -7),
    ("int", True, 'CastError: "x": no such overload: int(bool), expected int'),
    ("int", "7.0", 'CastError: "x": the string is not an int, expected int'),
    ("int", 1e300, 'CastError: "x": integer overflow, expected int'),
    ("double", 7, 7.0),
    ("double", "1e3", 1000.0),
    ("double", "NaN", 'CastError: "x": not a finite number, which JSON cannot hold, expected double'),
    ("double", "1" * 309, float("1" * 309)),
    ("double", "1" * 401 + "x", 'CastError: "x": text of more than 400 characters, expected double'),
    ("string", 1.0, "1"),
    ("string", True, "true"),
    ("string", {}, 'CastError: "x": no such overload: string(map), expected string'),
    ("bool", "true", True),
    ("bool", "f", False),
    ("bool", "yes", 'CastError: "x": the string is not a bool, expected bool'),
    ("bool", 1, 'CastError: "x": no such overload: bool(int), expected bool'),
    ("bool", None, None),
]


@pytest.mark.parametrize(("kind", "value", "expected"), CASTS)
def test_cast(kind: str, value: object, expected: object) -> None:
    """By the rules of CEL; null stays null."""
    [found] = run([{"cast": {"x": kind}}], [{"x": value}])
    expected = expected if isinstance(expected, str) and expected.startswith("CastError") else {"x": expected}
    assert (expected, str(expected)) == (found, str(found))


def test_explode_in_the_middle() -> None:
    """The steps behind run for each element, a filter inside rejects elements, and indexes count what comes out."""
    steps: list[Any] = [
        {"explode": {"field": "orders"}},
        {"explode": {"field": "orders.items", "into": "item", "index": "nr"}},
        {"filter": "item != 2"},
        {"key": 'key + "-" + string(item)'},
        {"key": 'key + "!"'},
    ]
    record = {"orders": [{"id": 1, "items": [1, 2, 3]}, {"id": 2, "items": []}, {"id": 3, "items": [4]}]}
    result = result_of(steps, [record, {"orders": []}, {"orders": [{"items": [2]}]}, {}])
    assert [(json.loads(output[1] or b""), output[2], output[6]) for output in result.outputs] == [
        ({"orders": {"id": 1}, "item": 1, "nr": 0}, b"key-1!", 0),
        ({"orders": {"id": 1}, "item": 3, "nr": 2}, b"key-3!", 1),
        ({"orders": {"id": 3}, "item": 4, "nr": 0}, b"key-4!", 2),
    ]
    assert (result.filtered, result.failures) == (3, [])


def test_explode_elements_do_not_share() -> None:
    """A nested change in one element is not seen in the next."""
    steps: list[Any] = [{"explode": {"field": "n"}}, {"set": {"a.b": "a.b + n"}}]
    assert run(steps, [{"n": [1, 2], "a": {"b": 10}}]) == [{"n": 1, "a": {"b": 11}}, {"n": 2, "a": {"b": 12}}]


def test_set_does_not_tie_fields_together() -> None:
    """Two fields with one value are changed one by one."""
    steps: list[Any] = [{"set": {"b": "a"}}, {"set": {"b.x": "2"}}, {"drop": ["a.y"]}]
    assert run(steps, [{"a": {"x": 1, "y": 0}}]) == [{"a": {"x": 1}, "b": {"x": 2, "y": 0}}]


def test_explode_all_or_nothing() -> None:
    """An error in the last element leaves none of the outputs (T5), and other records alone."""
    steps: list[Any] = [{"explode": {"field": "n"}}, {"set": {"m": "1 / n"}}]
    result = result_of(steps, [{"n": [1]}, {"n": [1, 1, 0]}, {"n": [1]}])
    assert [output[5].offset() for output in result.outputs] == [0, 2]
    assert [(failure.error_class, failure.step) for failure in result.failures] == [("CelError", "steps[1] set")]


def test_explode_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither too many elements nor too many bytes."""
    steps = [{"explode": {"field": "n", "limit": "3"}}]
    expected = 'TooMuchOutput: "n" has 4 elements, expected at most 3'
    assert run(steps, [{"n": [1, 2, 3]}, {"n": [1, 2, 3, 4]}]) == [{"n": 1}, {"n": 2}, {"n": 3}, expected]
    monkeypatch.setattr("transforms.compiler.MAX_OUTPUT_BYTES", 30)
    monkeypatch.setattr(failures, "MAX_OUTPUT_BYTES", 30)
    expected = "TooMuchOutput: the outputs of the record have more than 30 bytes together"
    assert run(steps, [{"n": [1, 2]}, {"n": [1, 2], "pad": "12345678"}]) == [{"n": 1}, {"n": 2}, expected]


def test_tombstone_inside_explode() -> None:
    """It ends its element alone, goes to all topics, and its outputs count on."""
    steps: list[Any] = [
        {"explode": {"field": "n"}},
        {"key": "string(n)"},
        {"tombstone": "n == 2"},
        {"route_all": [{"when": "n == 1", "to": "a"}, {"to": "b"}]},
    ]
    result = result_of(steps, [{"n": [1, 2, 3]}])
    found = [(output[0], output[2], output[1] is None, output[6]) for output in result.outputs]
    assert found == [
        ("a", b"1", False, 0),
        ("b", b"1", False, 1),
        ("a", b"2", True, 2),
        ("b", b"2", True, 3),
        ("b", b"3", False, 4),
    ]


def test_flatten() -> None:
    """Depth, separator, lists, empty objects, and names that meet."""
    record = {"a": {"b": {"c": 1}, "l": [{}], "e": {}}, "x": {}, "y": 2}
    assert run([{"flatten": {}}], [record]) == [{"a_b_c": 1, "a_l": [{}], "y": 2}]
    assert run([{"flatten": {"separator": ".", "depth": "1"}}], [record]) == [
        {"a.b": {"c": 1}, "a.l": [{}], "a.e": {}, "y": 2}
    ]
    expected = 'FlattenError: two fields would get the name "a_b", expected one: rename or drop the other before'
    assert run([{"flatten": {}}], [{"a": {"b": 1}, "a_b": 2}, {"a_b": 2, "a": {"b": 1}}]) == [expected] * 2


def test_mask() -> None:
    """The digits are those of SHA-256 over salt and value; numbers as their JSON; what is missing or null is left."""
    step = {"mask": {"fields": ["a", "b.c"], "sha256": {"salt": "s"}}}
    values = ["é", 5, True, {"x": 1}, ""]
    texts = ["é", "5", "true", '{"x":1}', ""]
    expected = [{"a": hashlib.sha256(("s" + text).encode()).hexdigest()} for text in texts]
    assert run([step], [{"a": value} for value in values]) == expected
    assert run([step], [{"a": None, "b": 5}, {}]) == [{"a": None, "b": 5}, {}]
    last = {"mask": {"fields": ["a"], "keep_last": "2"}}
    shown = [run([last], [{"a": value}])[0]["a"] for value in ["abcd", "abc", "ab", "a", "", "é😀ü", 12345]]
    assert shown == ["**cd", "*bc", "**", "*", "", "*😀ü", "***45"]
    assert run([{"mask": {"fields": ["a"], "keep_last": "0"}}], [{"a": "abc"}]) == [{"a": "***"}]


TIMES: list[tuple[object, str, str, object]] = [
    (0, "unix", "rfc3339", "1970-01-01T00:00:00Z"),
    ("1769851800", "unix", "rfc3339", "2026-01-31T09:30:00Z"),
    (1769851800.5, "unix", "rfc3339", "2026-01-31T09:30:00.5Z"),
    (-1, "unix_ns", "rfc3339", "1969-12-31T23:59:59.999999999Z"),
    (1769851800123456, "unix_us", "unix_ms", 1769851800123),
    (-1500, "unix_ms", "unix", -2),
    ("2026-01-31T10:30:00+01:00", "rfc3339", "rfc3339", "2026-01-31T09:30:00Z"),
    ("2026-01-31T09:30:00.123456789Z", "rfc3339", "unix_ns", 1769851800123456789),
    ("31/Jan/2026:09:30:00 +0000", "%d/%b/%Y:%H:%M:%S %z", "unix", 1769851800),
    ("20260131", "%Y%m%d", "rfc3339", "2026-01-31T00:00:00Z"),
    ("09:30 PM 5.1.26", "%I:%M %p %d.%m.%y", "rfc3339", "2026-01-05T21:30:00Z"),
    ("2026-02-30", "%Y-%m-%d", "unix", '"t" is not a time of the form %Y-%m-%d'),
    (
        "2026-01-31 09:30:00",
        "rfc3339",
        "unix",
        '"t": the string is not a timestamp',
    ),
    (True, "unix", "unix", '"t": a value of type bool, expected a number'),
    (5, "rfc3339", "unix", '"t": a value of type int, expected text'),
    (10**15, "unix", "unix", '"t": timestamp overflow: not within the years 1 to 9999'),
    (253402300799, "unix", "unix_ns", '"t": integer overflow'),
    (10**400, "unix", "unix", '"t": timestamp overflow: not within the years 1 to 9999'),
]


@pytest.mark.parametrize(("value", "form", "to", "expected"), TIMES)
def test_parse_time(value: object, form: str, to: str, expected: object) -> None:
    """Forms in and out; time before 1970 rounds down; no fraction is lost where the form has room for it."""
    if isinstance(expected, str) and expected.startswith('"t"'):
        with pytest.raises(ParseError, match="^" + re.escape(expected)):
            parse_time(value, '"t"', form, to)
    else:
        assert expected == parse_time(value, '"t"', form, to)


def test_parse_json_replaces_any_value() -> None:
    """Objects, lists, scalars and null."""
    texts = ['{"a": [1]}', "[]", "5", '"x"', "null"]
    assert [r["p"] for r in run([{"parse_json": ["p"]}], [{"p": text} for text in texts])] == [
        {"a": [1]},
        [],
        5,
        "x",
        None,
    ]
    assert run([{"parse_json": ["p"]}], [{"p": 5}]) == ['ParseError: "p" is of type int, expected text that is JSON']


def test_validate_does_not_quote_values_and_is_bounded() -> None:
    """A dead letter names places and rules, three of them at most, and no value of the record."""
    schema = {
        "properties": {
            "a": {"enum": ["x"]},
            "b": {"type": "integer"},
            "c": {"items": {"maxLength": 2}},
            "d": {"pattern": "^(a+)+$"},
        }
    }
    record = {"a": "secret", "b": "secret", "c": ["secret", "ok", "secret"], "d": "a" * 50_000 + "secret"}
    [message] = run([{"validate": {"schema": schema}}], [record])
    assert message.startswith("ValidationFailed: a: ")
    assert message.endswith("; and more")
    assert message.count("; ") == 3
    assert "secret" not in message


def test_validate_of_what_is_nested_deeply() -> None:
    """The library looks no deeper than 255 levels, but only where it has to."""
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    message = "ValidationFailed: no match, or none that can be told: the record is nested more than 255 levels deep"
    step = {"validate": {"schema": {"properties": {"a": {"type": "array"}}, "required": ["a"]}}}
    assert len(result_of([step], [{"a": deep}]).outputs) == 1
    assert run([step], [{"b": deep}]) == [message]


HERE = "tests.unit.transforms.steps.some_functions"


def test_python_has_a_record_of_its_own() -> None:
    """What a function changes in its argument, no other output sees."""
    steps: list[Any] = [{"explode": {"field": "e"}}, {"python": f"{HERE}:changes_its_argument"}]
    assert run(steps, [{"e": [1, 2], "inner": {"n": 0}}]) == [{"e": 1, "inner": {"n": 1}}, {"e": 2, "inner": {"n": 1}}]


PYTHON: list[tuple[str, object, str]] = [
    ("none", {}, "returned None, expected a record"),
    ("raises", {"secret": "hunter2"}, "raised ValueError in line 21"),
    ("raises", {}, "raised KeyError in line 21"),
    ("exits", {}, "raised SystemExit in line 37"),
    ("number", {"x": "nan"}, "returned a number that is not finite"),
    ("number", {"x": "big"}, "returned a number of more than 64 bits"),
    ("number", {"x": "set"}, "returned a value of the type set, expected what JSON can hold"),
    ("number", {"x": "deep"}, "returned a value of the type set, expected what JSON can hold"),
    ("number", {"x": "key"}, "returned a key of the type int, expected text"),
]


@pytest.mark.parametrize(("function", "record", "expected"), PYTHON)
def test_python_errors(function: str, record: object, expected: str) -> None:
    """Exceptions and what JSON cannot hold make dead letters, which do not quote the record."""
    assert run([{"python": f"{HERE}:{function}"}], [record]) == [f"PythonError: {HERE}:{function} {expected}"]


def test_python_can_be_interrupted() -> None:
    """Ctrl-C ends the command, not the record."""
    with pytest.raises(KeyboardInterrupt):
        run([{"python": f"{HERE}:is_interrupted"}], [{}])


def test_python_recursion_is_told_as_such() -> None:
    """The errors of the whole record keep their own class."""
    assert run([{"python": f"{HERE}:endless"}], [{}]) == ["RecursionError: the record is nested too deeply"]


LOADING = [
    ("no colon", "not a function, expected package.module:function"),
    ("a.b:c d", "not a function, expected package.module:function"),
    ("no_such_module:f", "no module 'no_such_module', expected it to be installed, or its folder to be in PYTHONPATH"),
    ("json:nothing", "the module 'json' has no 'nothing', expected a function"),
    (f"{HERE}:rases", f"the module '{HERE}' has no 'rases', did you mean 'raises'?"),
    (f"{HERE}:NOT_A_FUNCTION", f"'NOT_A_FUNCTION' of the module '{HERE}' is no function, expected one"),
    ("this_raises:f", "the module 'this_raises' cannot be imported: ZeroDivisionError: division by zero"),
    ("this_exits:f", "the module 'this_exits' cannot be imported: SystemExit: 4"),
]


@pytest.mark.parametrize(("name", "expected"), LOADING)
def test_python_functions_are_found_when_the_file_is_read(
    name: str, expected: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when the first record comes."""
    (tmp_path / "this_raises.py").write_text("1 / 0\n")
    (tmp_path / "this_exits.py").write_text("raise SystemExit(4)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValidationError) as caught:
        run([{"python": name}], [])
    assert [expected] == [error["msg"] for error in caught.value.errors()]


def test_headers_keep_what_they_do_not_name() -> None:
    """Repeated headers, bytes and null stay as they are; a header that is set stands last, once."""
    steps = [{"headers": {"set": {"a": "key", "n": "null", "b": "{'x': 1}"}, "remove": ["gone"]}}]
    headers: list[tuple[str, str | bytes | None]] = [
        ("r", b"1"),
        ("a", b"1"),
        ("r", b"\xff"),
        ("gone", b""),
        ("a", None),
        ("e", None),
    ]
    data = {"name": "p", "source": {"topics": ["in"]}, "steps": steps, "sink": {"topic": "out"}}
    [output] = compile_pipeline(Pipeline.model_validate(data)).run([Record(b"{}", headers_=headers)]).outputs
    assert output[3] == [("r", b"1"), ("r", b"\xff"), ("e", None), ("a", b"key"), ("n", None), ("b", b'{"x":1}')]
    assert output[1] == b"{}"


def test_key_of_any_type() -> None:
    """Text as it is, null as none, the rest as JSON; what has no JSON is a dead letter."""
    result = result_of([{"key": "k"}], [{"k": value} for value in ["x", "", None, 5, 1.5, True, [1], {"a": 1}]])
    assert [output[2] for output in result.outputs] == [b"x", b"", None, b"5", b"1.5", b"true", b"[1]", b'{"a":1}']
    assert run([{"key": "k / 0.0"}], [{"k": 1.5}]) == [
        "CelError: the result is not a finite number, which JSON cannot hold"
    ]


def test_steps_after_a_value_that_is_no_object() -> None:
    """Expressions take any value; steps on fields say what they found."""
    steps: list[Any] = [{"value": "this.v"}, {"filter": "this != 5"}, {"set": {"a": "1"}}]
    assert run(steps, [{"v": 5}, {"v": {}}, {"v": [1]}, {"v": None}]) == [
        {"a": 1},
        "WrongType: set needs an object, found a value of type list",
        "WrongType: set needs an object, found a value of type null",
    ]


def test_default_sees_the_defaults_before_it() -> None:
    """One after the other, and only where there is nothing."""
    steps = [{"default": {"a": "1", "b": "a + 1", "c.d": "b"}}]
    assert run(steps, [{}, {"a": 5, "c": {"d": 0}}]) == [
        {"a": 1, "b": 2, "c": {"d": 2}},
        {"a": 5, "c": {"d": 0}, "b": 6},
    ]


@pytest.mark.parametrize(
    "step", [{"mask": {"fields": ["a"], "keep_last": "1"}}, {"key": "a"}, {"headers": {"set": {"a": "a"}}}]
)
def test_values_that_are_nested_too_deeply(step: Any) -> None:
    """Where a step writes JSON, it may find that there is none."""
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    assert run([step], [{"a": deep}]) == ["EncodeError: no JSON form: Recursion limit reached"]
