"""Functions of strings; see runtime.py."""

from __future__ import annotations

from typing import Any

from transforms.cel.library.regexes import half_a_pair, searching
from transforms.cel.runtime import no_overload


def matches(value: Any, text: Any) -> bool:
    if type(value) is not str or type(text) is not str:
        raise no_overload("matches", value, text)
    try:
        return searching(text)(value.encode()) is not None
    except UnicodeEncodeError:  # a step `python` may have made it
        raise half_a_pair() from None


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
