"""Parts of an expression that do not depend on the record, and fail: `timestamp("yesterday")`, `1 / 0`, `{"a": 1, "a": 2}`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transforms.cel.names import ALL
from transforms.cel.namespace import OPERATIONS
from transforms.cel.nodes import And, Call, Conditional, Index, Lazy, ListOf, Literal, Macro, MapOf, Node, Or, children
from transforms.errors import CelError


@dataclass(frozen=True, slots=True)
class Failing:
    offset: int
    """Of the smallest part that fails."""
    message: str
    absorbed: bool
    """Whether the expression may have a value all the same: `a || 1 / 0 > 1`, `a ? b : 1 / 0`."""


_UNKNOWN = object()
"""Depends on the record, or is not worth computing."""
_MOST = 1_000
"""Characters, or items, of a constant that is looked at: as when constants are folded."""


def failing(node: Node) -> list[Failing]:
    """All of them in a folded expression, from which constant parts that are never evaluated are gone already."""
    found: list[Failing] = []
    _walk(node, found, absorbed=False)
    return found


def _walk(node: Node, found: list[Failing], *, absorbed: bool) -> Any:
    """The value of a constant part, or `_UNKNOWN`."""
    if isinstance(node, Literal):
        return node.value
    count = len(found)
    values = [_walk(child, found, absorbed=absorbed or may_be_absorbed) for child, may_be_absorbed in _children(node)]
    if len(found) > count:
        return _UNKNOWN
    try:
        value = _value(node, values)
    except CelError as error:
        found.append(Failing(node.offset, str(error), absorbed))
        return _UNKNOWN
    return _UNKNOWN if isinstance(value, str | bytes | list | dict) and len(value) > _MOST else value


def _children(node: Node) -> list[tuple[Node, bool]]:
    """(part, whether the whole may have a value where the part has none)."""
    match node:
        case And() | Or() | Lazy():
            return [(child, True) for child in children(node)]
        case Conditional(_, condition, then, otherwise):
            return [(condition, False), (then, True), (otherwise, True)]
        case Macro(_, "bind", value, _, bodies):
            return [(value, True), (bodies[0], False)]
        case Macro(_, _, operand, _, bodies):
            return [(operand, False), *((body, True) for body in bodies)]
    return [(child, False) for child in children(node)]


def _value(node: Node, values: list[Any]) -> Any:
    """`values`: those of its parts. Raises `CelError`. Macros are left out: a short one can take hours; lists for their size."""
    if isinstance(node, MapOf) and not node.optional:
        # Two equal keys are wrong, whatever the values are.
        keys, items = values[::2], values[1::2]
        known = [key for key in keys if key is not _UNKNOWN]
        OPERATIONS["make_map"](*((key, None) for key in known))
        return (
            _UNKNOWN
            if any(value is _UNKNOWN for value in values)
            else OPERATIONS["make_map"](*zip(keys, items, strict=True))
        )
    if any(value is _UNKNOWN for value in values):
        return _UNKNOWN
    match node:
        case Call(_, function, _) if ALL[function].result != "list":
            return OPERATIONS[ALL[function].runtime](*values)
        case Index(_, _, _, False):
            return OPERATIONS["index"](*values)
        case ListOf(_, _, optional) if not optional:
            return values
    return _UNKNOWN
