"""Text of an expression -> its two forms in Python source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from transforms.cel.exact import ExactWriter
from transforms.cel.fast import FastWriter
from transforms.cel.folding import fold
from transforms.cel.nodes import Call, Literal, Meta, Node, children
from transforms.cel.parser import parse
from transforms.cel.text import pattern
from transforms.errors import CelError, CelSyntaxError

if TYPE_CHECKING:
    from transforms.cel.constants import Constants

FALLBACK = (CelError, LookupError, TypeError, ValueError, ArithmeticError)
"""What the fast form raises where it is not sure. No TimeBudgetExceeded, no RecursionError: these end the record."""

_STORABLE = ("bool", "int", "string", "null")
_MAX_PARENTHESES = 150


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression: Python expressions over the record `r` and the names of `namespace.OPERATIONS`."""

    fast: str
    """Its value, or an exception of `FALLBACK`."""
    exact: str
    """Its value, or `CelError`."""
    metadata: frozenset[str] = frozenset()
    """The record's metadata that it uses, of `nodes.METADATA`: both forms need the local variables `m_<name>`."""


def compile_expression(text: str, wanted: OneOf["bool", "json"], constants: Constants) -> Expression:
    """Compiles CEL. `wanted` is what the step needs: a bool, or a value that JSON can hold. Raises `CelSyntaxError`."""
    node = fold(parse(text))
    _check_patterns(node)
    writer = FastWriter(constants)
    if wanted == "bool":
        code = writer.write(node)
        if code.type not in ("bool", "dyn"):
            raise CelSyntaxError(f"the expression gives {code.type}, expected bool", node.offset)
        node = Call(node.offset, "bool?", (node,))
        fast, slow = FastWriter(constants).write(node).text, ExactWriter(constants).write(node)
    else:
        code = writer.write(node)
        fast, slow = code.text, ExactWriter(constants).write(node)
        if not code.plain and code.type not in _STORABLE:
            slow = f"storable({slow})"
            fast = _finite(writer.temporary(), fast) if code.type == "double" else f"storable({fast})"
    return Expression(slow if _depth(fast) > _MAX_PARENTHESES else fast, slow, frozenset(_metadata(node)))


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
    if isinstance(node, Call) and node.function == "matches":
        text = node.args[1]
        if isinstance(text, Literal) and isinstance(text.value, str):
            try:
                pattern(text.value)
            except CelError as error:
                raise CelSyntaxError(f"{text.value!r} is {error}, expected RE2 syntax", text.offset) from None
    for child in children(node):
        _check_patterns(child)
