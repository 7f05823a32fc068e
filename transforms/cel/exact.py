"""Nodes -> a Python expression that follows the specification to the letter: a call of `runtime.py` per operation."""

from __future__ import annotations

from transforms.cel import functions
from transforms.cel.constants import Constants
from transforms.cel.nodes import And, Call, Conditional, Has, Index, ListOf, Literal, MapOf, Node, Or, Select, This


def exact(node: Node, constants: Constants) -> str:
    """The record is the variable `r`, always a dict. The expression raises nothing but `CelError`."""

    def operand(node: Node) -> str:
        return "r" if isinstance(node, This) else write(node)

    def several(nodes: tuple[Node, ...], prefix: str = "") -> str:
        return ", ".join(prefix + write(node) for node in nodes)

    def write(node: Node) -> str:
        match node:
            case Literal(_, value):
                return constants.literal(value)
            case This():
                # A copy: as a value of one of its own fields the record would contain itself.
                return "{**r}"
            case Select(_, of, name):
                return f"field({operand(of)}, {ascii(name)})"
            case Has(_, of, name):
                return f"has({operand(of)}, {ascii(name)})"
            case Index(_, of, key):
                return f"index({operand(of)}, {write(key)})"
            case Call(_, function, args):
                return f"{functions.ALL[function].runtime}({', '.join(map(operand, args))})"
            case And(_, operands):
                return f"and_({several(operands, 'lambda: ')})"
            case Or(_, operands):
                return f"or_({several(operands, 'lambda: ')})"
            case Conditional(_, condition, then, otherwise):
                return f"({write(then)} if truth({write(condition)}) else {write(otherwise)})"
            case ListOf(_, items):
                return f"[{several(items)}]"
            case MapOf(_, entries):
                return "make_map(" + ", ".join(f"({write(key)}, {write(value)})" for key, value in entries) + ")"
        raise AssertionError(node)

    return write(node)
