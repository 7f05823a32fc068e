"""Forms of a value beside JSON: text and bytes, in and out."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import orjson

from transforms.cel.runtime import type_name
from transforms.errors import DecodeError, EncodeError

Format: TypeAlias = Literal["json", "string", "bytes"]
FORMATS = ("json", "string", "bytes")


def decode_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise DecodeError("not UTF-8 text") from None


def json_bytes(value: Any) -> bytes:
    """A value as JSON. Raises `EncodeError` where it is nested too deeply."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise EncodeError(f"no JSON form: {error}") from None


def encode_string(value: Any) -> bytes:
    """Text as it is; bytes that are text."""
    if type(value) is str:
        return value.encode()
    if type(value) is bytes:
        decode_string(value)
        return value
    raise EncodeError(f"the value is of type {type_name(value)}, expected a string: the topic's format is string")


def encode_bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    if type(value) is str:
        return value.encode()
    raise EncodeError(
        f"the value is of type {type_name(value)}, expected a string or bytes: the topic's format is bytes"
    )
