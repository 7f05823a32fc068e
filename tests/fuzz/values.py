"""Values of records as nobody would send them, and now and then as somebody does."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

SECRET = "S3CR3T"
"""In many texts: no message of a failure may quote it."""
HUGE = 10 * 2**20
DEEP = 100_000

_TEXTS = [
    "",
    " ",
    "a",
    SECRET,
    f"{SECRET}-42",
    "ok",
    "cancelled",
    "0",
    "-1",
    "17",
    "1e400",
    "NaN",
    "true",
    "2026-01-31T09:30:00Z",
    "31.01.2026",
    "9999-12-31T23:59:59.999999999Z",
    "0001-01-01T00:00:00Z",
    "1h",
    "{}",
    "[1, {",
    "null",
    '{"id": 1}',
    "[1,2,3]",
    "\x00",
    "\ud7ff\ue000",
    "\U0001f600" * 3,
    "\u202e",
    "a" * 300,
    "a,b;c",
    "%s%n",
    "(a+)+$",
    "o'\"`\\",
    "_",
    "a.b",
    "-0",
    "\u0130",
    "\r\n\t",
]
_NUMBERS = [
    0,
    1,
    -1,
    2,
    7,
    100,
    2**31,
    2**53,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64 - 1,
    0.0,
    -0.0,
    0.1,
    1.5,
    12.34,
    1e308,
    -1e308,
    5e-324,
    1e18,
    1e19,
    1769851800,
    1769851800123,
    253402300800000,
    -62135596800001,
]


def scalar(rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(_TEXTS)
    if kind < 0.7:
        return rng.choice(_NUMBERS) if rng.random() < 0.7 else rng.uniform(-1e6, 1e6)
    if kind < 0.85:
        return rng.choice([True, False])
    return None


def value(rng: random.Random, names: Sequence[str], depth: int = 0) -> Any:
    kind = rng.random()
    if depth > 4 or kind < 0.6:
        return scalar(rng)
    if kind < 0.8:
        return [value(rng, names, depth + 1) for _ in range(rng.choice([0, 1, 2, 3, 8]))]
    return record(rng, names, depth + 1)


def record(rng: random.Random, names: Sequence[str], depth: int = 0) -> dict[str, Any]:
    return {rng.choice(names): value(rng, names, depth) for _ in range(rng.choice([0, 1, 2, 4, 8]))}


def mutated(rng: random.Random, base: Any, names: Sequence[str]) -> Any:
    """A record of the usual kind with one to three parts replaced, removed or added."""
    changed = copy.deepcopy(base)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        place, key = _somewhere(rng, changed)
        if place is None:
            return value(rng, names)
        action = rng.random()
        if action < 0.6:
            place[key] = value(rng, names, 2)
        elif action < 0.8:
            del place[key]
        elif isinstance(place, dict):
            place[rng.choice(names)] = value(rng, names, 2)
        else:
            place.append(value(rng, names, 2))
    return changed


def _somewhere(rng: random.Random, data: Any) -> tuple[Any, Any]:
    """(a list or dict inside, one of its keys or indexes)."""
    place: Any = None
    key: Any = None
    while isinstance(data, dict | list) and data:
        place, key = data, rng.choice(list(data) if isinstance(data, dict) else range(len(data)))
        data = data[key]
        if rng.random() < 0.3:
            break
    return place, key


def as_bytes(data: Any) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS)


# Bytes that no JSON library writes


def _object(rng: random.Random, names: Sequence[str]) -> bytes:
    return as_bytes(record(rng, names) or {"a": 1})


def _field(rng: random.Random, names: Sequence[str], content: bytes) -> bytes:
    """An object with one field of that content."""
    return b'{"%s":%s}' % (rng.choice(names).encode(), content)


def _cut(rng: random.Random, names: Sequence[str]) -> bytes:
    text = _object(rng, names)
    return text[: rng.randrange(len(text))]


def _flipped(rng: random.Random, names: Sequence[str]) -> bytes:
    text = bytearray(_object(rng, names))
    for _ in range(rng.choice([1, 1, 4])):
        text[rng.randrange(len(text))] = rng.randrange(256)
    return bytes(text)


def _twice(rng: random.Random, names: Sequence[str]) -> bytes:
    """Duplicate keys."""
    name = rng.choice(names).encode()
    return b'{"%s":%s,"%s":%s}' % (name, as_bytes(value(rng, names)), name, as_bytes(value(rng, names)))


def _odd(rng: random.Random, names: Sequence[str]) -> bytes:
    """What is no JSON though some write it, and numbers and text at the edge of it."""
    contents = [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"-1e999",
        b"1" * 40,
        b"-" + b"9" * 400,
        b"0.1" + b"0" * 400 + b"1",
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'"\\u0000"',
        b"+1",
        b"01",
        b".5",
        b"0x1F",
        b"'a'",
        b"undefined",
        b"1e-999",
        b'"\\x41"',
        b"[1,]",
        b"/**/1",
        b"",
    ]
    return _field(rng, names, rng.choice(contents))


def _garbage(rng: random.Random, _names: Sequence[str]) -> bytes:
    return rng.choice(
        [
            b"",
            b" ",
            b"null",
            b"[]",
            b'"a"',
            b"1",
            b"\xef\xbb\xbf{}",
            b"\x00\x00\x00\x00\x05abc",
            b"{}{}",
            b"{} ",
            rng.randbytes(rng.choice([1, 5, 100])),
        ]
    )


def _wide(rng: random.Random, names: Sequence[str]) -> bytes:
    """Many fields, or a long list."""
    if rng.random() < 0.5:
        return as_bytes({f"f{n}": scalar(rng) for n in range(2000)})
    return _field(rng, names, as_bytes([value(rng, names, 4) for _ in range(3000)]))


def _deep(rng: random.Random, names: Sequence[str]) -> bytes:
    depth = rng.choice([100, 254, 255, 1000, 1024, 1025, DEEP])
    opening, closing = rng.choice([(b"[", b"]"), (b'{"%s":' % rng.choice(names).encode(), b"}")])
    return _field(rng, names, opening * depth + b"1" + closing * depth)


def _huge(rng: random.Random, names: Sequence[str]) -> bytes:
    contents = [
        b'"%s"' % (b"a" * HUGE),
        b'"%s"' % (b"\\u00e9" * (HUGE // 6)),
        b"[%s1]" % (b"1," * (HUGE // 20)),
        b'"%s"' % (b"1" * HUGE),
        b"9" * 100_000,
    ]
    return _field(rng, names, rng.choice(contents))


_RARE: list[tuple[float, Callable[[random.Random, Sequence[str]], bytes]]] = [
    (0.06, _cut),
    (0.06, _flipped),
    (0.03, _twice),
    (0.06, _odd),
    (0.02, _garbage),
    (0.0005, _wide),
    (0.001, _deep),
    (0.00003, _huge),
]
"""Shares of all records."""


def content(rng: random.Random, names: Sequence[str], bases: Sequence[Any]) -> bytes | None:
    """The value of one record for a pipeline: `names` of fields, and `bases` that it is made for."""
    kind = rng.random()
    for share, make in _RARE:
        if kind < share:
            return make(rng, names)
        kind -= share
    if kind < 0.01:
        return None
    data = mutated(rng, rng.choice(bases), names) if bases and rng.random() < 0.7 else record(rng, names)
    if isinstance(data, float) and not math.isfinite(data):
        data = None
    return as_bytes(data)
