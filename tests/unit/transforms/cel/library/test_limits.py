"""Bounds."""

from __future__ import annotations

from tests.unit.transforms.cel.library.checks import fails
from transforms.cel.library.limits import MOST_CHARACTERS, MOST_ITEMS, check_characters, check_items, remembered


def test_bounds() -> None:
    """What is just within them passes; beyond, the error names the function and the bound."""
    check_characters("join", MOST_CHARACTERS)
    check_items("flatten", MOST_ITEMS)
    fails("join: the result would be longer than 67108864 characters", check_characters, "join", MOST_CHARACTERS + 1)
    fails("flatten: the result would be longer than 1000000 items", check_items, "flatten", MOST_ITEMS + 1)


def test_results_of_short_texts_are_remembered() -> None:
    made: list[str] = []

    def make(text: str) -> int:
        made.append(text)
        return len(text)

    look = remembered(make)
    short, long = "a" * 1000, "a" * 1001
    assert [look(text) for text in (short, long, short, long)] == [1000, 1001, 1000, 1001]
    assert made == [short, long, long]
