"""The extension `regex` of cel-go, by RE2, which takes time linear in the text, whatever the pattern is."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import re2  # type: ignore[import-untyped]

from transforms.cel.library.limits import check_characters, remembered
from transforms.cel.runtime import no_overload
from transforms.cel.values import NONE, Optional
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REPLACEMENT = re.compile(r"[^\\]+|\\([0-9\\])")


@remembered
def searching(pattern: str) -> Callable[[bytes], object]:
    """What finds a match in UTF-8, or None. Raises `CelError`.

    Of bytes, as RE2's binding for Python computes the places of a match in a string, which takes longer than the search.
    """
    try:
        encoded = pattern.encode()
    except UnicodeEncodeError:
        raise half_a_pair() from None
    search: Callable[[bytes], object] = _compile(encoded).search
    return search


def _compile(pattern: str | bytes) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise CelError("not a regular expression") from error
    except UnicodeEncodeError:
        raise half_a_pair() from None


_compiled = remembered(_compile)


def half_a_pair() -> CelError:
    return CelError("the string has half a surrogate pair, which UTF-8 cannot hold")


@remembered
def _parts(replacement: str) -> tuple[str | int, ...]:
    """Texts, and numbers of groups."""
    parts: list[str | int] = []
    place = 0
    while place < len(replacement):
        match = _REPLACEMENT.match(replacement, place)
        if match is None:
            raise CelError(r"regex.replace: in the replacement \ must be followed by a digit or \ ")
        escaped = match[1]
        if escaped is None:
            parts.append(match[0])
        else:
            parts.append("\\" if escaped == "\\" else int(escaped))
        place = match.end()
    return tuple(parts)


def _matches(expression: Any, text: str) -> Iterator[Any]:
    """From left to right. An empty match that touches the one before is none, as in Go; Python would count it."""
    end = -1
    try:
        for match in expression.finditer(text):
            if match.end() > match.start() or match.start() != end:
                yield match
            end = match.end()
    except UnicodeEncodeError:  # RE2 reads UTF-8
        raise half_a_pair() from None


def regex_replace(text: Any, pattern: Any, replacement: Any, *limit: Any) -> str:
    r"""The first `limit` matches are replaced; all without a limit, or with one below zero. \1 to \9 are groups, \0 the match."""
    values = (text, pattern, replacement, *limit)
    if any(type(value) is not kind for value, kind in zip(values, (str, str, str, int), strict=False)):
        raise no_overload("regex.replace", *values)
    expression = _compiled(pattern)
    parts = _parts(replacement)
    if any(part > expression.groups for part in parts if isinstance(part, int)):
        raise CelError("regex.replace: the replacement names a group that the regular expression does not have")
    most = min(limit[0], len(text) + 1) if limit and limit[0] >= 0 else None
    pieces: list[str] = []
    place = length = 0
    for match in islice(_matches(expression, text), most):
        piece = "".join([part if isinstance(part, str) else match[part] or "" for part in parts])
        length += match.start() - place + len(piece)
        check_characters("regex.replace", length)
        pieces += (text[place : match.start()], piece)
        place = match.end()
    return "".join((*pieces, text[place:]))


def _one_group(function: str, text: Any, pattern: Any) -> tuple[Any, int]:
    """The compiled expression, and the group that it extracts: 0, the whole match, where it has none."""
    if type(text) is not str or type(pattern) is not str:
        raise no_overload(function, text, pattern)
    expression = _compiled(pattern)
    if expression.groups > 1:
        raise CelError(f"{function}: the regular expression has more than one group")
    return expression, expression.groups


def regex_extract(text: Any, pattern: Any) -> Optional:
    """The first match, or the group in it; nothing without a match, or where the group matched nothing."""
    expression, group = _one_group("regex.extract", text, pattern)
    match = next(_matches(expression, text), None)
    if match is None or (group and not match[group]):
        return NONE
    return Optional(match[group])


def regex_extract_all(text: Any, pattern: Any) -> list[str]:
    """All matches, or the group in each of them where it matched something."""
    expression, group = _one_group("regex.extractAll", text, pattern)
    return [match[group] for match in _matches(expression, text) if not group or match[group]]
