"""Which patterns librdkafka takes, and what they match."""

from __future__ import annotations

import pytest

from transforms.topic_pattern import matches, problem

NO_REGEX = "not a regular expression, expected POSIX extended syntax: [0-9] for a digit, [.] for a dot, no look-ahead"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("^shop[.].*", None),
        (r"^shop\..*", None),
        ("^(a|b)[0-9]{1,3}$", None),
        ("shop.*", "not a pattern, expected one that begins with '^', which librdkafka knows patterns by"),
        (r"^shop\d", NO_REGEX),
        ("^(?!x)", NO_REGEX),
        ("^(a", NO_REGEX),
    ],
)
def test_problem(text: str, expected: str | None) -> None:
    """POSIX extended syntax, as the C library has it."""
    assert expected == problem(text)


def test_matches() -> None:
    """From the beginning, and to the end only where the pattern says so."""
    assert [matches("^shop[.]a", topic) for topic in ("shop.a", "shop.abc", "my.shop.a", "shopxa")] == [
        True,
        True,
        False,
        False,
    ]
    assert [matches("^shop$", topic) for topic in ("shop", "shops")] == [True, False]
