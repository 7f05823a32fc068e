"""Bounds of what one call may make of a record. Without them a few nested calls could take all the memory of a worker, faster than
the time budget of a record notices.
"""

from __future__ import annotations

from transforms.errors import CelError

MOST_CHARACTERS = 64 * 1024 * 1024
"""Of a string that a function makes longer than its arguments; far beyond the largest messages that people send to Kafka."""
MOST_ITEMS = 1_000_000
"""Of a list that a function makes longer than its arguments."""


def check_characters(function: str, count: int) -> None:
    if count > MOST_CHARACTERS:
        raise CelError(f"{function}: the result would be longer than {MOST_CHARACTERS} characters")


def check_items(function: str, count: int) -> None:
    if count > MOST_ITEMS:
        raise CelError(f"{function}: the result would be longer than {MOST_ITEMS} items")
