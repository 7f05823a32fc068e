"""What a name in an expression stands for."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lark import Tree

from transforms.cel import functions, optionals
from transforms.cel.grammar import ParseTree, inner, token, trees
from transforms.cel.library import table
from transforms.cel.macros import MACROS
from transforms.cel.nodes import Call, ListOf, Literal, Node, Select, This
from transforms.cel.runtime import TYPES
from transforms.cel.values import CelType

if TYPE_CHECKING:
    from transforms.cel.functions import Function

FUNCTIONS: dict[str, Function] = functions.FUNCTIONS | optionals.FUNCTIONS | table.FUNCTIONS
ALL: dict[str, Function] = functions.OPERATORS | FUNCTIONS
NAMESPACES = {"cel"} | {name.partition(".")[0] for name in FUNCTIONS if "." in name}
KEEPING = frozenset({"dyn", "optional.of", "optional.ofNonZeroValue"})
"""Functions whose result is their argument, or holds it: `this` as their argument is a copy, see `containers.copied`."""
MACRO_NAMES = {macro.name for macro in MACROS}
_KNOWN = [*FUNCTIONS, *sorted(MACRO_NAMES), "has", "cel.bind"]


@dataclass(frozen=True, slots=True)
class Names:
    """What is known of the names of an expression."""

    declared: frozenset[str] | None = None
    """The variables that there are, which may have dots; None: every name may be a field of the record."""
    checked: bool = True
    """False: what a checker would refuse fails when it is evaluated, as the conformance cases want it."""


def qualified(tree: ParseTree) -> str | None:
    """`a.b.c` as text, where the tree is nothing but that."""
    parts: list[str] = []
    while tree.data == "member_dot":
        parts.append(str(token(tree)))
        tree = trees(tree)[0]
        while len(tree.children) == 1 and isinstance(tree.children[0], Tree) and tree.data != "paren_expr":
            tree = tree.children[0]
    if tree.data not in ("ident", "dot_ident"):
        return None
    return ".".join([str(token(inner(tree))), *reversed(parts)])


def gives_type(node: Node) -> bool:
    if isinstance(node, Call):
        return node.function == "type"
    return isinstance(node, Literal) and isinstance(node.value, CelType)


def as_type(node: Node) -> Node:
    """Beside a type, the name of a type stands for the type, and not for a field of the record: `type(x) == list`."""
    if isinstance(node, ListOf):
        return ListOf(node.offset, tuple(map(as_type, node.items)), node.optional)
    parts: list[str] = []
    part = node
    while isinstance(part, Select):
        parts.append(part.field)
        if isinstance(part.operand, This):
            name = ".".join(reversed(parts))
            return Literal(part.offset, TYPES[name]) if part.bare and name in TYPES else node
        part = part.operand
    return node


def unknown_function(name: str) -> str:
    close = difflib.get_close_matches(name, _KNOWN, n=1)
    return f"unknown function {name!r}, " + (
        f"did you mean {close[0]!r}?" if close else "expected one of those in docs/cel.md"
    )


def unknown_name(name: str, declared: frozenset[str]) -> str:
    close = difflib.get_close_matches(name, declared, n=1)
    there_are = ", ".join(sorted(declared)) or "no names"
    return f"unknown name {name!r}, " + (f"did you mean {close[0]!r}?" if close else f"expected one of {there_are}")
