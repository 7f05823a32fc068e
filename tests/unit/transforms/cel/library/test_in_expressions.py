"""Every function as an expression calls it: names, namespaces, receivers, numbers of arguments; compiled in every form."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.unit.transforms.cel.evaluate import evaluate
from tests.unit.transforms.cel.library.checks import gives
from transforms.cel.library.table import FUNCTIONS
from transforms.cel.library.times import SECOND, Duration, Timestamp
from transforms.cel.values import NONE, Uint
from transforms.errors import CelError

RECORD = {
    "at": "2024-02-29T22:30:15.25Z",
    "zone": "Europe/Paris",
    "took": "1h1m1.5s",
    "s": "Ab cD",
    "parts": ["x", "y"],
    "n": [3, 1, 2],
    "nested": [1, [2, [3]]],
    "i": -3,
    "f": 2.5,
    "rows": [{"k": 2, "v": "b"}, {"k": 1, "v": "a"}],
}
EXPRESSIONS: list[tuple[str, Any]] = [
    ("timestamp(at)", Timestamp(1_709_245_815_250_000_000)),
    ("timestamp(5)", Timestamp(5 * SECOND)),
    ("duration(took)", Duration(3_661_500_000_000)),
    ("timestamp(at).getFullYear()", 2024),
    ("timestamp(at).getMonth()", 1),
    ("timestamp(at).getDate()", 29),
    ("timestamp(at).getDayOfMonth()", 28),
    ("timestamp(at).getDayOfWeek()", 4),
    ("timestamp(at).getDayOfYear('+02:00')", 60),
    ("timestamp(at).getHours(zone)", 23),
    ("duration(took).getMinutes()", 61),
    ("duration(took).getSeconds()", 3661),
    ("timestamp(at).getMilliseconds()", 250),
    ("timestamp(at) + duration(took) > timestamp(at)", True),
    ("string(timestamp(at) - duration('250ms'))", "2024-02-29T22:30:15Z"),
    ("int(timestamp(at))", 1_709_245_815),
    ("string(timestamp(at) - timestamp(0) - duration('474790h'))", "1815.25s"),
    ("timestamp(at) == timestamp('2024-02-29T23:30:15.250+01:00')", True),
    ("s.charAt(1)", "b"),
    ("s.indexOf('D')", 4),
    ("s.indexOf(' ', 3)", -1),
    ("s.lastIndexOf('b', 4)", 1),
    ("s.substring(3)", "cD"),
    ("s.substring(1, 4)", "b c"),
    ("s.replace(' ', '')", "AbcD"),
    ("s.replace('b', 'B', 0)", "Ab cD"),
    ("s.split(' ')", ["Ab", "cD"]),
    ("s.split(' ', 1)", ["Ab cD"]),
    ("parts.join()", "xy"),
    ("parts.join(', ')", "x, y"),
    ("s.lowerAscii()", "ab cd"),
    ("s.upperAscii()", "AB CD"),
    ("' a '.trim()", "a"),
    ("'%s is %.1f'.format([s, f])", "Ab cD is 2.5"),
    ("strings.quote(s)", '"Ab cD"'),
    ("math.greatest(i, f, 1u)", 2.5),
    ("math.greatest(n)", 3),
    ("math.least(1, 2, 3, 4, 5, i)", -3),
    ("math.ceil(f)", 3.0),
    ("math.floor(f)", 2.0),
    ("math.round(f)", 3.0),
    ("math.trunc(-f)", -2.0),
    ("math.abs(i)", 3),
    ("math.sign(i)", -1),
    ("math.sqrt(6.25)", 2.5),
    ("math.isNaN(f)", False),
    ("math.isInf(f / 0.0)", True),
    ("math.isFinite(f)", True),
    ("math.bitAnd(6, 3)", 2),
    ("math.bitOr(6u, 3u)", Uint(7)),
    ("math.bitXor(6, 3)", 5),
    ("math.bitNot(i)", 2),
    ("math.bitShiftLeft(1, 4)", 16),
    ("math.bitShiftRight(16u, 4)", Uint(1)),
    ("n.slice(1, 3)", [1, 2]),
    ("nested.flatten()", [1, 2, [3]]),
    ("nested.flatten(2)", [1, 2, 3]),
    ("[1, 1.0, 2u, 2].distinct()", [1, Uint(2)]),
    ("n.sort()", [1, 2, 3]),
    ("n.sortBy(x, -x)", [3, 2, 1]),
    ("rows.sortBy(r, r.k).map(r, r.v)", ["a", "b"]),
    ("n.reverse()", [2, 1, 3]),
    ("s.reverse()", "Dc bA"),
    ("n.first().value()", 3),
    ("[].last() == optional.none()", True),
    ("n.last().orValue(0)", 2),
    ("lists.range(3)", [0, 1, 2]),
    ("sets.contains(n, [1.0])", True),
    ("sets.equivalent(n, [1, 2, 3, 3])", True),
    ("sets.intersects(n, [4, 5])", False),
    ("base64.encode(b'ab')", "YWI="),
    ("base64.decode('YWI=')", b"ab"),
    ("regex.replace(s, '[A-Z]', '<\\\\0>')", "<A>b c<D>"),
    ("regex.replace(s, '[A-Z]', '-', 1)", "-b cD"),
    ("regex.extract(s, '([a-z]+) ').value()", "b"),
    ("regex.extract(s, 'x')", NONE),
    ("regex.extractAll(s, '[a-z]')", ["b", "c"]),
]


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS)
def test_expressions(text: str, expected: Any) -> None:
    gives(expected, evaluate(text, RECORD))


def test_every_function_is_called() -> None:
    words = {word for text, _ in EXPRESSIONS for word in re.findall(r"[a-zA-Z0-9.]+(?=\()", text)}
    called = {name for name in FUNCTIONS for word in words if word == name or word.endswith(f".{name}")}
    assert set(FUNCTIONS) == called


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timestamp(s)", "the string is not a timestamp of RFC 3339"),
        ("timestamp(at) + timestamp(at)", r"no such overload: timestamp \+ timestamp"),
        ("timestamp(at) - 1", "no such overload: timestamp - int"),
        ("duration(took) < 5", "no such overload: duration < int"),
        ("timestamp(at) * 2", "no such overload"),
        ("-duration(took)", "no such overload"),
        ("timestamp(at).getHours('Nowhere')", "not a time zone"),
        ("i.trim()", r"no such overload: trim\(int\)"),
        ("math.ceil(i)", r"no such overload: math.ceil\(int\)"),
        ("math.greatest([])", "math.greatest of an empty list"),
        ("rows.sort()", "no such overload: sort of a list of map"),
        ("rows.sortBy(r, r)", "no such overload: sortBy of a list of map"),
        ("n.sortBy(x, x == 1 ? 'a' : x)", "no such overload: sortBy of a list of several types"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(CelError, match=message):
        evaluate(text, RECORD)


def test_errors_are_absorbed() -> None:
    """As those of operators are, by what decides without them."""
    gives(True, evaluate("timestamp(s) > timestamp(0) || true", RECORD))
    gives(False, evaluate("'%d'.format([s]) == '' && false", RECORD))
