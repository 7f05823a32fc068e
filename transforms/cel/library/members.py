"""Which values are in a collection, by the equality of CEL, without comparing each with each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transforms.cel.library.times import TIMES
from transforms.cel.runtime import NUMBERS, eq

if TYPE_CHECKING:
    from collections.abc import Iterable

_HASHED = frozenset({str, bytes, bool, type(None)}) | TIMES
_ROUNDED = "rounded"
"""The tag of the doubles that ints from `_ROUNDED_FROM` on equal."""
_ROUNDED_FROM = 2**53


class Members:
    """Numbers, texts, bools, null and times are looked up by hash. Everything else, which is rarer in what people compare, is
    compared one by one: a hash of a list or a map would have to repeat all that `eq` knows.
    """

    __slots__ = ("_compared", "_hashed")

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._hashed: set[tuple[type | str, Any]] = set()
        self._compared: list[Any] = []
        for value in values:
            self.add(value)

    def add(self, value: Any) -> bool:
        """True if it was not there."""
        if value in self:
            return False
        tag = _tag(value)
        if tag is None:
            self._compared.append(value)
        else:
            self._hashed.add((tag, value))
            if tag is int:
                self._hashed.add((_ROUNDED, float(value)))
        return True

    def __contains__(self, value: Any) -> bool:
        tag = _tag(value)
        if tag is None:
            return any(eq(value, other) for other in self._compared)
        if tag is int and (float, float(value)) in self._hashed:
            return True
        if tag is float and (_ROUNDED, value) in self._hashed:
            return True
        # NaN is in nothing; Python would find the same object.
        return (tag, value) in self._hashed and value == value  # noqa: PLR0124


def _tag(value: Any) -> type | None:
    """One for all numbers, because 1, 1u and 1.0 are equal; bools have their own, because in Python True is 1.

    Ints from 2^53 on have their own, too: they equal each other exactly, and doubles after rounding.
    """
    kind = type(value)
    if kind is not float and kind in NUMBERS:
        return float if -_ROUNDED_FROM < value < _ROUNDED_FROM else int
    return kind if kind is float or kind in _HASHED else None
