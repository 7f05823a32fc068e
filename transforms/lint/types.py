"""CEL types, as far as an expression gives them away: literals, results of functions, fields that a step before has made.

"dyn" is what is not known, and it never leads to a finding; "int?" is an int or null. So what is found here fails, or is false,
for every record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from transforms.cel.names import ALL
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
    Node,
    Or,
    Select,
    This,
)
from transforms.cel.nodes import children as cel_children
from transforms.cel.runtime import type_name
from transforms.lint.fields import chain

if TYPE_CHECKING:
    from collections.abc import Callable

    from transforms.lint.fields import FieldNames

DYN = "dyn"
_NUMBERS = ("int", "uint", "double")
_TIMES = [("timestamp", "duration", "timestamp")]
_BINARY: dict[str, list[tuple[str, str, str]]] = {
    "+": [
        *((kind, kind, kind) for kind in (*_NUMBERS, "string", "bytes", "list", "duration")),
        *_TIMES,
        ("duration", "timestamp", "timestamp"),
    ],
    "-": [
        *((kind, kind, kind) for kind in (*_NUMBERS, "duration")),
        *_TIMES,
        ("timestamp", "timestamp", "duration"),
    ],
    "*": [(kind, kind, kind) for kind in _NUMBERS],
    "/": [(kind, kind, kind) for kind in _NUMBERS],
    "%": [(kind, kind, kind) for kind in ("int", "uint")],
}
_BINARY |= {
    sign: [
        *((kind, kind, "bool") for kind in (*_NUMBERS, "bool", "string", "bytes", "timestamp", "duration")),
        *((a, b, "bool") for a in _NUMBERS for b in _NUMBERS if a != b),
    ]
    for sign in ("<", "<=", ">", ">=")
}
"""(left, right, result) of each operator: cel-spec, langdef.md, "List of Standard Definitions"."""
_TEXT = (("string", "string"),)
_ARGUMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "contains": _TEXT,
    "startsWith": _TEXT,
    "endsWith": _TEXT,
    "matches": _TEXT,
    "size": (("string",), ("bytes",), ("list",), ("map",)),
    "neg": (("int",), ("double",), ("duration",)),
}
"""Overloads of functions whose arguments are worth a look; the others are not checked."""


@dataclass(slots=True)
class Checked:
    type: str
    errors: list[tuple[int, str]] = field(default_factory=list)
    """(place in the text, what is wrong): the expression, or this part of it, fails for every record."""
    never: list[tuple[int, str]] = field(default_factory=list)
    """Comparisons that are false, or true, for every record."""


def check(node: Node, type_of: Callable[[FieldNames], str]) -> Checked:
    """`type_of`: the type of a field of the record, "dyn" where it is not known."""
    checked = Checked(DYN)
    checked.type = _Checker(type_of, checked).infer(node)
    return checked


class _Checker:
    def __init__(self, type_of: Callable[[FieldNames], str], found: Checked) -> None:
        self._type_of = type_of
        self._found = found

    def infer(self, node: Node) -> str:  # noqa: PLR0911 - one per kind of node
        match node:
            case This():
                return DYN  # text where the source's format is string
            case Literal(_, value):
                return _literal(value)
            case Call():
                return self._call(node)
            case And(_, operands) | Or(_, operands):
                for operand in operands:
                    self._must_be_bool(operand)
                return "bool"
            case Conditional(_, condition, then, otherwise):
                self._must_be_bool(condition)
                first, second = self.infer(then), self.infer(otherwise)
                return first if first == second else DYN
            case Select():
                return self._select(node)
            case Has(offset, operand, _):
                self._has_fields(offset, operand, "has()")
                return "bool"
            case Index():
                return self._index(node)
            case ListOf() | MapOf():
                self._children(node)
                return "list" if isinstance(node, ListOf) else "map"
        self._children(node)
        return METADATA.get(str(getattr(node, "name", "")), DYN) if type(node).__name__ == "Meta" else DYN

    def _kind(self, node: Node) -> str:
        """The type where it is not null, for which there is no overload anyway."""
        return self.infer(node).rstrip("?")

    def _children(self, node: Node) -> None:
        for child in cel_children(node):
            self.infer(child)

    def _must_be_bool(self, node: Node) -> None:
        kind = self._kind(node)
        if kind not in ("bool", DYN):
            self._found.errors.append((node.offset, f"found {kind}, expected bool"))

    def _select(self, node: Select) -> str:
        if not isinstance(node.operand, This):
            self._has_fields(node.offset, node.operand, f"the field {node.field!r}")
        names = chain(node)
        return DYN if names is None or getattr(node, "optional", False) else self._type_of(names)

    def _has_fields(self, offset: int, operand: Node, what: str) -> None:
        kind = self._kind(operand)
        if kind not in ("map", "optional", DYN):
            self._found.errors.append((offset, f"{what} of a {kind}, expected a map"))

    def _index(self, node: Index) -> str:
        kind, index = self._kind(node.operand), self._kind(node.index)
        if kind not in ("map", "list", "optional", DYN):
            self._found.errors.append((node.offset, f"an index of a {kind}, expected a list or a map"))
        elif kind == "list" and index not in (*_NUMBERS, DYN):
            self._found.errors.append((node.index.offset, f"the index of a list is a {index}, expected an int"))
        return DYN

    def _call(self, node: Call) -> str:
        nullable = [self.infer(arg) for arg in node.args]
        types = [kind.rstrip("?") for kind in nullable]
        name = node.function
        if name == "not":
            if types[0] not in ("bool", DYN):
                self._found.errors.append((node.offset, f"no such overload: !{types[0]}, expected a bool"))
            return "bool"
        if name in ("==", "!="):
            self._equal(node, nullable)
            return "bool"
        if name == "in":
            if types[1] not in ("list", "map", DYN):
                self._found.errors.append((node.args[1].offset, f"`in` a {types[1]}, expected a list or a map"))
            return "bool"
        if name in _BINARY and len(types) == 2:
            return self._binary(node, types)
        self._arguments(node, types)
        if name == "neg":
            return types[0]
        return ALL[name].result if name in ALL else DYN

    def _binary(self, node: Call, types: list[str]) -> str:
        left, right = types
        fitting = {result for a, b, result in _BINARY[node.function] if left in (a, DYN) and right in (b, DYN)}
        if not fitting:
            hint = ""
            if {left, right} <= {*_NUMBERS} and left != right:
                hint = f", expected two of one type: write {right}(...) or {left}(...) around one of them"
            elif "string" in (left, right) and node.function == "+":
                hint = ", expected two of one type: string(...) makes text of a number"
            self._found.errors.append((node.offset, f"no such overload: {left} {node.function} {right}{hint}"))
        return fitting.pop() if len(fitting) == 1 else DYN

    def _equal(self, node: Call, types: list[str]) -> None:
        values = [_values(kind) for kind in types]
        if any(DYN in kinds or "optional" in kinds for kinds in values) or values[0] & values[1]:
            return
        outcome = "false" if node.function == "==" else "true"
        left, right = (kind.rstrip("?") for kind in types)
        self._found.never.append((node.offset, f"always {outcome}: a {left} never equals a {right}"))

    def _arguments(self, node: Call, types: list[str]) -> None:
        overloads = _ARGUMENTS.get(node.function)
        if overloads is None:
            return
        fitting = any(
            len(overload) == len(types)
            and all(kind in (wanted, DYN) for kind, wanted in zip(types, overload, strict=True))
            for overload in overloads
        )
        if not fitting:
            wanted = " or ".join(", ".join(overload) for overload in overloads)
            name = "-" if node.function == "neg" else node.function
            self._found.errors.append((node.offset, f"no such overload: {name}({', '.join(types)}), expected {wanted}"))


def _values(kind: str) -> set[str]:
    """Numbers of all types can be equal."""
    plain = kind.rstrip("?")
    return {"number" if plain in _NUMBERS else plain} | ({"null"} if kind.endswith("?") else set())


def _literal(value: object) -> str:
    kind = type_name(value)
    return "null" if kind in ("null", "null_type") else kind
