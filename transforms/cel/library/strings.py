"""The extension `strings` of cel-go, but for format() and reverse(). Places and lengths count code points.

Where cel-go's documents and cel-spec's conformance cases contradict each other, the cases decide: a place beyond the end of the
string is an error. The end itself is a place.
"""

from __future__ import annotations

from typing import Any

from transforms.cel.library.limits import check_characters
from transforms.cel.runtime import no_overload
from transforms.errors import CelError

_SPACE = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""Unicode's White_Space; str.strip() takes away U+001C to U+001F as well."""
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
_QUOTED: dict[int, str] = {
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    **{ord(plain): f"\\{letter}" for plain, letter in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)},
}


def _check(function: str, values: tuple[Any, ...], *kinds: type) -> None:
    """The types of the arguments, the receiver first; those beyond the arguments are optional."""
    for value, kind in zip(values, kinds, strict=False):
        if type(value) is not kind:
            raise no_overload(function, *values)


def _check_place(function: str, place: int, text: str) -> None:
    if not 0 <= place <= len(text):
        raise CelError(f"{function}: index out of range")


def char_at(text: Any, place: Any) -> str:
    """The character; the empty string at the end."""
    _check("charAt", (text, place), str, int)
    _check_place("charAt", place, text)
    return str(text[place : place + 1])


def index_of(text: Any, part: Any, *start: Any) -> int:
    """Where `part` occurs first, at `start` or later; -1 if it does not."""
    _check("indexOf", (text, part, *start), str, str, int)
    if start:
        _check_place("indexOf", start[0], text)
    return int(text.find(part, *start))


def last_index_of(text: Any, part: Any, *start: Any) -> int:
    """Where `part` occurs last and begins at `start` or earlier; -1 if it does not."""
    _check("lastIndexOf", (text, part, *start), str, str, int)
    if not start:
        return int(text.rfind(part))
    _check_place("lastIndexOf", start[0], text)
    return int(text.rfind(part, 0, start[0] + len(part)))


def substring(text: Any, start: Any, *end: Any) -> str:
    """From `start`, up to `end`, which is not in it."""
    _check("substring", (text, start, *end), str, int, int)
    _check_place("substring", start, text)
    if not end:
        return str(text[start:])
    _check_place("substring", end[0], text)
    if start > end[0]:
        raise CelError("substring: it ends before it starts")
    return str(text[start : end[0]])


def _limit(text: str, limit: tuple[int, ...]) -> int:
    """-1: none. More than a string has places says nothing, and JSON has integers that str.replace() cannot take."""
    return min(limit[0], len(text) + 1) if limit and limit[0] >= 0 else -1


def replace(text: Any, old: Any, new: Any, *limit: Any) -> str:
    """The first `limit` occurrences are replaced; all of them without a limit, or with one below zero."""
    _check("replace", (text, old, new, *limit), str, str, str, int)
    most = _limit(text, limit)
    if len(new) > len(old):
        times = text.count(old)
        check_characters("replace", len(text) + (min(times, most) if most >= 0 else times) * (len(new) - len(old)))
    return str(text.replace(old, new, most))


def split(text: Any, separator: Any, *limit: Any) -> list[str]:
    """At most `limit` parts, the last of which has the rest; all of them without a limit, or with one below zero."""
    _check("split", (text, separator, *limit), str, str, int)
    most = _limit(text, limit)
    if most == 0:
        return []
    if separator:
        return list(text.split(separator, most - 1 if most > 0 else -1))
    if 0 < most < len(text):
        return [*text[: most - 1], text[most - 1 :]]
    return list(text)


def join(parts: Any, *separator: Any) -> str:
    _check("join", (parts, *separator), list, str)
    if any(type(part) is not str for part in parts):
        raise CelError("no such overload: join of a list with items that are not strings")
    between = separator[0] if separator else ""
    check_characters("join", sum(map(len, parts)) + len(between) * max(len(parts) - 1, 0))
    return str(between.join(parts))


def lower_ascii(text: Any) -> str:
    _check("lowerAscii", (text,), str)
    return text.lower() if text.isascii() else str(text.translate(_LOWER))


def upper_ascii(text: Any) -> str:
    _check("upperAscii", (text,), str)
    return text.upper() if text.isascii() else str(text.translate(_UPPER))


def trim(text: Any) -> str:
    """Without Unicode's white space at either end."""
    _check("trim", (text,), str)
    return str(text.strip(_SPACE))


def strings_quote(text: Any) -> str:
    """In double quotes, as a literal of CEL; what is no character becomes U+FFFD."""
    _check("strings.quote", (text,), str)
    return f'"{text.translate(_QUOTED)}"'
