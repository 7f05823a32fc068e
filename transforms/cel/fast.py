"""Nodes -> a Python expression for the usual types, in line.

Its contract: the value that the exact expression has, or any exception of `compile.FALLBACK`; never another value. So
`r["a"]["b"]` may raise KeyError or TypeError, and `r["a"] < "x"` relies on Python refusing to order a string and anything else;
but where Python would answer differently from CEL (`True < 2`, `2 * 1.5`, list[-1]) a guard leads to the exact operation.
Every operand is evaluated once: what is used twice is kept by `:=` in `t1`, `t2`, ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from transforms.cel import functions, inline
from transforms.cel.nodes import (
    METADATA,
    And,
    Call,
    Conditional,
    Has,
    Index,
    ListOf,
    Literal,
    MapOf,
    Meta,
    Node,
    Or,
    Select,
    This,
)
from transforms.cel.runtime import type_name

if TYPE_CHECKING:
    from transforms.cel.constants import Constants


@dataclass(frozen=True, slots=True)
class Code:
    """Python source of one value: a single term, so that it can stand anywhere."""

    text: str
    type: str
    """Its CEL type where that is known, else "dyn"."""
    atom: bool = False
    """A literal: may stand twice."""
    value: object = None
    """The value of a literal."""
    plain: bool = False
    """Read from the record, or a literal, as it is: JSON can hold it."""


class FastWriter:
    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self._temporaries = 0

    def temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def write(self, node: Node) -> Code:
        return self._WRITERS[type(node)](self, node)  # type: ignore[operator, no-any-return]

    def truth(self, node: Node) -> str:
        """Source of a value that is a bool, or raises."""
        code = self.write(node)
        if code.type == "bool":
            return code.text
        kept = self.temporary()
        return f"({kept} if ({kept} := {code.text}) is True or {kept} is False else truth({kept}))"

    def _operand(self, node: Node) -> Code:
        return Code("r", "map", atom=True) if isinstance(node, This) else self.write(node)

    def _literal(self, node: Literal) -> Code:
        text = self.constants.literal(node.value)
        plain = not isinstance(node.value, bytes) and text == text.lstrip("c")
        return Code(text, type_name(node.value), atom=True, value=node.value, plain=plain)

    def _this(self, _node: This) -> Code:
        return Code("{**r}", "map", plain=True)

    def _meta(self, node: Meta) -> Code:
        kind = METADATA[node.name]
        return Code(f"m_{node.name}", kind, plain=kind in ("string", "int"))

    def _select(self, node: Select) -> Code:
        operand = self._operand(node.operand)
        if operand.type not in ("dyn", "map"):
            return Code(f"field({operand.text}, {node.field!a})", "dyn")
        return Code(f"{operand.text}[{node.field!a}]", "dyn", plain=operand.plain or operand.text == "r")

    def _has(self, node: Has) -> Code:
        operand = self._operand(node.operand)
        name = ascii(node.field)
        if operand.text == "r":
            return Code(f"({name} in r)", "bool", plain=True)
        kept = self.temporary()
        return Code(
            f"({name} in {kept} if type({kept} := {operand.text}) is dict else has({kept}, {name}))", "bool", plain=True
        )

    def _index(self, node: Index) -> Code:
        operand, index = self._operand(node.operand), self.write(node.index)
        if index.atom and index.type == "int" and isinstance(index.value, int) and index.value >= 0:
            kept = self.temporary()
            text = f"({kept}[{index.text}] if type({kept} := {operand.text}) is list else index({kept}, {index.text}))"
            return Code(text, "dyn", plain=operand.plain)
        return Code(f"index({operand.text}, {index.text})", "dyn", plain=operand.plain)

    def _call(self, node: Call) -> Code:
        function = functions.ALL[node.function]
        if node.function == "bool?":
            return Code(self.truth(node.args[0]), "bool", plain=True)
        if node.function == "not":
            return Code(f"(not {self.truth(node.args[0])})", "bool", plain=True)
        if node.function == "in" and isinstance(node.args[1], ListOf):
            found = self._in_strings(node.args[0], node.args[1].items)
            if found is not None:
                return found
        args = [self._operand(arg) for arg in node.args]
        text, kind = inline.call(self.temporary, self.constants, node.function, args)
        return Code(text, kind or function.result, plain=(kind or function.result) in ("bool", "int", "string"))

    def _in_strings(self, value: Node, items: tuple[Node, ...]) -> Code | None:
        """`x in ["a", "b"]`: a constant of Python, as only a string equals a string."""
        strings = [item.value for item in items if isinstance(item, Literal) and isinstance(item.value, str)]
        if not strings or len(strings) < len(items):
            return None
        inner = ", ".join(map(ascii, strings))
        # A set hashes the value; one that cannot be hashed raises TypeError, and the exact expression answers.
        collection = f"{{{inner}}}" if len(strings) > 4 else f"({inner},)"
        return Code(f"({self.write(value).text} in {collection})", "bool", plain=True)

    def _logic(self, node: And | Or) -> Code:
        operator = " and " if isinstance(node, And) else " or "
        return Code(f"({operator.join(map(self.truth, node.operands))})", "bool", plain=True)

    def _conditional(self, node: Conditional) -> Code:
        condition, then, otherwise = self.truth(node.condition), self.write(node.then), self.write(node.otherwise)
        kind = then.type if then.type == otherwise.type else "dyn"
        return Code(f"({then.text} if {condition} else {otherwise.text})", kind, plain=then.plain and otherwise.plain)

    def _list(self, node: ListOf) -> Code:
        items = [self.write(item) for item in node.items]
        return Code(f"[{', '.join(item.text for item in items)}]", "list", plain=all(item.plain for item in items))

    def _map(self, node: MapOf) -> Code:
        entries = [(self.write(key), self.write(value)) for key, value in node.entries]
        keys = [key.value for key, _ in entries]
        if all(isinstance(key, str) for key in keys) and len(set(keys)) == len(keys):
            inner = ", ".join(f"{key.text}: {value.text}" for key, value in entries)
            return Code(f"{{{inner}}}", "map", plain=all(value.plain for _, value in entries))
        return Code(f"make_map({', '.join(f'({key.text}, {value.text})' for key, value in entries)})", "map")

    _WRITERS: ClassVar = {
        Literal: _literal,
        This: _this,
        Meta: _meta,
        Select: _select,
        Has: _has,
        Index: _index,
        Call: _call,
        And: _logic,
        Or: _logic,
        Conditional: _conditional,
        ListOf: _list,
        MapOf: _map,
    }
