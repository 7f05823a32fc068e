"""Text of an expression -> its two forms in Python source."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias
from typing import Literal as OneOf

from transforms.cel.exact import ExactWriter
from transforms.cel.fast import FastWriter
from transforms.cel.folding import fold
from transforms.cel.library.regexes import searching
from transforms.cel.nodes import Call, Literal, Meta, Node, children
from transforms.cel.parser import ANYTHING, parse, too_deep
from transforms.errors import CelError, CelSyntaxError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transforms.cel.constants import Constants
    from transforms.cel.names import Names

FALLBACK = (CelError, LookupError, TypeError, ValueError, ArithmeticError)
"""What the fast form raises where it is not sure. No TimeBudgetExceeded, no RecursionError: these end the record."""

Wanted: TypeAlias = OneOf["bool", "json", "any"]
_STORABLE = ("bool", "int", "string", "null")
_UNSTORABLE = ("optional", "type")
_WITH_PATTERN = frozenset({"matches", "regex.extract", "regex.extractAll", "regex.replace"})
"""Functions whose second argument is a regular expression."""
_MAX_PARENTHESES = 150
_MOST_PARENTHESES = 190
"""Below the 200 of CPython's tokenizer: the expression stands in parentheses of steps."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression: Python expressions over the record `r` and the names of `namespace.OPERATIONS`."""

    fast: str
    """Its value, or an exception of `FALLBACK`."""
    exact: str
    """Its value, or `CelError`."""
    metadata: frozenset[str] = frozenset()
    """The record's metadata that it uses, of `nodes.METADATA`: both forms need the local variables `m_<name>`."""
    type: str = "dyn"
    """The CEL type of its value, before it is made storable; "dyn" where it is not certain."""


def compile_expression(
    text: str,
    wanted: Wanted,
    constants: Constants,
    *,
    types: Mapping[str, str] = MappingProxyType({}),
    known: Names = ANYTHING,
) -> Expression:
    """Compiles CEL. `wanted` is what the step needs: a bool, a value that JSON can hold, or any value of CEL.

    `types`: CEL types of those fields of the record that are certain to be there with this type ("bool", "int", "double",
    "string", "list", "map"), as after a validation: checks of them are left out. Raises `CelSyntaxError`.
    """
    node = fold(parse(text, known))
    _check_patterns(node)
    writer = FastWriter(constants, types)
    code = writer.write(node)
    if wanted == "bool":
        if code.type not in ("bool", "dyn"):
            raise CelSyntaxError(f"the expression gives {code.type}, expected bool", node.offset)
        whole = Call(node.offset, "bool?", (node,))
        fast, slow = FastWriter(constants, types).write(whole).text, ExactWriter(constants).write(whole)
    else:
        fast, slow = code.text, ExactWriter(constants).write(node)
    if wanted == "json":
        if code.type in _UNSTORABLE:
            raise CelSyntaxError(f"the expression gives {code.type}, expected a value that JSON can hold", node.offset)
        if not code.plain and code.type not in _STORABLE:
            slow = f"storable({slow})"
            fast = _finite(writer.temporary(), fast) if code.type == "double" else f"storable({fast})"
    if _depth(slow) > _MOST_PARENTHESES:
        raise too_deep(node.offset)
    return Expression(slow if _depth(fast) > _MAX_PARENTHESES else fast, slow, frozenset(_metadata(node)), code.type)


def _metadata(node: Node) -> set[str]:
    used = {node.name} if isinstance(node, Meta) else set()
    return used.union(*map(_metadata, children(node)))


def _finite(kept: str, text: str) -> str:
    return f"({kept} if ({kept} := {text}) - {kept} == 0.0 else storable({kept}))"


def _depth(text: str) -> int:
    """Levels of brackets, an upper bound: those inside strings count as well."""
    depth = deepest = 0
    for sign in text:
        if sign in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in ")]}":
            depth -= 1
    return deepest


def _check_patterns(node: Node) -> None:
    """A pattern that stands in the file is refused when the file is read, not when the first record comes."""
    if isinstance(node, Call) and node.function in _WITH_PATTERN:
        text = node.args[1]
        if isinstance(text, Literal) and isinstance(text.value, str):
            try:
                searching(text.value)
            except CelError as error:
                raise CelSyntaxError(f"{text.value!r} is {error}, expected RE2 syntax", text.offset) from None
    for child in children(node):
        _check_patterns(child)
