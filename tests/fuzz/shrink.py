"""A smaller input with the same fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRIES = 2000


def shrunk(content: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """`fails` says whether the fault is still there. Parts of JSON are left out first, then pieces of the bytes."""
    tries = 0
    if not fails(content):
        return content  # it takes more than this record

    def attempt(candidates: Iterator[bytes]) -> bool:
        nonlocal content, tries
        for candidate in candidates:
            tries += 1
            if tries > TRIES:
                return False
            if len(candidate) < len(content) and fails(candidate):
                content = candidate
                return True
        return False

    while attempt(_smaller_json(content)):
        pass
    size = len(content) // 2
    while size >= 1:
        while attempt(content[:at] + content[at + size :] for at in range(0, len(content), size)):
            pass
        size //= 2
    return content


def _smaller_json(content: bytes) -> Iterator[bytes]:
    try:
        data = orjson.loads(content)
    except orjson.JSONDecodeError:
        return
    try:
        for smaller in _smaller(data):
            yield orjson.dumps(smaller)
    except (RecursionError, TypeError):  # too deep for either
        return


def _smaller(data: Any) -> Iterator[Any]:
    if isinstance(data, dict):
        for key in data:
            yield {other: value for other, value in data.items() if other != key}
        yield from (value for value in data.values() if isinstance(value, dict | list))
        for key, value in data.items():
            for smaller in _smaller(value):
                yield {**data, key: smaller}
    elif isinstance(data, list):
        yield data[: len(data) // 2]
        for at, value in enumerate(data[:50]):
            yield data[:at] + data[at + 1 :]
            for smaller in _smaller(value):
                yield [*data[:at], smaller, *data[at + 1 :]]
    elif isinstance(data, str) and data:
        yield data[: len(data) // 2]
        yield data[len(data) // 2 :]
