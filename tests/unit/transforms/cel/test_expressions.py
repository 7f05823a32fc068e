"""The semantics of CEL, one row per rule, in the exact and in the fast form alike."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.transforms.cel.evaluate import evaluate, same
from transforms.cel.values import Uint
from transforms.errors import CelError

RECORD: dict[str, Any] = {
    "i": 7,
    "zero": 0,
    "one": 1,
    "neg": -7,
    "f": 1.5,
    "s": "abc",
    "t": True,
    "no": False,
    "null": None,
    "list": [1, 2.0, "x", None, [True]],
    "map": {"a": {"b": 5}, "k": None},
    "big": 2**63 - 1,
    "small": -(2**63),
    "has space": 1,
}

VALUES: list[tuple[str, Any]] = [
    # literals
    ("1", 1),
    ("-5", -5),
    ("0x1F", 31),
    ("-9223372036854775808", -(2**63)),
    ("5u", Uint(5)),
    ("1.5", 1.5),
    (".5", 0.5),
    ("1e3", 1000.0),
    ("true", True),
    ("null", None),
    (r'"a\n\x41\u00e9\U0001F600\101\""', 'a\nA\xe9\U0001f600A"'),
    (r"'it\'s'", "it's"),
    (r'r"\d"', "\\d"),
    ("'''two\nlines'''", "two\nlines"),
    (r'b"\xff\101é"', b"\xffA\xc3\xa9"),
    ("[1, 'a', [2]]", [1, "a", [2]]),
    ('{"a": 1, "b": [i]}', {"a": 1, "b": [7]}),
    ("{1: 2}", {1: 2}),
    ("[]", []),
    ("{}", {}),
    # fields
    ("i", 7),
    (".i", 7),
    ("this.i", 7),
    ('this["has space"]', 1),
    ("map.a.b", 5),
    ('map["a"]["b"]', 5),
    ("list[1]", 2.0),
    ("list[one]", 2.0),
    ("list[4][0]", True),
    ("{1: 'a', 2: 'b'}[1.0]", "a"),
    ("{true: 'a'}[true]", "a"),
    ("has(map.a)", True),
    ("has(map.k)", True),
    ("has(map.z)", False),
    ("has(this.i)", True),
    ("has(this.zzz)", False),
    ("this", RECORD),
    # arithmetic
    ("i + 1", 8),
    ("1 + 2 * 3", 7),
    ("i - 10", -3),
    ("i * i", 49),
    ("f * 2.0", 3.0),
    ("2.0 * f", 3.0),
    ("f + f", 3.0),
    ("f * f - f", 0.75),
    ("neg / 2", -3),
    ("i / -2", -3),
    ("-7 / 2", -3),
    ("neg % 3", -1),
    ("i % -3", 1),
    ("f / 2.0", 0.75),
    ("f / 0.0", math.inf),
    ("-f / 0.0", -math.inf),
    ("0.0 / 0.0", math.nan),
    ("-i", -7),
    ("-(-i)", 7),
    ("--i", 7),
    ("s + 'd'", "abcd"),
    ("'x' + s", "xabc"),
    ("s + s", "abcabc"),
    ("[1] + [2]", [1, 2]),
    ("list + [i]", [1, 2.0, "x", None, [True], 7]),
    ("b'a' + b'b'", b"ab"),
    ("5u - 3u", Uint(2)),
    ("7u / 2u", Uint(3)),
    ("big - 1", 2**63 - 2),
    # equality
    ("i == 7", True),
    ("i == 7.0", True),
    ("i == 7u", True),
    ("one == 1", True),
    ("zero == 0.0", True),
    ("t == 1", False),
    ("1 == t", False),
    ("no == 0", False),
    ("no != 0", True),
    ("t == true", True),
    ("t != true", False),
    ("one == true", False),
    ("s == 'abc'", True),
    ("'abc' != s", False),
    ("i == 'abc'", False),
    ("null == null", True),
    ("i == null", False),
    ("i != null", True),
    ("i == s", False),
    ("one == t", False),
    ("f == f", True),
    ("list == [1, 2, 'x', null, [true]]", True),
    ("list == [1, 2, 'x', null, [1]]", False),
    ("[1] == [true]", False),
    ("{'a': 1} == {'a': 1.0}", True),
    ("{'a': 1} == {'b': 1}", False),
    ("map == map", True),
    ("0.0 / 0.0 == 0.0 / 0.0", False),
    # order
    ("i > 6.5", True),
    ("6.5 > i", False),
    ("f >= 1.5", True),
    ("i < 8u", True),
    ("s < 'abd'", True),
    ("s >= s", True),
    ("i <= i", True),
    ("i < f", False),
    ("no < t", True),
    ("b'a' < b'b'", True),
    # beside a double an int is made a double, as the conformance cases want it
    ("big < 9223372036854775808.0", False),
    ("big == 9223372036854775808.0", True),
    ("big < 9223372036854777857.0", True),
    ("big == 9223372036854775807", True),
    ("big < 18446744073709551615u", True),
    # logic
    ("t && i > 1", True),
    ("no && i > 1", False),
    ("t && t && no", False),
    ("no || t", True),
    ("no || no", False),
    ("!t", False),
    ("!!t", True),
    ("no && missing", False),
    ("missing && no", False),
    ("t || missing", True),
    ("missing || t", True),
    ("s && no", False),
    ("i / zero > 1 || t", True),
    ("missing > 1 && s == 'x'", False),
    ("missing && (no || zero > 1)", False),
    ("false && 1 / 0 > 1", False),
    ("1 / 0 > 1 || true", True),
    ("t ? i : missing", 7),
    ("no ? missing : s", "abc"),
    ("t ? (no ? 1 : 2) : 3", 2),
    # in
    ("s in ['abc', 'x']", True),
    ("i in ['abc']", False),
    ("list in ['abc']", False),
    ("list in ['a', 'b', 'c', 'd', 'e', 'f']", False),
    ("s in ['a', 'b', 'c', 'd', 'e', 'abc']", True),
    ("1 in list", True),
    ("2 in list", True),
    ("t in [1]", False),
    ("one in [true]", False),
    ("'a' in map", True),
    ("'z' in map", False),
    ("s in map", False),
    ("'i' in this", True),
    ("1 in {1u: 2}", True),
    ("true in {1: 2}", False),
    # functions
    ("size(s)", 3),
    ("s.size()", 3),
    ("size('é😀')", 2),
    ("size(list)", 5),
    ("size(this.map)", 2),
    ("size(b'abc')", 3),
    ("s.contains('b')", True),
    ("s.startsWith('ab')", True),
    ("s.startsWith(s)", True),
    ("s.endsWith('x')", False),
    ("s.matches('^a.c$')", True),
    ("matches(s, 'b')", True),
    ("s.matches('^b')", False),
    ("'(a' == s || s.matches(s)", True),
    ("int(1.9)", 1),
    ("int(-f)", -1),
    ("int('-42')", -42),
    ("int(i)", 7),
    ("int(5u)", 5),
    ("uint(i)", Uint(7)),
    ("uint('8')", Uint(8)),
    ("uint(3.7)", Uint(3)),
    ("double(i)", 7.0),
    ("double(f)", 1.5),
    ("double('-1.5e2')", -150.0),
    ("string(i)", "7"),
    ("string(f)", "1.5"),
    ("string(2.0)", "2"),
    ("string(t)", "true"),
    ("string(5u)", "5"),
    ("string(s)", "abc"),
    ("string(b'abc')", "abc"),
    ("bool('true')", True),
    ("bool(no)", False),
    ("int(f * 100.0)", 150),
    ("i // a comment", 7),
]


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=[text for text, _ in VALUES])
def test_value(text: str, expected: object) -> None:
    """An expression has exactly this value, of exactly this type."""
    found = evaluate(text, RECORD)
    assert same(expected, found), f"expected {expected!r}, found {found!r}"


ERRORS: list[tuple[str, str]] = [
    ("missing", 'no such field: "missing"'),
    ("map.a.z", 'no such field: "z"'),
    ("s.z", 'no such overload: string has no field "z"'),
    ("null.z", 'no such overload: null has no field "z"'),
    ("list['a']", 'no such overload: list has no field "a"'),
    ("list[5]", "index out of range"),
    ("list[-1]", "index out of range"),
    ("list[neg]", "index out of range"),
    ("list[0.5]", "index out of range"),
    ("list[t]", "no such overload: list[bool]"),
    ("{1: 2}[3]", "no such key"),
    ("{1: 2}[true]", "no such key"),
    ("i[0]", "no such overload: int[int]"),
    ("has(s.a)", 'no such overload: has("a") of string'),
    ("big + 1", "integer overflow"),
    ("1 + big", "integer overflow"),
    ("big + big", "integer overflow"),
    ("big * 2", "integer overflow"),
    ("small - 1", "integer overflow"),
    ("small / -1", "integer overflow"),
    ("-small", "integer overflow"),
    ("size(s) * 9223372036854775807", "integer overflow"),
    ("9223372036854775807 + 1", "integer overflow"),
    ("1u - 2u", "unsigned integer overflow"),
    ("i / zero", "division by zero"),
    ("i % zero", "modulus by zero"),
    ("1 / 0", "division by zero"),
    ("i + f", "no such overload: int + double"),
    ("i * 2.0", "no such overload: int * double"),
    ("f * 2", "no such overload: double * int"),
    ("t + 1", "no such overload: bool + int"),
    ("s + 1", "no such overload: string + int"),
    ("s + i", "no such overload: string + int"),
    ("s * 2", "no such overload: string * int"),
    ("list + 'a'", "no such overload: list + string"),
    ("f % 2.0", "no such overload: double % double"),
    ("-s", "no such overload: -(string)"),
    ("-t", "no such overload: -(bool)"),
    ("1 + 2u", "no such overload: int + uint"),
    ("t > 0", "no such overload: bool > int"),
    ("0.5 < no", "no such overload: double < bool"),
    ("s > 0.0", "no such overload: string > double"),
    ("null < 1", "no such overload: null < int"),
    ("list < list", "no such overload: list < list"),
    ("i < 'a'", "no such overload: int < string"),
    ("one < t", "no such overload: int < bool"),
    ("s && t", "no such overload: expected a bool, found string"),
    ("t && s", "no such overload: expected a bool, found string"),
    ("no || i", "no such overload: expected a bool, found int"),
    ("!s", "no such overload: expected a bool, found string"),
    ("s ? 1 : 2", "no such overload: expected a bool, found string"),
    ("missing && t", 'no such field: "missing"'),
    ("missing || no", 'no such field: "missing"'),
    ("t && missing", 'no such field: "missing"'),
    ("'a' in s", "no such overload: string in string"),
    ("size(i)", "no such overload: size(int)"),
    ("i.contains('a')", "no such overload: contains(int, string)"),
    ("i.startsWith('a')", "no such overload: startsWith(int, string)"),
    ("i.endsWith('a')", "no such overload: endsWith(int, string)"),
    ("i.matches('a')", "no such overload: matches(int, string)"),
    ("s.matches('(' + s)", "not a regular expression"),
    ("int(f / 0.0)", "integer overflow"),
    ("int(0.0 / 0.0)", "integer overflow"),
    ("int(1e19)", "integer overflow"),
    ("int('1.5')", "the string is not an int"),
    ("int('9223372036854775808')", "the string is not an int"),
    ("int(18446744073709551615u)", "integer overflow"),
    ("int(t)", "no such overload: int(bool)"),
    ("uint(neg)", "unsigned integer overflow"),
    ("uint('-1')", "the string is not a uint"),
    ("uint(null)", "no such overload: uint(null)"),
    ("double(s)", "the string is not a double"),
    ("double(list)", "no such overload: double(list)"),
    ("string(list)", "no such overload: string(list)"),
    (r"string(b'\xff')", "the bytes are not UTF-8"),
    ("bool(s)", "the string is not a bool"),
    ("bool(i)", "no such overload: bool(int)"),
    ("{'a': 1, 'a': 2}", "repeated key in a map"),
    ("{1.5: 1}", "no such overload: double as a key of a map"),
]


@pytest.mark.parametrize(("text", "expected"), ERRORS, ids=[text for text, _ in ERRORS])
def test_error(text: str, expected: str) -> None:
    """An expression fails with exactly this message, which names types and fields but no value of the record."""
    with pytest.raises(CelError) as caught:
        evaluate(text, RECORD)
    assert expected == str(caught.value)


def test_this_is_a_copy() -> None:
    """A record that becomes a field of itself must not contain itself: JSON could not be written."""
    record = {"a": 1}
    found = evaluate("this", record)
    assert record == found
    assert record is not found


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.sampled_from(["", "a", "3"])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
BINARY = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"])


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaves = [
            "a",
            "b",
            "this",
            "c.a",
            "c['b']",
            "d[0]",
            "1",
            "0",
            "2.5",
            "0.0",
            "'a'",
            "true",
            "null",
            "7u",
            "-1",
            "['a', 'b']",
        ]
        return draw(st.sampled_from([*leaves, "{'a': 1}", "9223372036854775807", "has(c.a)"]))
    part = expressions(depth - 1)
    kind = draw(st.integers(0, 5))
    if kind <= 2:
        return f"({draw(part)} {draw(BINARY)} {draw(part)})"
    if kind == 3:
        return f"({draw(part)} ? {draw(part)} : {draw(part)})"
    if kind == 4:
        method = draw(st.sampled_from(["contains", "startsWith", "endsWith"]))
        return f"({draw(part)}).{method}({draw(part)})"
    return draw(st.sampled_from(["!", "-", "int", "double", "string", "size", "bool", "uint"])) + f"({draw(part)})"


@given(expressions(), st.fixed_dictionaries({}, optional={"a": JSON, "b": JSON, "c": JSON, "d": JSON}))
@settings(max_examples=400, deadline=None)
def test_fast_and_folded_forms_agree_with_the_exact_one(text: str, record: dict[str, Any]) -> None:
    """Whatever the expression and the record: same value or same error from all forms, and never another exception."""
    with contextlib.suppress(CelError):
        evaluate(text, record)
