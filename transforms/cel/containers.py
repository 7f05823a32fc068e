"""Lists and maps, and what of them JSON can hold; see runtime.py."""

from __future__ import annotations

import json
import math
from typing import Any

from transforms.cel.nodes import Uint
from transforms.cel.runtime import NUMBERS, eq, has_key, no_operator, no_overload, type_name
from transforms.errors import CelError


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def field(operand: Any, name: str) -> Any:
    if type(operand) is not dict:
        raise CelError(f"no such overload: {type_name(operand)} has no field {_quoted(name)}")
    if name not in operand:
        raise CelError(f"no such field: {_quoted(name)}")
    return operand[name]


def has(operand: Any, name: str) -> bool:
    if type(operand) is not dict:
        raise CelError(f"no such overload: has({_quoted(name)}) of {type_name(operand)}")
    return name in operand


def index(operand: Any, key: Any) -> Any:
    if type(operand) is list:
        if type(key) not in NUMBERS:
            raise CelError(f"no such overload: list[{type_name(key)}]")
        if key != key or key in (math.inf, -math.inf) or key != int(key) or not 0 <= key < len(operand):  # noqa: PLR0124 - NaN
            raise CelError("index out of range")
        return operand[int(key)]
    if type(operand) is dict:
        for candidate, value in operand.items():
            if eq(candidate, key):
                return value
        raise CelError("no such key")
    raise CelError(f"no such overload: {type_name(operand)}[{type_name(key)}]")


def in_(value: Any, collection: Any) -> bool:
    if type(collection) is list:
        return any(eq(value, item) for item in collection)
    if type(collection) is dict:
        return has_key(collection, value)
    raise no_operator("in", value, collection)


def make_map(*entries: tuple[Any, Any]) -> dict[Any, Any]:
    """A map literal. Keys are bool, int, uint or string, each at most once."""
    result: dict[Any, Any] = {}
    for key, value in entries:
        if type(key) not in (bool, int, Uint, str):
            raise CelError(f"no such overload: {type_name(key)} as a key of a map")
        if key in result:
            raise CelError("repeated key in a map")
        result[key] = value
    return result


def size(value: Any) -> int:
    if type(value) in (str, bytes, list, dict):
        return len(value)
    raise no_overload("size", value)


def storable(value: Any) -> Any:
    """The value itself, if JSON can hold it; orjson would write NaN and infinity as null, which is another value."""
    kind = type(value)
    if kind is float:
        if not math.isfinite(value):
            raise CelError("the result is not a finite number, which JSON cannot hold")
    elif kind is bytes:
        raise CelError("the result is bytes, which JSON cannot hold, expected a string")
    elif kind is list:
        for item in value:
            storable(item)
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise CelError(
                    f"the result is a map with a key of type {type_name(key)}, expected string keys for JSON"
                )
            storable(item)
    return value
