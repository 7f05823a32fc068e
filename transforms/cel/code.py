"""A piece of the fast form."""

from __future__ import annotations

from dataclasses import dataclass


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
