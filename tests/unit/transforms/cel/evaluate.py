"""Evaluates CEL in every form that the compiler knows, and demands that they agree."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

from transforms.cel import FALLBACK, Constants
from transforms.cel.exact import ExactWriter
from transforms.cel.fast import FastWriter
from transforms.cel.folding import fold
from transforms.cel.namespace import OPERATIONS
from transforms.cel.parser import parse
from transforms.errors import CelError

if TYPE_CHECKING:
    from transforms.cel.nodes import Node


def _run(source: str, constants: Constants, record: dict[str, Any]) -> Any:
    return eval(source, {**OPERATIONS, **constants.names, "r": record})


def _outcome(node: Node, record: dict[str, Any]) -> Any:
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
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return bool(left == right or (isinstance(left, float) and math.isnan(left) and math.isnan(right)))


def evaluate(text: str, record: dict[str, Any] | None = None) -> Any:
    """The value; raises CelError. The fast form may give up, which is an exception of FALLBACK, but never differ."""
    record = record or {}
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
