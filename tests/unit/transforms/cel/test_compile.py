"""What a step gets from an expression: a bool, or a value that JSON can hold; its metadata and its type."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.transforms.cel.evaluate import METADATA, same
from transforms.cel import FALLBACK, Constants, compile_expression
from transforms.cel.names import Names
from transforms.cel.namespace import OPERATIONS
from transforms.errors import CelError, CelSyntaxError

RECORD: dict[str, Any] = {"d": 1.5, "n": 3, "s": "x", "l": [1.0, 2.0], "nan": math.nan}


def run(text: str, wanted: Any, **options: Any) -> Any:
    """The value in both forms, which agree or of which the fast one gives up."""
    constants = Constants()
    compiled = compile_expression(text, wanted, constants, **options)
    space = {**OPERATIONS, **constants.names, **METADATA, "r": RECORD}
    exact = eval(compiled.exact, dict(space))
    try:
        fast = eval(compiled.fast, dict(space))
    except FALLBACK:
        return exact
    assert same(exact, fast)
    return exact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("timestamp('2020-01-01T00:00:00.5Z')", "2020-01-01T00:00:00.5Z"),
        ("timestamp", "2023-11-14T22:13:20.123Z"),
        ("duration('1h')", "3600s"),
        ("b'hello'", "aGVsbG8="),
        ("key", "azE="),
        ("headers", {"h": "x", "b": "/w=="}),
        ("5u", 5),
        ("[5u, [b'', timestamp(0)]]", [5, ["", "1970-01-01T00:00:00Z"]]),
        ("{'a': duration('1s')}", {"a": "1s"}),
        ("l.map(x, x * 2.0)", [2.0, 4.0]),
        ("d * 2.0", 3.0),
        ("this.?n.orValue(0)", 3),
    ],
)
def test_what_is_stored(text: str, expected: object) -> None:
    """Times are text, bytes base64, uints numbers, at every depth: the rules of protobuf's JSON form."""
    assert same(expected, run(text, "json"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.0 / (d - d)", "the result is not a finite number, which JSON cannot hold"),
        ("[nan + 1.0]", "the result is not a finite number, which JSON cannot hold"),
        ("{1: s}", "the result is a map with a key of type int, expected string keys for JSON"),
        ("{true: s}", "the result is a map with a key of type bool, expected string keys for JSON"),
        ("[this.?n]", "the result is an optional (expected its value: x.orValue(...)), which JSON cannot hold"),
        ("[type(s)]", "the result is a type, which JSON cannot hold"),
    ],
)
def test_what_cannot_be_stored(text: str, message: str) -> None:
    with pytest.raises(CelError) as caught:
        run(text, "json")
    assert message == str(caught.value)


def test_metadata_and_type_are_told() -> None:
    """Those of the record that the expression uses, also within macros, and the type of its value where it is certain."""
    compiled = compile_expression("l.all(x, x > offset && topic == this.key) && headers.h == s", "bool", Constants())
    assert (frozenset({"offset", "topic", "headers"}), "bool") == (compiled.metadata, compiled.type)
    types = {"d": "dyn", "n + 1": "int", "s + 'x'": "string", "timestamp": "timestamp", "[n]": "list", "size(s)": "int"}
    assert types == {text: compile_expression(text, "json", Constants()).type for text in types}


def test_known_types_leave_checks_out() -> None:
    """A field whose type is certain is compared and added as Python does it."""
    plain = compile_expression("d > 1.0", "bool", Constants(), types={"d": "double"})
    assert plain.fast == "(r['d'] > 1.0)"
    assert run("d + d > 1.0 && s + s == 'xx' && n * n == 9", "bool", types={"d": "double", "s": "string", "n": "int"})


def test_declared_names_are_checked() -> None:
    """Where the names are known, another one is refused; type names stand for types."""
    known = Names(frozenset({"d", "n"}))
    assert run("type(d) == double && n == 3", "bool", known=known)
    with pytest.raises(CelSyntaxError, match="unknown name 'dd', did you mean 'd'"):
        compile_expression("n + dd", "any", Constants(), known=known)


def test_the_fast_form_is_readable() -> None:
    """`reckon compile` prints it."""
    written = {
        'status == "ok" && amount > 10.0': (
            "((r['status'] == 'ok') and ((t1 := r['amount']) > 10.0 or ((t1 is True or t1 is False) and gt(t1, 10.0))))"
        ),
        "items.exists(i, i.sku == 'a')": "any((v_i['sku'] == 'a') for v_i in items(r['items']))",
        "items.map(i, i.sku)": "[v_i['sku'] for v_i in items(r['items'])]",
        "type(a) == int": "(type(r['a']) is int)",
        "this.?a.orValue(0)": "storable(or_value(optional_field(r, 'a'), lambda: 0))",
    }
    assert written == {text: compile_expression(text, "json", Constants()).fast for text in written}
