"""Evaluates CEL in every form that the compiler knows, and demands that they agree."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import pytest

from transforms.cel import FALLBACK, Constants
from transforms.cel.exact import ExactWriter
from transforms.cel.fast import FastWriter
from transforms.cel.folding import fold
from transforms.cel.library.times import Timestamp
from transforms.cel.namespace import OPERATIONS
from transforms.cel.parser import parse
from transforms.cel.values import NONE, Optional
from transforms.errors import CelError

if TYPE_CHECKING:
    from transforms.cel.nodes import Node


MISSING = object()
METADATA = {
    "m_key": b"k1",
    "m_headers": {"h": "x", "b": b"\xff"},
    "m_topic": "orders",
    "m_partition": 3,
    "m_offset": 42,
    "m_timestamp": Timestamp(1_700_000_000_123_000_000),
}


def _run(source: str, constants: Constants, record: Any) -> Any:
    return eval(source, {**OPERATIONS, **constants.names, **METADATA, "r": record})


def _outcome(node: Node, record: Any) -> Any:
    constants = Constants()
    source = ExactWriter(constants).write(node)
    try:
        return _run(source, constants, record)
    except CelError as error:
        return str(error), "error"


def same(left: Any, right: Any) -> bool:
    """Equal in value and type, at every depth; NaN is itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, Optional):
        return (left is NONE) == (right is NONE) and same(left.value, right.value)
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return bool(left == right or (isinstance(left, float) and math.isnan(left) and math.isnan(right)))


def evaluate(text: str, record: Any = MISSING) -> Any:
    """The value; raises CelError. The fast form may give up, which is an exception of FALLBACK, but never differ."""
    record = {} if record is MISSING else record
    node = parse(text)
    expected = _outcome(node, record)
    folded = _outcome(fold(node), record)
    assert same(expected, folded), f"folding changed {text}: {expected} became {folded}"
    constants = Constants()
    source = FastWriter(constants).write(fold(node)).text
    with contextlib.suppress(*FALLBACK):
        fast = _run(source, constants, record)
        assert same(expected, fast), f"the fast form of {text} gave {fast}, expected {expected}: {source}"
    if isinstance(expected, tuple):
        raise CelError(expected[0])
    return expected


def expect_value(text: str, record: Any, expected: object) -> None:
    """Exactly this value, of exactly this type."""
    found = evaluate(text, record)
    assert same(expected, found), f"expected {expected!r}, found {found!r}"


def expect_error(text: str, record: Any, expected: str) -> None:
    """Exactly this message."""
    with pytest.raises(CelError) as caught:
        evaluate(text, record)
    assert expected == str(caught.value)
