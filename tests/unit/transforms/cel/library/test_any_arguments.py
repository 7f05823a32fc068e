"""Whatever the arguments are, a function gives a value of CEL or raises CelError."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.cel.library.table import FUNCTIONS, OPERATIONS
from transforms.cel.library.times import Duration, Timestamp, duration_of, timestamp_of
from transforms.cel.runtime import type_name
from transforms.cel.values import FALSE, NONE, TRUE, CelType, Optional, Uint
from transforms.errors import CelError

NAMES = {
    "null": type(None),
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "list": list,
    "map": dict,
    "timestamp": Timestamp,
    "duration": Duration,
    "type": CelType,
    "optional": Optional,
}
INTS = st.one_of(st.integers(-2, 8), st.integers(-(2**63), 2**64 - 1))
TEXTS = st.one_of(
    st.text(max_size=6),
    st.text("%.3sdfebxo\\()[]*+?|ab1: ", max_size=8),
    st.sampled_from(
        ["2024-02-29T12:00:00Z", "1h30m", "Europe/Paris", "+01:00", "YQ==", "\ud800", "a\0b", "(a)(b)", "(a)|b", "\\1"]
    ),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    INTS,
    st.integers(0, 2**64 - 1).map(Uint),
    st.floats(),
    st.sampled_from([math.nan, NONE, CelType("int")]),
    TEXTS,
    st.binary(max_size=4),
    st.integers(-62_135_596_800, 253_402_300_799).map(lambda seconds: timestamp_of(seconds * 10**9)),
    st.integers(-(2**63), 2**63 - 1).map(duration_of),
)
KEYS = st.one_of(TEXTS, INTS, st.sampled_from([TRUE, FALSE]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=2), inner.map(Optional)),
    max_leaves=5,
)
USUAL = st.one_of(TEXTS, INTS, st.lists(INTS, max_size=3), st.lists(TEXTS, max_size=3), VALUES)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_arguments(name: str, data: st.DataObject) -> None:
    function = FUNCTIONS[name]
    most = min(function.arity if function.most is None else function.most, 4)
    arguments: list[Any] = data.draw(st.lists(USUAL, min_size=function.arity, max_size=most))
    if name == "lists.range" and type(arguments[0]) is int:
        arguments[0] %= 1000
    try:
        result = OPERATIONS[function.runtime](*arguments)
    except CelError:
        return
    assert function.result in ("dyn", type_name(result))
    assert type(result) is NAMES[type_name(result)]
