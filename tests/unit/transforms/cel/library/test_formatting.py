"""string.format()."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transforms.cel.library.checks import fails, no_overload
from transforms.cel.library.formatting import string_format
from transforms.cel.library.limits import MOST_CHARACTERS
from transforms.cel.library.times import SECOND, Duration, Timestamp
from transforms.cel.values import FALSE, NONE, TRUE, CelType, Uint
from transforms.errors import CelError

SYNTAX = "format: expected %% or one of %s %d %f %e %b %o %x %X, with a precision such as %.3f"


@pytest.mark.parametrize(
    ("template", "arguments", "expected"),
    [
        ("", [], ""),
        ("plain", [], "plain"),
        ("100%%", [], "100%"),
        ("%%s", [], "%s"),
        ("%%%d%%", [7], "%7%"),
        ("%s and %s", ["a", "b"], "a and b"),
        ("ö%s🗻", ["é"], "öé🗻"),
        ("%s", ["%d"], "%d"),
        ("%s", ["a", "left over"], "a"),
    ],
)
def test_templates(template: str, arguments: list[Any], expected: str) -> None:
    assert expected == string_format(template, arguments)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
        (Uint(7), "7"),
        (1.0, "1"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e21, "1000000000000000000000"),
        (1e-7, "0.0000001"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        ('a"b', 'a"b'),
        (b"\xc3\xa9", "é"),
        ([], "[]"),
        ([1, "a", [None, 2.5]], "[1, a, [null, 2.5]]"),
        ({}, "{}"),
        ({"b": 1, "a": {"c": []}}, "{a: {c: []}, b: 1}"),
        ({10: 1, 9: 2, TRUE: 3, FALSE: 4, Uint(5): 6}, "{10: 1, 5: 6, 9: 2, false: 4, true: 3}"),
        (Timestamp(SECOND // 4), "1970-01-01T00:00:00.25Z"),
        (Duration(90 * SECOND), "90s"),
        (CelType("int"), "int"),
    ],
)
def test_strings(value: Any, expected: str) -> None:
    """Doubles have no exponent; maps are in the order of the texts of their keys."""
    assert expected == string_format("%s", [value])


@pytest.mark.parametrize(
    ("template", "value", "expected"),
    [
        ("%d", -7, "-7"),
        ("%d", Uint(2**64 - 1), "18446744073709551615"),
        ("%d", 2.0, "2"),
        ("%d", 2.5, "2.5"),
        ("%d", math.nan, "NaN"),
        ("%f", 1, "1.000000"),
        ("%f", Uint(1), "1.000000"),
        ("%f", -1.5, "-1.500000"),
        ("%f", 1e21, "1000000000000000000000.000000"),
        ("%f", math.inf, "Infinity"),
        ("%.0f", 0.5, "0"),
        ("%.0f", 3.5, "4"),
        ("%.2f", 2.675, "2.67"),
        ("%.10f", 0.1, "0.1000000000"),
        ("%.100f", 0.0, "0." + "0" * 100),
        ("%.002f", 1.0, "1.00"),
        ("%." + "0" * 5000 + "f", 1.0, "1"),
        ("%e", 0.0, "0.000000e+00"),
        ("%e", -12345, "-1.234500e+04"),
        ("%.0e", 15.0, "2e+01"),
        ("%.2e", 1e-100, "1.00e-100"),
        ("%e", math.nan, "NaN"),
        ("%b", 10, "1010"),
        ("%b", -10, "-1010"),
        ("%b", Uint(2), "10"),
        ("%b", False, "0"),
        ("%o", 64, "100"),
        ("%o", -8, "-10"),
        ("%o", Uint(8), "10"),
        ("%x", 255, "ff"),
        ("%X", 255, "FF"),
        ("%x", -255, "-ff"),
        ("%X", Uint(2**64 - 1), "FFFFFFFFFFFFFFFF"),
        ("%x", "jé", "6ac3a9"),
        ("%X", "jé", "6AC3A9"),
        ("%x", b"\x00\xff", "00ff"),
        ("%X", b"\x00\xff", "00FF"),
        ("%x", "", ""),
    ],
)
def test_clauses(template: str, value: Any, expected: str) -> None:
    assert expected == string_format(template, [value])


@pytest.mark.parametrize(
    "template",
    ["%", "a%", "%a", "%E", "%S", "%5d", "%-d", "%+d", "%.f", "%.", "%.3", "%.3%", "%.-1f", "% d", "%s%", "%.٣f"],
)
def test_templates_that_are_none(template: str) -> None:
    fails(SYNTAX, string_format, template, [1, 2, 3])


def test_too_few_arguments() -> None:
    fails("format: 1 clause(s), but 0 argument(s)", string_format, "%s", [])
    fails("format: 3 clause(s), but 2 argument(s)", string_format, "%d %d %d", [1, 2])


@pytest.mark.parametrize("precision", ["101", "00101", "9" * 5000])
def test_precision_is_bounded(precision: str) -> None:
    fails("format: a precision of more than 100", string_format, f"%.{precision}f", [1.0])


def test_length_is_bounded() -> None:
    """Lists and maps that hold a long value many times are refused before their text fills the memory."""
    long = "x" * 1_000_000
    message = f"format: the result would be longer than {MOST_CHARACTERS} characters"
    fails(message, string_format, "%s", [[long] * 1_000_000])
    fails(message, string_format, "%s", [[[[long] * 10] * 10] * 1_000_000])
    fails(message, string_format, "%s", [{str(key): long for key in range(100)}])
    fails(message, string_format, "%s" * 100, [long] * 100)
    assert len(string_format("%s", [[long] * 10])) == 10_000_020


REFUSED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("d", "a number", (None, True, "1", b"1", [1], {}, Timestamp(0), Duration(0), CelType("int"))),
    ("f", "a number", (None, True, "1", b"1", [1.0], {}, Timestamp(0), Duration(0))),
    ("e", "a number", (None, True, "1", b"1", [1.0], {}, Timestamp(0), Duration(0))),
    ("b", "an int, a uint or a bool", (None, 1.0, "1", b"1", [1], Duration(0))),
    ("o", "an int or a uint", (None, True, 1.0, "1", b"1", [1], Duration(0))),
    ("x", "an int, a uint, a string or bytes", (None, True, 1.0, [1], {}, Duration(0))),
    ("s", "a value that has a text", (NONE,)),
]
NAMES = {
    type(None): "null",
    bool: "bool",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    Timestamp: "timestamp",
    Duration: "duration",
    CelType: "type",
    type(NONE): "optional",
}


@pytest.mark.parametrize(
    ("clause", "expected", "value"),
    [(clause, expected, value) for clause, expected, values in REFUSED for value in values],
)
def test_types_of_arguments(clause: str, expected: str, value: Any) -> None:
    no_overload(
        f"format with %{clause} of {NAMES[type(value)]}, expected {expected}", string_format, f"%{clause}", [value]
    )


def test_values_inside_of_values_are_checked() -> None:
    no_overload("format with %s of optional, expected a value that has a text", string_format, "%s", [[{"a": NONE}]])
    fails("format: the bytes are not UTF-8", string_format, "%s", [[b"\xff"]])
    fails("the string has half a surrogate pair, which UTF-8 cannot hold", string_format, "%x", ["\ud800"])


def test_types_of_format_itself() -> None:
    no_overload("format(int, list)", string_format, 1, [])
    no_overload("format(string, string)", string_format, "%s", "a")
    no_overload("format(string, map)", string_format, "%s", {})


@given(
    st.text("%.3sdfebxXo", max_size=8),
    st.lists(st.one_of(st.integers(), st.text(), st.floats(), st.none()), max_size=4),
)
def test_any_template(template: str, arguments: list[Any]) -> None:
    """It is text or CelError, whatever the template is."""
    with contextlib.suppress(CelError):
        assert isinstance(string_format(template, arguments), str)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_come_back(value: float) -> None:
    assert float(string_format("%s", [value])) == value
