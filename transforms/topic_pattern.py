"""`source.pattern`: which topics it takes, as librdkafka sees it."""

from __future__ import annotations

from typing import Any

import re2  # type: ignore[import-untyped]


def problem(text: str) -> str | None:
    r"""What is wrong with a pattern; None: nothing.

    librdkafka takes a subscription for a pattern if it begins with `^`, and gives it to the C library as a POSIX extended
    expression, which knows no `\d` and no look-ahead: RE2's POSIX syntax refuses both, and more.
    """
    if not text.startswith("^"):
        return "not a pattern, expected one that begins with '^', which librdkafka knows patterns by"
    try:
        _compiled(text)
    except re2.error:
        return (
            "not a regular expression, expected POSIX extended syntax: [0-9] for a digit, [.] for a dot, no look-ahead"
        )
    return None


def matches(text: str, topic: str) -> bool:
    """Whether a pattern without problems takes a topic."""
    return _compiled(text).search(topic) is not None


def _compiled(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.posix_syntax = True
    return re2.compile(text, options)
