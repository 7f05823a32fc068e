"""What expressions see of a record beside its value: `key headers topic partition offset timestamp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from transforms.cel.library.times import Timestamp, timestamp_of
from transforms.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from transforms.records import HeaderList


def key_string(key: bytes | None) -> str | None:
    if key is None:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise DecodeError("the key is not UTF-8 text, which `source.key_format: string` expects") from None


def key_json(key: bytes | None) -> Any:
    if key is None:
        return None
    try:
        return orjson.loads(key)
    except orjson.JSONDecodeError:
        raise DecodeError("the key is not JSON, which `source.key_format: json` expects") from None


def header_map(headers: HeaderList | None) -> dict[str, str | bytes | None]:
    """The last header of each name (as Kafka's `lastHeader`): text, or bytes where it is not UTF-8, or null."""
    result: dict[str, str | bytes | None] = {}
    for name, value in headers or ():
        if isinstance(value, bytes):
            try:
                result[name] = value.decode()
            except UnicodeDecodeError:
                result[name] = value
        else:
            result[name] = value
    return result


def moment(timestamp: tuple[int, int]) -> Timestamp:
    return timestamp_of(timestamp[1] * 1_000_000)


METADATA: dict[str, Callable[..., Any] | None] = {
    "key_string": key_string,
    "key_bytes": None,
    "key_json": key_json,
    "headers": header_map,
    "topic": None,
    "partition": None,
    "offset": None,
    "timestamp": moment,
}
"""How a name's value comes from what the record gives; None: as it is. The key has a format."""
