"""string.format() of cel-go's extension `strings`, whose version 4 did away with locales: clauses %s %d %f %e %b %o %x %X, and %%."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from transforms.cel.library.limits import check_characters, remembered
from transforms.cel.library.time_operators import time_to_string
from transforms.cel.runtime import NUMBERS, no_overload, type_name
from transforms.cel.values import BoolKey, CelType, Uint
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PIECE = re.compile(r"[^%]+|%%|%(?:\.([0-9]+))?([sdfebxXo])")
_PRECISION = 6
_MOST_PRECISION = 100


def string_format(template: Any, arguments: Any) -> str:
    """Arguments that no clause takes are ignored, as in cel-go."""
    if type(template) is not str or type(arguments) is not list:
        raise no_overload("format", template, arguments)
    pieces, clauses = _parse(template)
    if clauses > len(arguments):
        raise CelError(f"format: {clauses} clause(s), but {len(arguments)} argument(s)")
    values = iter(arguments)
    return "".join(
        _bounded(piece if isinstance(piece, str) else _CLAUSES[piece[0]](next(values), piece[1]) for piece in pieces)
    )


def _bounded(texts: Iterable[str]) -> Iterator[str]:
    """The same texts, as long as all of them together are not too long."""
    length = 0
    for text in texts:
        length += len(text)
        check_characters("format", length)
        yield text


@remembered
def _parse(template: str) -> tuple[tuple[str | tuple[str, int], ...], int]:
    """Pieces of text, and clauses with their precision; and the number of clauses."""
    pieces: list[str | tuple[str, int]] = []
    place = 0
    while place < len(template):
        match = _PIECE.match(template, place)
        if match is None:
            raise CelError("format: expected %% or one of %s %d %f %e %b %o %x %X, with a precision such as %.3f")
        precision, clause = match.groups()
        if clause is not None:
            pieces.append((clause, _precision(precision)))
        else:
            pieces.append("%" if match[0] == "%%" else match[0])
        place = match.end()
    return tuple(pieces), sum(isinstance(piece, tuple) for piece in pieces)


def _precision(digits: str | None) -> int:
    if digits is None:
        return _PRECISION
    significant = digits.lstrip("0") or "0"
    if len(significant) > 3 or int(significant) > _MOST_PRECISION:  # int() refuses thousands of digits, zeros too
        raise CelError(f"format: a precision of more than {_MOST_PRECISION}")
    return int(significant)


def _refused(clause: str, value: Any, expected: str) -> CelError:
    return CelError(f"no such overload: format with %{clause} of {type_name(value)}, expected {expected}")


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _plain(value: float) -> str:
    """The shortest decimal that reads back as the same double, never with an exponent."""
    if not math.isfinite(value):
        return _not_finite(value)
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def _decimal(value: Any, _: int) -> str:
    if type(value) in (int, Uint):
        return str(int(value))
    if type(value) is float:
        return _plain(value)
    raise _refused("d", value, "a number")


def _fixed(value: Any, precision: int) -> str:
    return _rounded("f", value, precision)


def _scientific(value: Any, precision: int) -> str:
    return _rounded("e", value, precision)


def _rounded(clause: str, value: Any, precision: int) -> str:
    """Halves go to the even digit, as IEEE 754 says."""
    if type(value) not in NUMBERS:
        raise _refused(clause, value, "a number")
    number = float(value)
    return f"{number:.{precision}{clause}}" if math.isfinite(number) else _not_finite(number)


def _binary(value: Any, _: int) -> str:
    if type(value) not in (int, Uint, bool):
        raise _refused("b", value, "an int, a uint or a bool")
    return format(int(value), "b")


def _octal(value: Any, _: int) -> str:
    if type(value) not in (int, Uint):
        raise _refused("o", value, "an int or a uint")
    return format(int(value), "o")


def _hex(value: Any, _: int) -> str:
    kind = type(value)
    if kind in (int, Uint):
        return format(int(value), "x")
    if kind is str:
        try:
            return str(value.encode().hex())
        except UnicodeEncodeError:
            raise CelError("the string has half a surrogate pair, which UTF-8 cannot hold") from None
    if kind is bytes:
        return str(value.hex())
    raise _refused("x", value, "an int, a uint, a string or bytes")


def _upper_hex(value: Any, precision: int) -> str:
    return _hex(value, precision).upper()


def _string(value: Any, _: int) -> str:
    return _text(value)


def _text(value: Any) -> str:
    """Lists as [1, a], maps as {key: value} in the order of the keys' texts; strings without quotes."""
    form = _TEXTS.get(type(value))
    if form is not None:
        return form(value)
    text = time_to_string(value)
    if text is None:
        raise _refused("s", value, "a value that has a text")
    return text


def _bool_text(value: bool) -> str:  # noqa: FBT001
    return "true" if value else "false"


def _bytes_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("format: the bytes are not UTF-8") from None


def _list_text(value: list[Any]) -> str:
    return f"[{', '.join(_bounded(map(_text, value)))}]"


def _map_text(value: dict[Any, Any]) -> str:
    """In the order of the keys' texts."""
    keys = sorted(((_text(key), key) for key in value), key=itemgetter(0))
    return f"{{{', '.join(_bounded(f'{text}: {_text(value[key])}' for text, key in keys))}}}"


_TEXTS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "null",
    bool: _bool_text,
    BoolKey: lambda value: _bool_text(value.value),
    int: str,
    Uint: lambda value: str(int(value)),
    float: _plain,
    str: str,
    bytes: _bytes_text,
    list: _list_text,
    dict: _map_text,
    CelType: lambda value: value.name,
}
_CLAUSES: dict[str, Callable[[Any, int], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": _upper_hex,
}
