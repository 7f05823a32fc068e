"""Nodes -> a Python expression that follows the specification to the letter: a call of an operation per node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transforms.cel import functions
from transforms.cel.nodes import And, Call, Conditional, Has, Index, ListOf, Literal, MapOf, Meta, Node, Or, Select, This

if TYPE_CHECKING:
    from transforms.cel.constants import Constants


class ExactWriter:
    """The record is the variable `r`, its metadata are `m_key`, `m_topic`, ... What it writes raises nothing but `CelError`."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants

    def write(self, node: Node) -> str:
        match node:
            case Literal(_, value):
                return self._constants.literal(value)
            case This():
                # A copy: as a value of one of its own fields the record would contain itself.
                return "{**r}"
            case Meta(_, name):
                return f"m_{name}"
            case Select(_, of, name):
                return f"field({self._operand(of)}, {name!a})"
            case Has(_, of, name):
                return f"has({self._operand(of)}, {name!a})"
            case Index(_, of, key):
                return f"index({self._operand(of)}, {self.write(key)})"
        return self._compound(node)

    def _compound(self, node: Node) -> str:
        match node:
            case Call(_, function, args):
                return f"{functions.ALL[function].runtime}({', '.join(map(self._operand, args))})"
            case And(_, operands) | Or(_, operands):
                name = "and_" if isinstance(node, And) else "or_"
                return f"{name}({', '.join('lambda: ' + self.write(operand) for operand in operands)})"
            case Conditional(_, condition, then, otherwise):
                return f"({self.write(then)} if truth({self.write(condition)}) else {self.write(otherwise)})"
            case ListOf(_, items):
                return f"[{', '.join(map(self.write, items))}]"
            case MapOf(_, entries):
                return f"make_map({', '.join(f'({self.write(key)}, {self.write(value)})' for key, value in entries)})"
        raise AssertionError(node)

    def _operand(self, node: Node) -> str:
        """Where a value is only looked at, the record itself will do."""
        return "r" if isinstance(node, This) else self.write(node)
