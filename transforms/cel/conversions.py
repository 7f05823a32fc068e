"""int(), uint(), double(), string(), bool() (cel-spec, langdef.md, "Conversions"); raise `CelError`."""

from __future__ import annotations

import math
import re
from typing import Any

from transforms.cel.library.time_operators import time_to_int, time_to_string
from transforms.cel.literals import INT_MAX, INT_MIN, UINT_MAX
from transforms.cel.runtime import type_name
from transforms.cel.values import Uint
from transforms.errors import CelError

_INT = re.compile(r"-?[0-9]{1,40}")
_UINT = re.compile(r"[0-9]{1,40}")
_DOUBLE = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:Infinity|Inf|NaN)", re.IGNORECASE
)
_TRUE = frozenset({"true", "True", "TRUE", "t", "1"})
_FALSE = frozenset({"false", "False", "FALSE", "f", "0"})


def _no_overload(function: str, value: object) -> CelError:
    return CelError(f"no such overload: {function}({type_name(value)})")


def to_int(value: Any) -> int:
    """Doubles are truncated toward zero."""
    kind = type(value)
    if kind is int:
        return int(value)
    if kind is float:
        # -2**63 itself is refused too: the neighbours of that double cannot be told apart (cel-spec conformance).
        if not INT_MIN < value < -float(INT_MIN):
            raise CelError("integer overflow")
        return int(value)
    if kind is Uint:
        if value > INT_MAX:
            raise CelError("integer overflow")
        return int(value)
    if kind is str:
        if not _INT.fullmatch(value) or not INT_MIN <= int(value) <= INT_MAX:
            raise CelError("the string is not an int")
        return int(value)
    seconds = time_to_int(value)
    if seconds is None:
        raise _no_overload("int", value)
    return seconds


def to_uint(value: Any) -> Uint:
    kind = type(value)
    if kind is Uint:
        return Uint(value)
    if kind is int or kind is float:
        if not 0 <= value <= UINT_MAX:
            raise CelError("unsigned integer overflow")
        return Uint(value)
    if kind is str:
        if not _UINT.fullmatch(value) or int(value) > UINT_MAX:
            raise CelError("the string is not a uint")
        return Uint(value)
    raise _no_overload("uint", value)


def to_double(value: Any) -> float:
    kind = type(value)
    if kind in (float, int, Uint):
        return float(value)
    if kind is str:
        if not _DOUBLE.fullmatch(value):
            raise CelError("the string is not a double")
        return float(value)
    raise _no_overload("double", value)


def to_string(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return _double_text(value)
    if kind is bytes:
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            raise CelError("the bytes are not UTF-8") from None
    text = time_to_string(value)
    if text is None:
        raise _no_overload("string", value)
    return text


def to_bytes(value: Any) -> bytes:
    """The UTF-8 of a string."""
    if type(value) is bytes:
        return value
    if type(value) is str:
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise CelError("the string has half a surrogate pair, which UTF-8 cannot hold") from None
    raise _no_overload("bytes", value)


def _double_text(value: float) -> str:
    """The shortest text that reads back as the same double, as cel-go writes it: 1, 1.5, 1e+100, -Inf."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return repr(value).removesuffix(".0")


def to_bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str:
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise CelError("the string is not a bool")
    raise _no_overload("bool", value)
