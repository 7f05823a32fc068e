"""Constant parts that fail: which, where, and whether the whole fails with them."""

from __future__ import annotations

import pytest

from transforms.cel.folding import fold
from transforms.cel.parser import parse
from transforms.lint.constants import failing

FAILING = [
    ('created > timestamp("yesterday")', [(10, "the string is not a timestamp", False)]),
    ('duration("x") > d', [(0, "the string is not a duration", False)]),
    ("a + 9223372036854775807 * 2", [(4, "integer overflow", False)]),
    ("a || 1 / 0 > 1", [(5, "division by zero", True)]),
    ("a ? b : 1 / 0", [(8, "division by zero", True)]),
    ("1 / 0 > 1 ? a : b", [(0, "division by zero", False)]),
    ("a.map(x, 1 % 0)", [(9, "modulus by zero", True)]),
    ("[1 / 0].map(x, x)", [(1, "division by zero", False)]),
    ("cel.bind(x, 1 / 0, 2)", [(12, "division by zero", True)]),
    ("cel.bind(x, 1, 1 / 0)", [(15, "division by zero", False)]),
    ("this.?a.orValue(1 / 0)", [(16, "division by zero", True)]),
    ('{"a": b, "a": 1}', [(0, "repeated key in a map", False)]),
    ("[1, 2][5]", [(0, "index out of range", False)]),
    ('{"a": 1}["b" + a]', []),
    ("false && 1 / 0 > 1", []),
    ("true || 1 / 0 > 1", []),
    ("false ? 1 / 0 : a", []),
    ("size(lists.range(1000000)) > a", []),
    ("lists.range(1000000).map(x, lists.range(1000000))", []),
]


@pytest.mark.parametrize(("text", "expected"), FAILING)
def test_constants_that_fail(text: str, expected: list[tuple[int, str, bool]]) -> None:
    """The smallest part, its place, and whether the whole may have a value all the same."""
    found = failing(fold(parse(text)))
    assert expected == [
        (part.offset, part.message.partition(" of RFC")[0].partition(", ")[0], part.absorbed) for part in found
    ]
