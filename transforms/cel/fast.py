"""Nodes -> a Python expression for the usual types, in line.

Its contract: the value that the exact expression has, or any exception of `compile.FALLBACK`; never another value. So
`r["a"]["b"]` may raise KeyError or TypeError, and `r["a"] < "x"` relies on Python refusing to order a string and anything else;
but where Python would answer differently from CEL (`True < 2`, `2 * 1.5`, list[-1]) a guard leads to the exact operation.
Every operand is evaluated once: what is used twice is kept by `:=` in `t1`, `t2`, ...
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from transforms.cel import inline, loops, names
from transforms.cel.code import Code, list_of, map_of
from transforms.cel.nodes import (
    METADATA,
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
from transforms.cel.runtime import type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transforms.cel.constants import Constants


class FastWriter:
    """`types`: fields of the record whose CEL type is certain, "dyn" being that of the others: they need no checks."""

    def __init__(self, constants: Constants, types: Mapping[str, str] = MappingProxyType({})) -> None:
        self.constants = constants
        self.variables: dict[str, Code] = {}
        """What is known of the variables of macros."""
        self._types = types
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
        kept, text = self.kept(code)
        first = kept if kept == text else f"({text})"
        return f"({kept} if {first} is True or {kept} is False else truth({kept}))"

    def operand(self, node: Node) -> Code:
        """Where a value is only looked at, the record itself will do."""
        return Code("r", "dyn", atom=True, plain=True) if isinstance(node, This) else self.write(node)

    def _literal(self, node: Literal) -> Code:
        text = self.constants.literal(node.value)
        plain = type(node.value) in (type(None), bool, int, float, str) and not text.startswith("c")
        return Code(text, type_name(node.value), atom=True, value=node.value, plain=plain)

    def _this(self, _node: This) -> Code:
        return Code("{**r}", "map", plain=True)

    def _meta(self, node: Meta) -> Code:
        kind = METADATA[node.name]
        return Code(f"m_{node.name}", kind, plain=kind in ("string", "int"))

    def _var(self, node: Var) -> Code:
        return self.variables.get(node.name, Code(node.name, "dyn"))

    def _wrong(self, node: Wrong) -> Code:
        return Code(f"wrong({node.message!a})", "dyn")

    def _lazy(self, node: Lazy) -> Code:
        code = self.write(node.value)
        return Code(f"lambda: {code.text}", code.type)

    def _select(self, node: Select) -> Code:
        operand = self.operand(node.operand)
        if node.optional:
            return Code(f"optional_field({operand.text}, {node.field!a})", "optional")
        if operand.type not in ("dyn", "map"):
            return Code(f"field({operand.text}, {node.field!a})", "optional" if operand.type == "optional" else "dyn")
        kind = self._types.get(node.field, "dyn") if operand.text == "r" else "dyn"
        return Code(f"{operand.text}[{node.field!a}]", kind, plain=operand.plain)

    def _has(self, node: Has) -> Code:
        operand = self.operand(node.operand)
        name = ascii(node.field)
        if operand.type == "map":
            return Code(f"({name} in {operand.text})", "bool", plain=True)
        kept, text = self.kept(operand)
        return Code(f"({name} in {kept} if type({text}) is dict else has({kept}, {name}))", "bool", plain=True)

    def kept(self, code: Code) -> tuple[str, str]:
        """(the name of a value that is used twice, source that evaluates it under this name at its first use)."""
        if code.text.isidentifier():
            return code.text, code.text
        name = self.temporary()
        return name, f"{name} := {code.text}"

    def _index(self, node: Index) -> Code:
        operand, index = self.operand(node.operand), self.write(node.index)
        if node.optional:
            return Code(f"optional_index({operand.text}, {index.text})", "optional")
        if index.atom and index.type == "int" and isinstance(index.value, int) and index.value >= 0:
            kept, text = self.kept(operand)
            text = f"({kept}[{index.text}] if type({text}) is list else index({kept}, {index.text}))"
            return Code(text, "dyn", plain=operand.plain)
        if index.type == "string" and operand.type == "map":
            return Code(f"{operand.text}[{index.text}]", "dyn", plain=operand.plain)
        return Code(f"index({operand.text}, {index.text})", "dyn", plain=operand.plain)

    def _call(self, node: Call) -> Code:
        function = names.ALL[node.function]
        if node.function == "bool?":
            return Code(self.truth(node.args[0]), "bool", plain=True)
        if node.function == "not":
            return Code(f"(not {self.truth(node.args[0])})", "bool", plain=True)
        if node.function == "in" and isinstance(node.args[1], ListOf):
            found = self._in_strings(node.args[0], node.args[1].items)
            if found is not None:
                return found
        if node.function in ("==", "!="):
            found = self._type_test(node.function, *node.args)
            if found is not None:
                return found
        args = [(self.write if node.function in names.KEEPING else self.operand)(arg) for arg in node.args]
        text, kind = inline.call(self, node.function, args)
        return Code(text, kind or function.result, plain=(kind or function.result) in ("bool", "int", "string"))

    def _type_test(self, sign: str, left: Node, right: Node) -> Code | None:
        for one, two in ((left, right), (right, left)):
            if isinstance(one, Call) and one.function == "type" and isinstance(two, Literal):
                return inline.type_test(sign, self.operand(one.args[0]), two.value)
        return None

    def _macro(self, node: Macro) -> Code:
        return loops.macro(self, node)

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
        text = list_of([item.text for item in items], node.optional)
        plain = not node.optional and all(item.plain for item in items)
        return Code(text, "list", plain=plain)

    def _map(self, node: MapOf) -> Code:
        entries = [(self.write(key), self.write(value)) for key, value in node.entries]
        keys = [key.value for key, _ in entries]
        if all(isinstance(key, str) for key in keys) and len(set(keys)) == len(keys) and not node.optional:
            inner = ", ".join(f"{key.text}: {value.text}" for key, value in entries)
            return Code(f"{{{inner}}}", "map", plain=all(value.plain for _, value in entries))
        return Code(map_of([(key.text, value.text) for key, value in entries], node.optional), "map")

    _WRITERS: ClassVar = {
        Literal: _literal,
        This: _this,
        Meta: _meta,
        Var: _var,
        Wrong: _wrong,
        Lazy: _lazy,
        Macro: _macro,
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
