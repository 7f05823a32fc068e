"""The tree of an expression. Bare names are fields of the record: `a` is `Select(This, "a")`, and so is `this["a"]`."""

from __future__ import annotations

from dataclasses import dataclass, fields


class Uint(int):
    """A CEL uint. JSON has none: they come from literals (`5u`) and from `uint()`, so the usual paths never see one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Node:
    offset: int
    """Place in the text of the expression, in characters from 0."""


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: object
    """None, bool, int, Uint, float, str or bytes."""


@dataclass(frozen=True, slots=True)
class This(Node):
    """The record."""


METADATA = {
    "key": "dyn",
    "headers": "map",
    "topic": "string",
    "partition": "int",
    "offset": "int",
    "timestamp": "timestamp",
}
"""What a record has beside its value, by bare name, and the CEL types; a field of such a name is `this.timestamp`."""


@dataclass(frozen=True, slots=True)
class Meta(Node):
    """The record's metadata; the local variable `m_<name>` in generated code."""

    name: str
    """One of `METADATA`."""


@dataclass(frozen=True, slots=True)
class Select(Node):
    operand: Node
    field: str
    bare: bool = False
    """Written as a name alone: only the parser looks at it, for has()."""


@dataclass(frozen=True, slots=True)
class Has(Node):
    operand: Node
    field: str


@dataclass(frozen=True, slots=True)
class Index(Node):
    operand: Node
    index: Node


@dataclass(frozen=True, slots=True)
class Call(Node):
    function: str
    """An operator ("+", "neg", "not", "in", ...) or a function of CEL; the receiver of a method is the first argument."""
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class And(Node):
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class ListOf(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapOf(Node):
    entries: tuple[tuple[Node, Node], ...]


def children(node: Node) -> list[Node]:
    found: list[Node] = []
    waiting: list[object] = [getattr(node, field.name) for field in fields(node)]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            waiting[:0] = value
    return found
