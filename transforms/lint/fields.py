"""Which fields a record can have at one place of a pipeline, and their types, as far as the steps before say so."""

from __future__ import annotations

import copy
import difflib
from dataclasses import dataclass, field
from typing import TypeAlias

from transforms.cel.nodes import Has, Node, Select, This, children

FieldNames: TypeAlias = tuple[str, ...]
"""`("customer", "email")`."""


@dataclass(slots=True)
class Fields:
    """An object, or a value of which only the type may be known."""

    type: str = "dyn"
    there: bool = False
    """Whether every record has it."""
    open: bool = True
    """Whether it can have fields that are not named here."""
    inside: dict[str, Fields] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    """Names that it cannot have, and which step took them."""
    closed_by: str = ""

    def copy(self) -> Fields:
        return copy.deepcopy(self)

    def absent(self, names: FieldNames) -> str | None:
        """Why there is no such field; None where there may be one."""
        here = self
        for name in names:
            if name in here.gone:
                return here.gone[name]
            if name not in here.inside:
                return None if here.open else here.closed_by
            here = here.inside[name]
        return None

    def close_to(self, names: FieldNames) -> str | None:
        """A field that there is, with a name much like the one that there is not."""
        here = self
        for depth, name in enumerate(names):
            if name not in here.inside:
                close = difflib.get_close_matches(name, here.inside, n=1)
                return ".".join((*names[:depth], close[0])) if close else None
            here = here.inside[name]
        return None

    def get(self, names: FieldNames) -> Fields:
        here = self
        for name in names:
            here = here.inside.get(name) or Fields()
        return here

    def put(self, names: FieldNames, value: Fields) -> None:
        here = self
        for name in names[:-1]:
            here.gone.pop(name, None)
            here = here.inside.setdefault(name, Fields())
            here.type = "dyn"
        here.gone.pop(names[-1], None)
        here.inside[names[-1]] = value

    def remove(self, names: FieldNames, why: str) -> Fields:
        """What is known of the removed field."""
        here = self
        for name in names[:-1]:
            if name not in here.inside and not here.open:
                return Fields()
            here = here.inside.setdefault(name, Fields())
        here.gone[names[-1]] = why
        return here.inside.pop(names[-1], Fields())

    def kept(self, wanted: list[FieldNames], why: str) -> Fields:
        """The same record with these fields alone."""
        result = Fields("map", open=False, closed_by=why)
        for names in sorted(wanted, key=len, reverse=True):  # of `a` and `a.b` the wider one counts
            if self.absent(names) is not None:
                continue
            here = result
            for name in names[:-1]:
                here = here.inside.setdefault(name, Fields(open=False, closed_by=why))
            here.inside[names[-1]] = self.get(names)
        return result


def chain(node: Node) -> FieldNames | None:
    """`a.b.c` as ("a", "b", "c") where the first is a field of the record."""
    if isinstance(node, This):
        return ()
    if isinstance(node, Select | Has):
        inner = chain(node.operand)
        return None if inner is None else (*inner, node.field)
    return None


def fields_read(node: Node) -> list[tuple[FieldNames, int, bool]]:
    """(field, place in the text, whether it is only asked for) of all that an expression reads; () is the whole record."""
    if isinstance(node, This):
        return [((), node.offset, False)]
    names = chain(node)
    if names is not None:
        asks = isinstance(node, Has) or bool(getattr(node, "optional", False))
        return [(names, node.offset, asks)]
    return [read for child in children(node) for read in fields_read(child)]
