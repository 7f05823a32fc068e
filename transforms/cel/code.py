"""A piece of the fast form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Code:
    """Python source of one value: a single term, so that it can stand anywhere; only that of a `Lazy` node cannot."""

    text: str
    type: str
    """Its CEL type where that is known, else "dyn". If the source raises nothing, its value has this type."""
    atom: bool = False
    """A literal: may stand twice."""
    value: object = None
    """The value of a literal."""
    plain: bool = False
    """Read from the record, or a literal, as it is: JSON can hold it."""


def list_of(items: Iterable[str], optional: frozenset[int]) -> str:
    """Source of a list, from that of its items; those at the indexes `optional` are optionals, written `?item` in CEL."""
    return f"[{', '.join(f'*present({item})' if at in optional else item for at, item in enumerate(items))}]"


def map_of(entries: Iterable[tuple[str, str]], optional: frozenset[int]) -> str:
    """Source of a map, from that of its keys and values."""
    pairs = (f"{'*entry' if at in optional else ''}({key}, {value})" for at, (key, value) in enumerate(entries))
    return f"make_map({', '.join(pairs)})"
