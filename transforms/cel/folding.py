"""Computes the constant parts of an expression once, at compile time, by the very functions that would compute them later."""

from __future__ import annotations

from dataclasses import replace

from transforms.cel import names
from transforms.cel.library.times import TIMES
from transforms.cel.namespace import OPERATIONS
from transforms.cel.nodes import (
    And,
    Call,
    Conditional,
    Has,
    Index,
    Lazy,
    ListOf,
    Literal,
    Macro,
    MapOf,
    Node,
    Or,
    Select,
)
from transforms.cel.runtime import SCALARS
from transforms.cel.values import CelType
from transforms.errors import CelError

_FOLDED = SCALARS | TIMES | {type(None), CelType}
_MOST = 1_000
"""Characters of a string that is folded: what `a.format([b])` can make of a short text may be long."""


def fold(node: Node) -> Node:
    """The same expression with constants folded. What fails stays as it is: `false && 1 / 0 > 1` is no error."""
    match node:
        case Call(offset, function, args):
            return _call(offset, function, tuple(map(fold, args)))
        case And(offset, operands):
            return _logic(And, False, offset, tuple(map(fold, operands)))
        case Or(offset, operands):
            return _logic(Or, True, offset, tuple(map(fold, operands)))
        case Conditional(offset, condition, then, otherwise):
            test, first, second = fold(condition), fold(then), fold(otherwise)
            if isinstance(test, Literal) and isinstance(test.value, bool):
                return first if test.value else second
            return Conditional(offset, test, first, second)
    return _parts(node)


def _parts(node: Node) -> Node:  # noqa: PLR0911 - one per kind of node
    match node:
        case Select() | Has():
            return replace(node, operand=fold(node.operand))
        case Index():
            return replace(node, operand=fold(node.operand), index=fold(node.index))
        case ListOf():
            return replace(node, items=tuple(map(fold, node.items)))
        case MapOf():
            return replace(node, entries=tuple((fold(key), fold(value)) for key, value in node.entries))
        case Macro():
            return replace(node, range=fold(node.range), bodies=tuple(map(fold, node.bodies)))
        case Lazy():
            return replace(node, value=fold(node.value))
    return node


def _call(offset: int, function: str, args: tuple[Node, ...]) -> Node:
    values = [arg.value for arg in args if isinstance(arg, Literal)]
    if len(values) == len(args) and names.ALL[function].result != "list":  # a list is not folded, but may be long
        try:
            value = OPERATIONS[names.ALL[function].runtime](*values)
        except CelError:
            return Call(offset, function, args)
        if type(value) in _FOLDED and not (isinstance(value, str | bytes) and len(value) > _MOST):
            return Literal(offset, value)
    return Call(offset, function, args)


def _logic(kind: type[And | Or], decisive: bool, offset: int, operands: tuple[Node, ...]) -> Node:  # noqa: FBT001
    """A decisive constant decides, even where another operand would fail; the other constants say nothing."""
    constants = [
        operand.value for operand in operands if isinstance(operand, Literal) and isinstance(operand.value, bool)
    ]
    if decisive in constants:
        return Literal(offset, decisive)
    rest = tuple(o for o in operands if not (isinstance(o, Literal) and isinstance(o.value, bool)))
    return kind(offset, rest) if rest else Literal(offset, not decisive)
