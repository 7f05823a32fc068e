"""The values of literals: numbers in range, strings and bytes with their escapes (cel-spec, langdef.md, "String and Bytes Values")."""

from __future__ import annotations

import math
import re

from transforms.cel.values import Uint
from transforms.errors import CelSyntaxError

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1
_LONGEST = 80
"""Characters of an integer literal: Python refuses to read those of thousands of digits, with an error of its own."""

_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34, "'": 39, "`": 96, "?": 63}
_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\\"'`?])|[xX](?P<x>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<bad>.|$))",
    re.DOTALL,
)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:20] + "..."


def int_literal(text: str, offset: int) -> int:
    if len(text) > _LONGEST:
        raise CelSyntaxError(f"{_short(text)} does not fit an int, expected {INT_MIN} to {INT_MAX}", offset)
    value = int(text, 16) if "x" in text else int(text)
    if not INT_MIN <= value <= INT_MAX:
        raise CelSyntaxError(f"{text} does not fit an int, expected {INT_MIN} to {INT_MAX}", offset)
    return value


def uint_literal(text: str, offset: int) -> Uint:
    if len(text) > _LONGEST:
        raise CelSyntaxError(f"{_short(text)} does not fit a uint, expected 0u to {UINT_MAX}u", offset)
    digits = text[:-1]
    value = int(digits, 16) if "x" in digits else int(digits)
    if not 0 <= value <= UINT_MAX:
        raise CelSyntaxError(f"{text} does not fit a uint, expected 0u to {UINT_MAX}u", offset)
    return Uint(value)


def double_literal(text: str, offset: int) -> float:
    if text.endswith("."):
        raise CelSyntaxError(f"{_short(text)} has no digits behind the point, expected {_short(text)}0", offset)
    value = float(text)
    if math.isinf(value):
        raise CelSyntaxError(f"{_short(text)} does not fit a double", offset)
    return value


def _split(text: str) -> tuple[str, bool]:
    """(what is between the quotes, whether it is raw)."""
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    quotes = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    return body[quotes:-quotes], raw


def string_literal(text: str, offset: int) -> str:
    body, raw = _split(text)
    if raw:
        return body

    def code_point(match: re.Match[str]) -> str:
        if match["simple"]:
            return chr(_SIMPLE[match["simple"]])
        if match["bad"] is not None:
            raise CelSyntaxError(f"{match[0]} is not an escape sequence of a string", offset)
        if match["high"]:
            return chr(0x10000 + ((int(match["high"], 16) - 0xD800) << 10) + int(match["low"], 16) - 0xDC00)
        value = int(match["octal"], 8) if match["octal"] else int(match["x"] or match["u"] or match["U"], 16)
        if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            raise CelSyntaxError(f"{match[0]} is not a Unicode character", offset)
        return chr(value)

    return _ESCAPE.sub(code_point, body)


def bytes_literal(text: str, offset: int) -> bytes:
    body, raw = _split(text[1:])
    if raw:
        return body.encode()
    out = bytearray()
    position = 0
    for match in _ESCAPE.finditer(body):
        out += body[position : match.start()].encode()
        position = match.end()
        if match["simple"]:
            out.append(_SIMPLE[match["simple"]])
        elif match["octal"] or match["x"]:
            out.append(int(match["octal"], 8) if match["octal"] else int(match["x"], 16))
        else:
            raise CelSyntaxError(f"{match[0]} is not an escape sequence of bytes", offset)
    return bytes(out + body[position:].encode())
