"""Computes the constant parts of an expression once, at compile time, by the very functions that would compute them later."""

from __future__ import annotations

from transforms.cel import functions
from transforms.cel.namespace import OPERATIONS
from transforms.cel.nodes import And, Call, Conditional, Has, Index, ListOf, Literal, MapOf, Node, Or, Select
from transforms.errors import CelError


def fold(node: Node) -> Node:  # noqa: PLR0911 - one per kind of node
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
        case Select(offset, operand, field):
            return Select(offset, fold(operand), field)
        case Has(offset, operand, field):
            return Has(offset, fold(operand), field)
        case Index(offset, operand, index):
            return Index(offset, fold(operand), fold(index))
        case ListOf(offset, items):
            return ListOf(offset, tuple(map(fold, items)))
        case MapOf(offset, entries):
            return MapOf(offset, tuple((fold(key), fold(value)) for key, value in entries))
    return node


def _call(offset: int, function: str, args: tuple[Node, ...]) -> Node:
    values = [arg.value for arg in args if isinstance(arg, Literal)]
    if len(values) == len(args):
        try:
            return Literal(offset, OPERATIONS[functions.ALL[function].runtime](*values))
        except CelError:
            pass
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
