"""The tree of an expression. Bare names are fields of the record: `a` is `Select(This, "a")`, and so is `this["a"]`."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Node:
    offset: int
    """Place in the text of the expression, in characters from 0."""


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: object
    """None, bool, int, Uint, float, str, bytes, Timestamp, Duration or CelType."""


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
class Var(Node):
    """A variable of a macro. It hides a field of the record, and metadata, of the same name."""

    name: str
    """`v_<name>`, in generated code too; numbered where it hides another variable."""
    bound: bool = False
    """Of cel.bind(): in the exact form a function that computes the value when it is first asked for."""


@dataclass(frozen=True, slots=True)
class Macro(Node):
    """A macro with variables: `items.all(i, i > 0)` is Macro("all_", items, ("v_i",), (i > 0,))."""

    function: str
    """`runtime` of a form in `macros.MACROS`, or "bind"."""
    range: Node
    """What it goes through; of cel.bind() the value."""
    variables: tuple[str, ...]
    bodies: tuple[Node, ...]
    """What is computed with the variables: at last the result; before it, where there are two, a condition."""


@dataclass(frozen=True, slots=True)
class Lazy(Node):
    """An argument that is evaluated only if the function asks for it: `x.orValue(y)`."""

    value: Node


@dataclass(frozen=True, slots=True)
class Wrong(Node):
    """What a checker would have refused, where the expression is not to be checked: an error when it is evaluated."""

    message: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    operand: Node
    field: str
    bare: bool = False
    """Written as a name alone: only the parser looks at it, for has() and the names of types."""
    optional: bool = False
    """`operand.?field`: an optional."""


@dataclass(frozen=True, slots=True)
class Has(Node):
    operand: Node
    field: str


@dataclass(frozen=True, slots=True)
class Index(Node):
    operand: Node
    index: Node
    optional: bool = False
    """`operand[?index]`: an optional."""


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
    optional: frozenset[int] = frozenset()
    """Indexes of the items written `?item`: present only if the optional has a value."""


@dataclass(frozen=True, slots=True)
class MapOf(Node):
    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()
    """Indexes of the entries written `?key: value`."""


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
