"""Bounds of what one call may make of a record. Without them a few nested calls could take all the memory of a worker, faster than
the time budget of a record notices.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable

_Made = TypeVar("_Made")
MOST_CHARACTERS = 64 * 1024 * 1024
"""Of a string that a function makes longer than its arguments; far beyond the largest messages that people send to Kafka."""
MOST_ITEMS = 1_000_000
"""Of a list that a function makes longer than its arguments."""
_LONGEST_KEY = 1_000


def check_characters(function: str, count: int) -> None:
    if count > MOST_CHARACTERS:
        raise CelError(f"{function}: the result would be longer than {MOST_CHARACTERS} characters")


def check_items(function: str, count: int) -> None:
    if count > MOST_ITEMS:
        raise CelError(f"{function}: the result would be longer than {MOST_ITEMS} items")


def remembered(make: Callable[[str], _Made]) -> Callable[[str], _Made]:
    """`make` with its last 256 results kept. Those of long texts are not: they can be of megabytes, where records bring them."""
    kept = lru_cache(maxsize=256)(make)

    def look(text: str) -> _Made:
        return kept(text) if len(text) <= _LONGEST_KEY else make(text)

    return look
