"""Nodes -> a Python expression that follows the specification to the letter: a call of an operation per node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transforms.cel import names
from transforms.cel.code import list_of, map_of
from transforms.cel.macros import WHOLE
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
    Meta,
    Node,
    Or,
    Select,
    This,
    Var,
    Wrong,
)

if TYPE_CHECKING:
    from transforms.cel.constants import Constants


class ExactWriter:
    """The record is the variable `r`, its metadata are `m_key`, `m_topic`, ... What it writes raises nothing but `CelError`."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants

    def write(self, node: Node) -> str:  # noqa: PLR0911 - one per kind of node
        match node:
            case Literal(_, value):
                return self._constants.literal(value)
            case This():
                return "copied(r)"
            case Meta(_, name):
                return f"m_{name}"
            case Var(_, name, bound):
                return f"{name}()" if bound else name
            case Wrong(_, message):
                return f"wrong({message!a})"
            case Lazy(_, value):
                return f"lambda: {self.write(value)}"
            case Select(_, of, name, _, optional):
                return f"{'optional_' if optional else ''}field({self._operand(of)}, {name!a})"
            case Has(_, of, name):
                return f"has({self._operand(of)}, {name!a})"
            case Index(_, of, key, optional):
                return f"{'optional_' if optional else ''}index({self._operand(of)}, {self.write(key)})"
        return self._compound(node)

    def _compound(self, node: Node) -> str:
        match node:
            case Call(_, function, args):
                write = self.write if function in names.KEEPING else self._operand
                return f"{names.ALL[function].runtime}({', '.join(map(write, args))})"
            case Macro():
                return self._macro(node)
            case And(_, operands) | Or(_, operands):
                name = "and_" if isinstance(node, And) else "or_"
                return f"{name}({', '.join('lambda: ' + self.write(operand) for operand in operands)})"
            case Conditional(_, condition, then, otherwise):
                return f"({self.write(then)} if truth({self.write(condition)}) else {self.write(otherwise)})"
            case ListOf(_, items, optional):
                return list_of(map(self.write, items), optional)
            case MapOf(_, entries, optional):
                return map_of([(self.write(key), self.write(value)) for key, value in entries], optional)
        raise AssertionError(node)

    def _macro(self, node: Macro) -> str:
        operand = self.write(node.range) if node.function == "bind" else self._operand(node.range)
        if node.function == "bind":
            operand = f"lambda: {operand}"
        elif node.function not in WHOLE:
            operand = f"each({operand})" if len(node.variables) == 1 else f"each_pair({operand})"
        bodies = (f"lambda {', '.join(node.variables)}: {self.write(body)}" for body in node.bodies)
        return f"{node.function}({', '.join([operand, *bodies])})"

    def _operand(self, node: Node) -> str:
        """Where a value is only looked at, the record itself will do."""
        return "r" if isinstance(node, This) else self.write(node)
