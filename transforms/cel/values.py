"""Values of CEL that Python has no type for. Timestamp and Duration are in library/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


class Uint(int):
    """A CEL uint. JSON has none: they come from literals (`5u`) and from `uint()`, so the usual paths never see one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CelType:
    """The value of `type(x)`, and of the name of a type."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """An optional value; `NONE` is the one without a value."""

    value: Any


NONE: Final[Optional] = Optional(None)


class BoolKey:
    """A bool as the key of a map: in Python, `True` and `1` would be one key. There are two of them, `TRUE` and `FALSE`."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:  # noqa: FBT001
        self.value = value


TRUE: Final = BoolKey(True)
FALSE: Final = BoolKey(False)
