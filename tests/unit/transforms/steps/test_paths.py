"""Fields by path: how they are written, read, set and removed."""

from __future__ import annotations

from typing import Any

import pytest

from transforms.errors import MissingField, WrongType
from transforms.steps.paths import look, parts, put, remove, take

PATHS = [
    ("a", ("a",)),
    ("a.b.c", ("a", "b", "c")),
    ("`a.b`", ("a.b",)),
    ("`a.b`.c", ("a.b", "c")),
    ("a.`b.c`", ("a", "b.c")),
    ("`a``b`", ("a`b",)),
    (" a ", (" a ",)),
    ("d e.ü", ("d e", "ü")),
]


@pytest.mark.parametrize(("text", "expected"), PATHS)
def test_parts(text: str, expected: tuple[str, ...]) -> None:
    """Dots separate, backticks keep a name together, two of them inside stand for one."""
    assert expected == parts(text)


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", "a`", "``", "`a`b", "a`b`"])
def test_no_path(text: str) -> None:
    """What is none is refused."""
    with pytest.raises(ValueError, match=r".*"):
        parts(text)


def test_look() -> None:
    """None for what is not there, whatever stands in the way."""
    record = {"a": {"b": 1}, "c": [1], "d": None}
    assert [look(record, names) for names in [("a", "b"), ("a", "x"), ("c", "b"), ("d", "b"), ("x", "y")]] == [1] + [
        None
    ] * 4


def test_put_makes_objects_and_copies_on_the_way() -> None:
    """Objects are made where there is nothing, or null; those that are there are not changed in place."""
    inner = {"b": 1}
    record: dict[str, Any] = {"a": inner, "n": None}
    put(record, ("a", "c"), 2)
    put(record, ("n", "x", "y"), 3)
    assert record == {"a": {"b": 1, "c": 2}, "n": {"x": {"y": 3}}}
    assert inner == {"b": 1}
    with pytest.raises(WrongType, match=r'^"a.b" is of type int, expected an object$'):
        put(record, ("a", "b", "c"), 1)


def test_remove_and_take() -> None:
    """Only what is there is removed, without a change to objects that others see."""
    inner = {"b": 1, "c": 2}
    record: dict[str, Any] = {"a": inner, "l": ["b"], "s": "b"}
    for names in [("a", "b"), ("a", "x"), ("l", "b"), ("s", "b"), ("x",), ("x", "y")]:
        remove(record, names)
    assert (record, inner) == ({"a": {"c": 2}, "l": ["b"], "s": "b"}, {"b": 1, "c": 2})
    assert take(record, ("a", "c")) == 2
    assert record["a"] == {}
    with pytest.raises(MissingField, match=r'^no such field: "s.b"$'):
        take(record, ("s", "b"))
