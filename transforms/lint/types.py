"""CEL types, as far as an expression gives them away: literals, results of functions, fields that a step before has made.

"dyn" is what is not known, and it never leads to a finding; "int?" is an int or null. So what is found here fails, or is false,
for every record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from transforms.cel.containers import storable
from transforms.cel.macros import RESULTS
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
)
from transforms.cel.nodes import children as cel_children
from transforms.cel.runtime import type_name
from transforms.errors import CelError
from transforms.lint import overloads
from transforms.lint.fields import chain
from transforms.lint.overloads import DYN, NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable

    from transforms.lint.fields import FieldNames

_NUMBERS = ("int", "uint", "double", NUMBER)
_STORED = {"timestamp": "string", "duration": "string", "bytes": "string", "uint": "int"}


def stored(kind: str) -> str:
    """The type of a field that is given a value of this type: what JSON has no form for is text (`containers.storable`)."""
    return _STORED.get(kind, kind)


def held(node: Node) -> Literal | None:
    """What a field holds that is given a literal: its JSON form, text for a time. None where there is none, or it is no literal."""
    if not isinstance(node, Literal):
        return None
    try:
        return Literal(node.offset, storable(node.value))
    except CelError:
        return None


@dataclass(slots=True)
class Checked:
    type: str
    errors: list[tuple[int, str]] = field(default_factory=list)
    """(place in the text, what is wrong): the expression, or this part of it, fails for every record."""
    never: list[tuple[int, str]] = field(default_factory=list)
    """Comparisons that are false, or true, for every record."""
    decided: list[tuple[Node, bool]] = field(default_factory=list)
    """These comparisons, and what they are: where they have no value, an operand has none."""


def check(node: Node, type_of: Callable[[FieldNames], str], key: str = DYN) -> Checked:
    """`type_of`: the type of a field of the record, of () that of the record itself, "dyn" where it is not known; `key`: of the key."""
    checked = Checked(DYN)
    checked.type = _Checker(type_of, checked, key).infer(node)
    return checked


class _Checker:
    def __init__(self, type_of: Callable[[FieldNames], str], found: Checked, key: str) -> None:
        self._type_of = type_of
        self._metadata = {**METADATA, "key": key}
        self._found = found
        self._variables: dict[str, str] = {}
        """Types of what cel.bind() names; those of items are not known."""

    def infer(self, node: Node) -> str:  # noqa: PLR0911 - one per kind of node
        match node:
            case Call():
                return self._call(node)
            case Macro():
                return self._macro(node)
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
                if not isinstance(operand, This):  # of which the fields are known, and said to be missing
                    self._has_fields(offset, operand, "has()")
                return "bool"
            case Index():
                return self._index(node)
        return self._simple(node)

    def _simple(self, node: Node) -> str:
        """The type says nothing of what is inside."""
        match node:
            case Literal(_, value):
                return type_name(value)
            case This():
                return self._type_of(())
            case Meta(_, name):
                return self._metadata[name]
            case Var(_, name):
                return self._variables.get(name, DYN)
            case Lazy(_, value):
                return self.infer(value)
        for child in cel_children(node):
            self.infer(child)
        return {ListOf: "list", MapOf: "map"}.get(type(node), DYN)

    def _kind(self, node: Node) -> str:
        """The type where it is not null, for which there is no overload anyway."""
        return self.infer(node).rstrip("?")

    def _must_be_bool(self, node: Node) -> None:
        kind = self._kind(node)
        if kind not in ("bool", DYN):
            self._found.errors.append((node.offset, f"found {kind}, expected bool"))

    def _select(self, node: Select) -> str:
        kind = DYN
        if not isinstance(node.operand, This):
            kind = self._has_fields(node.offset, node.operand, f"the field {node.field!r}")
        if node.optional or kind == "optional":
            return "optional"
        names = chain(node)
        return DYN if names is None else self._type_of(names)

    def _has_fields(self, offset: int, operand: Node, what: str) -> str:
        kind = self._kind(operand)
        if kind not in ("map", "optional", DYN):
            self._found.errors.append((offset, f"{what} of a {kind}, expected a map"))
        return kind

    def _index(self, node: Index) -> str:
        kind, index = self._kind(node.operand), self._kind(node.index)
        if kind not in ("map", "list", "optional", DYN):
            self._found.errors.append((node.offset, f"an index of a {kind}, expected a list or a map"))
        elif kind == "list" and index not in (*_NUMBERS, DYN):
            self._found.errors.append((node.index.offset, f"the index of a list is a {index}, expected an int"))
        return "optional" if node.optional or kind == "optional" else DYN

    def _macro(self, node: Macro) -> str:
        """What is said about the items of a list holds for each of them, if there is one."""
        nullable = self.infer(node.range)
        if node.function == "bind":
            self._variables[node.variables[0]] = nullable
            return self.infer(node.bodies[0])
        kind = nullable.rstrip("?")
        wanted = {"sorted_by": ("list",), "opt_map": ("optional",), "opt_flat_map": ("optional",)}
        fitting = wanted.get(node.function, ("list", "map"))
        if kind not in (*fitting, DYN):
            self._found.errors.append((node.offset, f"a macro over a {kind}, expected a {' or a '.join(fitting)}"))
        tests = node.function in ("all_", "exists", "exists_one", "filter_")
        for body in node.bodies:
            if tests or body is not node.bodies[-1]:
                self._must_be_bool(body)
            else:
                self.infer(body)
        return RESULTS[node.function]

    def _call(self, node: Call) -> str:
        nullable = [self.infer(arg) for arg in node.args]
        types = tuple(kind.rstrip("?") for kind in nullable)
        name = node.function
        if name in ("==", "!="):
            self._equal(node, nullable)
            return "bool"
        if name == "not":
            if types[0] not in ("bool", DYN):
                self._found.errors.append((node.offset, f"no such overload: !{types[0]}, expected a bool"))
            return "bool"
        if name == "in":
            if types[1] not in ("list", "map", DYN):
                self._found.errors.append((node.args[1].offset, f"`in` a {types[1]}, expected a list or a map"))
            return "bool"
        if not overloads.results(name, types):
            wrong = f"no such overload: {overloads.written(name, types)}{_expected(name, types)}"
            self._found.errors.append((node.offset, wrong))
        # dyn() is how people ask a checker to be quiet.
        return DYN if name == "dyn" else overloads.result(name, types)

    def _equal(self, node: Call, types: list[str]) -> None:
        values = [_values(kind) for kind in types]
        if any(DYN in kinds or "optional" in kinds for kinds in values) or values[0] & values[1]:
            return
        outcome = "false" if node.function == "==" else "true"
        left, right = (kind.rstrip("?") for kind in types)
        self._found.never.append((node.offset, f"always {outcome}: a {left} never equals a {right}"))
        self._found.decided.append((node, node.function != "=="))


def _expected(function: str, types: tuple[str, ...]) -> str:
    if len(types) == 2 and function in ("+", "-", "*", "/", "%"):
        left, right = types
        if left != right and {left, right} <= {"int", "uint", "double"}:
            return f", expected two of one type: write {right}(...) or {left}(...) around one of them"
        if function == "+" and "string" in types and set(types) & set(_NUMBERS):
            return ", expected two of one type: string(...) makes text of a number"
    return overloads.expected(function, types)


def _values(kind: str) -> set[str]:
    """Numbers of all types can be equal."""
    plain = kind.rstrip("?")
    return {"number" if plain in _NUMBERS else plain} | ({"null"} if kind.endswith("?") else set())
