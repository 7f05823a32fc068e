"""Macros, variables and optionals, in the exact and in the fast form alike."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.transforms.cel.evaluate import evaluate, expect_error, expect_value, same
from transforms.cel.library.times import Timestamp
from transforms.cel.runtime import TYPES
from transforms.cel.values import NONE, Uint
from transforms.errors import CelError

RECORD: dict[str, Any] = {
    "numbers": [1, 2, 3],
    "mixed": [1, "x", None],
    "items": [{"sku": "a", "price": 2.5, "tags": ["x", "y"]}, {"sku": "b", "price": 10.0, "tags": []}],
    "prices": {"a": 1, "b": 2},
    "x": "field",
    "key": "a field named like metadata",
    "type": "order",
    "list": "a field named like a type",
    "empty": [],
    "n": 1,
    "s": "abc",
    "content-type": "text",
}

VALUES: list[tuple[str, Any]] = [
    # one variable
    ("numbers.all(x, x > 0)", True),
    ("numbers.all(x, x > 1)", False),
    ("empty.all(x, 1 / 0 > x)", True),
    ("numbers.exists(x, x == 3)", True),
    ("numbers.exists(x, 6 / (x - 1) == 6)", True),
    ("mixed.exists(x, x > 0)", True),
    ("mixed.all(x, x > 5)", False),
    ("prices.all(k, prices[k] > 0)", True),
    ("prices.exists(k, k == 'b')", True),
    ("numbers.exists_one(x, x > 2)", True),
    ("numbers.existsOne(x, x > 1)", False),
    ("numbers.map(x, x * 2)", [2, 4, 6]),
    ("numbers.map(x, x > 1, x * 2)", [4, 6]),
    ("numbers.filter(x, x != 2)", [1, 3]),
    ("prices.map(k, k + '!')", ["a!", "b!"]),
    ("prices.filter(k, k == 'a')", ["a"]),
    ("items.filter(i, i.price > 5.0).map(i, i.sku)", ["b"]),
    ("items.map(i, i.tags.filter(t, t != 'x'))", [["y"], []]),
    ("items.map(i, i.tags.map(t, i.sku + t))", [["ax", "ay"], []]),
    ("items.exists(i, i.tags.exists(t, t == 'y'))", True),
    ("items.all(i, has(i.sku) && !has(i.nothing))", True),
    ("numbers.map(x, [x]).map(x, x[0])", [1, 2, 3]),
    ("items.sortBy(i, -i.price).map(i, i.sku)", ["b", "a"]),
    # two variables
    ("numbers.all(i, v, v == i + 1)", True),
    ("numbers.exists(i, v, i == 1 && v == 2)", True),
    ("prices.existsOne(k, v, v == 2)", True),
    ("prices.all(k, v, k < 'c' && v < 3)", True),
    ("numbers.transformList(i, v, i * v)", [0, 2, 6]),
    ("numbers.transformList(i, v, i > 0, i * v)", [2, 6]),
    ("prices.transformList(k, v, k)", ["a", "b"]),
    ("prices.transformMap(k, v, v + 1)", {"a": 2, "b": 3}),
    ("prices.transformMap(k, v, v > 1, v + 1)", {"b": 3}),
    ("prices.transformMapEntry(k, v, {string(v): k})", {"1": "a", "2": "b"}),
    ("numbers.transformMapEntry(i, v, v > 1, {string(v): i})", {"2": 1, "3": 2}),
    # scopes
    ("numbers.map(x, this.x)", ["field"] * 3),
    ("numbers.map(x, .x)", ["field"] * 3),
    ("numbers.map(x, numbers.map(x, x))", [[1, 2, 3]] * 3),
    ("numbers.map(x, cel.bind(x, x * 10, x + 1))", [11, 21, 31]),
    ("numbers.map(x, cel.bind(y, x * 10, numbers.filter(y, y == x).map(x, x + 1)[0] + y))", [12, 23, 34]),
    ("cel.bind(x, 1, cel.bind(x, x + 1, cel.bind(x, x + 1, x)))", 3),
    ("cel.bind(x, 1, x) + numbers.map(x, x)[1]", 3),
    ("numbers.filter(key, key > 2)", [3]),
    ("numbers.filter(timestamp, timestamp > 2)", [3]),
    ("numbers.map(this, x)", ["field"] * 3),
    ("cel.bind(big, numbers.map(x, x * 2), big.exists(x, x == 6) ? big : [])", [2, 4, 6]),
    ("cel.bind(e, 1 / 0, true || e > 1)", True),
    ("cel.bind(e, 1 / 0, 2)", 2),
    ("math.greatest(numbers)", 3),
    ("cel.bind(math, {'greatest': 1}, math.greatest)", 1),
    # types
    ("type(n) == int", True),
    ("int != type(s)", True),
    ("type(list) == string", True),
    ("list", "a field named like a type"),
    ("type == 'order'", True),
    ("type(numbers) == list", True),
    ("type(n) in [int, uint]", True),
    ("type(type(n)) == type", True),
    ("type(timestamp) == google.protobuf.Timestamp", True),
    ("type(null) == null_type", True),
    ("type(n) == type(1)", True),
    ("type(n) == type(1.0)", False),
    ("type(1u)", TYPES["uint"]),
    ("mixed.map(m, type(m) == string)", [False, True, False]),
    # a variable hides a type, as it hides a field; `.int` is the type again
    ("cel.bind(int, 5, type(1) == int)", False),
    ("cel.bind(int, type(s), type(s) == int)", True),
    ("cel.bind(int, 5, type(1) == .int)", True),
    ("cel.bind(list, 1, type(empty) in [list, map])", False),
    ("cel.bind(list, type(empty), type(empty) in [list, map])", True),
    ("cel.bind(google, {'protobuf': {'Timestamp': 1}}, type(timestamp) == google.protobuf.Timestamp)", False),
    ("numbers.map(int, int(2.5) + int)", [3, 4, 5]),
    ("numbers.filter(type, type(type) == int)", [1, 2, 3]),
    ("cel.bind(size, 3, size(empty) + size)", 3),
    ("dyn(n) + 1", 2),
    ("bytes(s)", b"abc"),
    ("bytes(b'x')", b"x"),
    # keys of maps
    ("{true: 1, 1: 2}[true]", 1),
    ("{true: 1, 1: 2}[1]", 2),
    ("{true: 1, 1: 2}.map(k, k)", [True, 1]),
    ("{true: 1}.transformMap(k, v, k)[true]", True),
    ("true in {true: 1}", True),
    ("1 in {true: 1}", False),
    ("{1: 'a'}[1u] + {1u: 'b'}[1.0]", "ab"),
    ("{true: 1} == {true: 1.0}", True),
    ("{true: 1} == {1: 1}", False),
    ("[1] in {'a': 1}", False),
    # optionals
    ("this.?n.orValue(0) + this.?m.orValue(5)", 6),
    ("this.?a.?b.?c.hasValue()", False),
    ("items[?0].?sku.orValue('none')", "a"),
    ("items[?9].?sku.orValue('none')", "none"),
    ("items[?0].sku.value()", "a"),
    ("prices[?'a'].optMap(p, p + 1).orValue(0)", 2),
    ("prices[?'z'].optMap(p, p + 1).orValue(0)", 0),
    ("prices[?'a'].optFlatMap(p, numbers[?p]).value()", 2),
    ("optional.of(1).or(optional.of(1 / 0)).value()", 1),
    ("optional.of(1).orValue(1 / 0)", 1),
    ("optional.none()", NONE),
    ("optional.ofNonZeroValue(0).hasValue()", False),
    ("optional.ofNonZeroValue('').hasValue()", False),
    ("optional.ofNonZeroValue(empty).hasValue()", False),
    ("optional.ofNonZeroValue(s).hasValue()", True),
    ("optional.unwrap([optional.of(1), optional.none()])", [1]),
    ("[this.?n, this.?m].unwrapOpt()", [1]),
    ("[?this.?n, 2, ?this.?m,]", [1, 2]),
    ("{?'n': this.?n, ?'m': this.?m, 'k': 1,}", {"n": 1, "k": 1}),
    ("this.?n == optional.of(1)", True),
    ("this.?m == optional.of(null)", False),
    # fields in quotes
    ("this.`content-type`", "text"),
    ("this.?`content-type`.value()", "text"),
    ("has(this.`content-type`)", True),
    # metadata
    ("topic + string(partition) + string(offset)", "orders342"),
    ("headers.h", "x"),
    ("has(headers.nothing)", False),
    ("'h' in headers", True),
    ("headers.map(h, h)", ["h", "b"]),
    ("key", b"k1"),
    ("this.key", "a field named like metadata"),
    ("timestamp", Timestamp(1_700_000_000_123_000_000)),
    ("timestamp > timestamp('2023-11-14T22:13:20Z')", True),
    ("timestamp + duration('1s') == timestamp('2023-11-14T22:13:21.123Z')", True),
    ("timestamp.getFullYear()", 2023),
    ("numbers.map(x, string(x) + topic)", ["1orders", "2orders", "3orders"]),
    # numbers
    ("7 / 2 + numbers[0] / 2", 3),
    ("numbers.map(x, (x - 2) / 2)", [0, 0, 0]),
    ("numbers.map(x, (x - 4) % 2)", [-1, 0, -1]),
    ("numbers.map(x, double(x) / 2.0)", [0.5, 1.0, 1.5]),
    ("uint(7) % 2u", Uint(1)),
]


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=lambda v: str(v)[:60])
def test_value(text: str, expected: object) -> None:
    """An expression has exactly this value, of exactly this type."""
    expect_value(text, RECORD, expected)


ERRORS = [
    ("numbers.all(x, x > 0 && 1 / 0 > x)", "division by zero"),
    ("numbers.all(x, x)", "no such overload: expected a bool, found int"),
    ("numbers.exists(x, x.a)", 'no such overload: int has no field "a"'),
    ("numbers.exists_one(x, 1 / (x - 1) == 1)", "division by zero"),
    ("numbers.map(x, x / 0)", "division by zero"),
    ("numbers.filter(x, x)", "no such overload: expected a bool, found int"),
    ("s.all(x, true)", "no such overload: a macro over string, expected a list or a map"),
    ("n.map(x, x)", "no such overload: a macro over int, expected a list or a map"),
    ("numbers.map(x, nothing)", 'no such field: "nothing"'),
    ("mixed.map(x, x + 1)", "no such overload: string + int"),
    ("prices.transformMapEntry(k, v, {'same': v})", "repeated key in a map"),
    ("prices.transformMapEntry(k, v, v)", "no such overload: transformMapEntry() makes maps, expected {key: value}"),
    ("s.sortBy(x, x)", "no such overload: sortBy() sorts a list"),
    ("cel.bind(e, 1 / 0, e + 1)", "division by zero"),
    ("bytes(n)", "no such overload: bytes(int)"),
    ("{[1]: 1}", "no such overload: list as a key of a map"),
    ("{1: 1, 1u: 2}", "repeated key in a map"),
    ("{true: 1}[b'']", "no such overload: bytes as a key of a map"),
    ("this.?m.value()", "the optional has no value"),
    ("n.?a", 'no such overload: has("a") of int'),
    ("n.value()", "no such overload: value(int)"),
    ("n.orValue(1)", "no such overload: orValue(int)"),
    ("this.?m.or(2)", "no such overload: or(int)"),
    ("optional.of(1).optFlatMap(x, 1)", "no such overload: optFlatMap(int)"),
    ("optional.unwrap([1])", "no such overload: unwrap(int)"),
    ("[?n]", "no such overload: ?int, expected an optional"),
    ("numbers[?'a']", 'no such overload: has("a") of list'),
    ("timestamp + 1", "no such overload: timestamp + int"),
    ("timestamp < n", "no such overload: timestamp < int"),
    ("topic + 1", "no such overload: string + int"),
]


@pytest.mark.parametrize(("text", "expected"), ERRORS, ids=[text for text, _ in ERRORS])
def test_error(text: str, expected: str) -> None:
    """An expression fails with exactly this message."""
    expect_error(text, RECORD, expected)


@pytest.mark.parametrize("record", [[1, 2], "text", b"bytes", None, 5, True, 1.5], ids=repr)
def test_a_record_may_be_any_value(record: object) -> None:
    """With formats other than JSON objects `this` is a string, bytes, a list, null, ...; only fields need a map."""
    assert same(record, evaluate("this", record))
    assert evaluate("this == this", record) is True
    for text in ("a", "has(this.a)", "this.?a"):
        with pytest.raises(CelError):
            evaluate(text, record)
    if isinstance(record, list):
        assert evaluate("this.map(x, x + 1)", record) == [2, 3]
        assert evaluate("this", record) is not record
