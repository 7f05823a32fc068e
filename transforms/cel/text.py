"""Functions of strings; see runtime.py."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import re2  # type: ignore[import-untyped]

from transforms.cel.runtime import no_overload
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable


@lru_cache(maxsize=256)
def pattern(text: str) -> Callable[[str], Any]:
    """The search function of a regular expression. RE2 takes time linear in the text, whatever the pattern is."""
    try:
        options = re2.Options()
        options.log_errors = False
        return re2.compile(text, options).search  # type: ignore[no-any-return]
    except re2.error as error:
        raise CelError("not a regular expression") from error


def matches(value: Any, text: Any) -> bool:
    if type(value) is not str or type(text) is not str:
        raise no_overload("matches", value, text)
    return pattern(text)(value) is not None


def contains(value: Any, part: Any) -> bool:
    if type(value) is not str or type(part) is not str:
        raise no_overload("contains", value, part)
    return part in value


def starts_with(value: Any, part: Any) -> bool:
    if type(value) is not str or type(part) is not str:
        raise no_overload("startsWith", value, part)
    return value.startswith(part)


def ends_with(value: Any, part: Any) -> bool:
    if type(value) is not str or type(part) is not str:
        raise no_overload("endsWith", value, part)
    return value.endswith(part)
