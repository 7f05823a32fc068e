"""The types that lint has calls take and give are those of the runtime, for all values and not only for the samples."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.transforms.cel.library.test_any_arguments import USUAL
from transforms.cel.names import ALL
from transforms.cel.namespace import OPERATIONS
from transforms.cel.optionals import LAZY
from transforms.cel.runtime import type_name
from transforms.errors import CelError
from transforms.lint.overloads import DYN, NUMBER, SAMPLES, expected, result, results, written

CALLS = sorted((name, count) for name, function in ALL.items() for count in range(4) if function.takes(count))


def test_samples() -> None:
    """Of every type, and of no other one."""
    assert {kind: {kind} for kind in SAMPLES} == {kind: set(map(type_name, values)) for kind, values in SAMPLES.items()}


@given(st.data())
@settings(max_examples=1500, deadline=None)
def test_what_is_refused_fails_and_what_is_certain_comes(data: st.DataObject) -> None:
    """No call whose types are refused gives a value; none gives one of another type than the certain one."""
    function, count = data.draw(st.sampled_from(CALLS))
    values: list[Any] = [data.draw(USUAL) for _ in range(count)]
    types = tuple(map(type_name, values))
    if function in LAZY:
        values[-1] = lambda last=values[-1]: last
    try:
        found = type_name(OPERATIONS[ALL[function].runtime](*values))
    except CelError:
        return
    assert results(function, types)
    kinds = (DYN, found, NUMBER if found in ("int", "double") else found)
    assert result(function, types) in kinds
    # An argument whose type is not known makes no more certain, and refuses nothing.
    for place in range(count):
        assert result(function, (*types[:place], DYN, *types[place + 1 :])) in kinds


REFUSED = [
    ("contains", ("string", "int"), "contains(string, int), expected contains(string, string)"),
    ("contains", ("int", "int"), "contains(int, int), expected contains(string, string)"),
    ("size", ("int",), "size(int), expected size(string or bytes or list or map)"),
    ("<", ("string", "int"), "string < int, expected string < string"),
    ("<", ("null", "int"), "null < int, expected int or uint or double < int"),
    ("<", ("list", "list"), "list < list"),
    ("-", ("int", "timestamp"), "int - timestamp, expected int - int"),
    ("neg", ("string",), "-(string), expected -(int or double)"),
    ("matches", ("int", "dyn"), "matches(int, dyn), expected matches(string, dyn)"),
    ("getHours", ("string",), "getHours(string), expected getHours(timestamp or duration)"),
    ("orValue", ("int", "int"), "orValue(int, int), expected orValue(optional, int)"),
]


@pytest.mark.parametrize(("function", "types", "told"), REFUSED)
def test_refused(function: str, types: tuple[str, ...], told: str) -> None:
    """No type comes, and what was expected is said."""
    assert frozenset() == results(function, types)
    assert told == written(function, types) + expected(function, types)


GIVEN = [
    ("+", ("int", DYN), "int"),
    ("+", (DYN, DYN), DYN),
    ("+", (NUMBER, NUMBER), NUMBER),
    ("*", (NUMBER, "double"), "double"),
    ("-", ("timestamp", "timestamp"), "duration"),
    ("math.abs", ("int",), "int"),
    ("math.greatest", ("int", "double"), DYN),
    ("math.greatest", ("int", "int", "int", "int"), DYN),
    ("timestamp", ("string",), "timestamp"),
    ("first", ("list",), "optional"),
    ("orValue", ("optional", "int"), DYN),
    ("reverse", ("string",), "string"),
]


@pytest.mark.parametrize(("function", "types", "gives"), GIVEN)
def test_given(function: str, types: tuple[str, ...], gives: str) -> None:
    assert gives == result(function, types)
