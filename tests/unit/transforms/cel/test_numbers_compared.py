"""Numbers of different types beside each other, where not every int is a double: one rule in every form of an expression."""

from __future__ import annotations

import contextlib
import math
import operator
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.transforms.cel.evaluate import METADATA, evaluate, expect_value, same
from transforms.cel import FALLBACK, Constants, compile_expression
from transforms.cel.namespace import OPERATIONS
from transforms.errors import CelError

E53, E63, E64 = 2**53, 2**63, 2**64
SPECIAL = [0, 1, 0.0, -0.0, 0.5, math.nan, math.inf, -math.inf]
OTHERS = [True, False, None, "a", E64 - 1]


def _near(number: int) -> list[Any]:
    """Ints and doubles around it, of which some are equal only when they are rounded."""
    ints = [number + d for d in (-1, 0, 1) if number + d >= -E63]
    return [*ints, float(number), math.nextafter(number, math.copysign(math.inf, number))]


POOLS = [_near(number) for number in (E53, -E53, E63, -E63)]
"""What a record and an expression are made of: numbers that are far from each other are compared right without any care."""
SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FIELDS = ["a", "b", "c", "a", "b", "c", "d", "l", "m"]


def _literals(pool: list[Any]) -> list[str]:
    written = [repr(n) for n in pool if type(n) is float or n < E63]
    return [*written, *written, *written, "0", "0.5", "1u", f"{E53 + 1}u", "true", "null", "'a'"]


@st.composite
def values(draw: st.DrawFn, literals: list[str], depth: int) -> str:  # noqa: PLR0911 - one per form
    leaf = draw(st.sampled_from(FIELDS) | st.sampled_from(literals))
    if depth == 0:
        return leaf
    inner = values(literals, depth - 1)
    match draw(st.integers(0, 11)):
        case 0:
            return f"[{draw(inner)}, {draw(inner)}]"
        case 1:
            return f"{{'a': {draw(inner)}}}"
        case 2:
            return f"({draw(conditions(literals, 0))} ? {draw(inner)} : {draw(inner)})"
        case 3:
            return draw(st.sampled_from(["double", "int", "uint", "dyn"])) + f"({draw(inner)})"
        case 4:
            return draw(st.sampled_from(["math.greatest", "math.least"])) + f"({draw(inner)}, {draw(inner)})"
        case 5:
            return f"({draw(inner)} {draw(st.sampled_from('+-*/%'))} {draw(inner)})"
    return leaf


@st.composite
def conditions(draw: st.DrawFn, literals: list[str], depth: int = 3) -> str:  # noqa: PLR0911 - one per form
    value = values(literals, draw(st.integers(0, 2)))
    if depth > 0 and draw(st.integers(0, 2)) == 0:
        inner = conditions(literals, depth - 1)
        match draw(st.integers(0, 3)):
            case 0:
                return f"!({draw(inner)})"
            case 1:
                return f"l.exists(d, {draw(inner)})"
        return f"({draw(inner)} {draw(st.sampled_from(['&&', '||']))} {draw(inner)})"
    match draw(st.integers(0, 9)):
        case 0:
            return f"({draw(value)} in [{draw(value)}, {draw(value)}])"
        case 1:
            return f"({draw(value)} in {draw(st.sampled_from(FIELDS))})"
        case 2:
            name = draw(st.sampled_from(["contains", "equivalent", "intersects"]))
            return f"sets.{name}([{draw(value)}, {draw(value)}], [{draw(value)}])"
    return f"({draw(value)} {draw(st.sampled_from([*SIGNS]))} {draw(value)})"


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """(condition, records): one that may have anything in its fields, and some with every number of the pool in each field."""
    pool = draw(st.sampled_from(POOLS))
    value = st.sampled_from(pool) | st.sampled_from(SPECIAL) | st.sampled_from(OTHERS)
    several = st.lists(value, max_size=3)
    mixed = {name: draw(value) for name in "abc"} | {"l": draw(several)}
    optional = {"d": value, "m": several | st.dictionaries(st.sampled_from("ab"), value, max_size=2)}
    mixed |= {name: draw(optional[name]) for name in optional if draw(st.booleans())}
    turned = [pool[at:] + pool[:at] for at in range(len(pool))]
    return draw(conditions(_literals(pool))), [mixed, *(dict(zip("abcd", t, strict=False)) | {"l": t} for t in turned)]


def _typed(text: str, record: dict[str, Any]) -> None:
    """The fast form that is told the types of the record's fields."""
    names = {int: "int", float: "double", str: "string", bool: "bool", list: "list", dict: "map"}
    types = {name: names[type(value)] for name, value in record.items() if type(value) in names}
    constants = Constants()
    compiled = compile_expression(text, "bool", constants, types=types)
    scope = {**OPERATIONS, **constants.names, **METADATA, "r": record}
    with contextlib.suppress(*FALLBACK):
        fast = eval(compiled.fast, scope)
        assert same(eval(compiled.exact, scope), fast), compiled.fast


@given(cases())
@example(("e == 9007199254740992.0", [{"e": E53 + 1}]))
@example(("e > 9007199254740992.0 && (this.q > 1 || e > 0)", [{"e": E53 + 1}, {"e": E53 + 1, "q": 5}]))
@example(("9007199254740993 == 9007199254740992.0 && e == d", [{"e": E53 + 1, "d": float(E53)}]))
@example(("a / 1 > 5", [{"a": E64 - 1}]))
@settings(max_examples=300, deadline=None)
def test_all_forms_agree(case: tuple[str, list[dict[str, Any]]]) -> None:
    """The fast form, the folded one and the exact one: the same value, whatever is known of the types."""
    text, records = case
    for record in records:
        with contextlib.suppress(CelError):
            evaluate(text, record)
        with contextlib.suppress(CelError):
            _typed(text, record)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("pool", POOLS, ids=["2^53", "-2^53", "2^63", "-2^63"])
def test_an_int_beside_a_double_is_rounded_to_a_double(pool: list[Any], sign: str) -> None:
    """Two ints are compared exactly. As fields, beside a literal, in lists and maps, in macros."""
    for left, right in product(pool, [*pool, math.nan, math.inf]):
        record = {"a": left, "b": right, "l": [right]}
        mixed = float in (type(left), type(right))
        expected = SIGNS[sign](float(left), float(right)) if mixed else SIGNS[sign](left, right)
        texts = [f"a {sign} b", f"l.all(x, a {sign} x)"]
        if type(left) is float or left < E63:
            texts.append(f"{left!r} {sign} b")
        if sign == "==":
            texts += ["[a] == [b]", "{'x': [a]} == {'x': l}", "a in l", "a in [b]", "sets.contains(l, [a])"]
        for text in texts:
            expect_value(text, record, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e == 9007199254740992.0", True),
        ("e == d", True),
        ("d == 9007199254740993", True),
        ("[e] == [9007199254740992.0]", True),
        ("9007199254740993 == 9007199254740992.0", True),
        ("e == 9007199254740992", False),
        ("e > 9007199254740992.0", False),
        ("e >= 9007199254740992.0", True),
        ("9223372036854775807 < 9223372036854775808.0", False),
        ("9223372036854775808.0 <= 9223372036854775807", True),
        ("d in {9007199254740993: 1}", False),
        ("d in {9007199254740992: 1}", True),
    ],
)
def test_around_two_to_the_53(text: str, expected: bool) -> None:  # noqa: FBT001
    """As cel-spec's cases and cel-go have it; as a key of a map, a double is only the int that it is exactly."""
    expect_value(text, {"e": E53 + 1, "d": float(E53)}, expected)
