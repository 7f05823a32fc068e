"""Lists and maps, and what of them JSON can hold; see runtime.py."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from transforms.cel.library.encoders import base64_encode
from transforms.cel.library.time_operators import time_to_string
from transforms.cel.library.times import TIMES
from transforms.cel.runtime import NUMBERS, eq, no_operator, no_overload, type_name
from transforms.cel.values import FALSE, NONE, TRUE, BoolKey, CelType, Optional, Uint
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEYS = frozenset({bool, int, Uint, str})
_SOUGHT = _KEYS | {float}
_PLAIN = frozenset({type(None), bool, int, str})
_UNSTORABLE = {CelType: "a type", Optional: "an optional (expected its value: x.orValue(...))"}


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def as_key(value: Any) -> Any:
    """A value as a key of a Python dict. Raises for what cannot be a key in CEL."""
    if type(value) is bool:
        return TRUE if value else FALSE
    if type(value) not in _KEYS:
        raise CelError(f"no such overload: {type_name(value)} as a key of a map")
    return value


def _sought(key: Any) -> Any:
    """A key to look up: a double finds the int of its value."""
    return key if type(key) is float else as_key(key)


def keys(mapping: dict[Any, Any]) -> list[Any]:
    return [key.value if type(key) is BoolKey else key for key in mapping]


def items(collection: Any) -> list[Any]:
    """What a macro goes through: the items of a list, the keys of a map."""
    if type(collection) is list:
        return collection
    if type(collection) is dict:
        return keys(collection)
    raise CelError(f"no such overload: a macro over {type_name(collection)}, expected a list or a map")


def pairs(collection: Any) -> Iterable[tuple[Any, Any]]:
    """What a macro with two variables goes through: indexes and items of a list, keys and values of a map."""
    if type(collection) is dict:
        return zip(keys(collection), collection.values(), strict=True)
    return enumerate(items(collection))


def field(operand: Any, name: str) -> Any:
    if type(operand) is not dict:
        if type(operand) is Optional:
            return optional_field(operand, name)
        raise CelError(f"no such overload: {type_name(operand)} has no field {_quoted(name)}")
    if name not in operand:
        raise CelError(f"no such field: {_quoted(name)}")
    return operand[name]


def has(operand: Any, name: str) -> bool:
    if type(operand) is Optional:
        return operand is not NONE and has(operand.value, name)
    if type(operand) is not dict:
        raise CelError(f"no such overload: has({_quoted(name)}) of {type_name(operand)}")
    return name in operand


def optional_field(operand: Any, name: str) -> Optional:
    """`operand.?name`: none where there is no such field, an error where there can be none."""
    if type(operand) is Optional and operand is NONE:
        return NONE
    value = operand.value if isinstance(operand, Optional) else operand
    return Optional(field(value, name)) if has(value, name) else NONE


def index(operand: Any, key: Any) -> Any:
    if type(operand) is list:
        if type(key) not in NUMBERS:
            raise CelError(f"no such overload: list[{type_name(key)}]")
        if key != key or key in (math.inf, -math.inf) or key != int(key) or not 0 <= key < len(operand):  # noqa: PLR0124 - NaN
            raise CelError("index out of range")
        return operand[int(key)]
    if type(operand) is dict:
        found = _sought(key)
        if found not in operand:
            raise CelError("no such key")
        return operand[found]
    if type(operand) is Optional:
        return optional_index(operand, key)
    raise CelError(f"no such overload: {type_name(operand)}[{type_name(key)}]")


def optional_index(operand: Any, key: Any) -> Optional:
    """`operand[?key]`: none where there is no such key or item."""
    if type(operand) is Optional and operand is NONE:
        return NONE
    value = operand.value if isinstance(operand, Optional) else operand
    if type(value) is dict and _sought(key) not in value:
        return NONE
    if type(value) is list and type(key) in NUMBERS and not 0 <= key < len(value):
        return NONE
    return Optional(index(value, key))


def in_(value: Any, collection: Any) -> bool:
    if type(collection) is list:
        return any(eq(value, item) for item in collection)
    if type(collection) is dict:
        return type(value) in _SOUGHT and _sought(value) in collection
    raise no_operator("in", value, collection)


def make_map(*entries: tuple[Any, Any]) -> dict[Any, Any]:
    """A map literal. Keys are bool, int, uint or string, each at most once."""
    result: dict[Any, Any] = {}
    for name, value in entries:
        key = as_key(name)
        if key in result:
            raise CelError("repeated key in a map")
        result[key] = value
    return result


def present(value: Any) -> tuple[Any, ...]:
    """`[?value]`: the items that it stands for."""
    if type(value) is not Optional:
        raise CelError(f"no such overload: ?{type_name(value)}, expected an optional")
    return () if value is NONE else (value.value,)


def entry(key: Any, value: Any) -> tuple[tuple[Any, Any], ...]:
    """`{?key: value}`: the entries that it stands for."""
    return tuple((key, found) for found in present(value))


def copied(value: Any) -> Any:
    """A copy of the record: as a value of one of its own fields it would contain itself."""
    return value.copy() if type(value) in (dict, list) else value


def size(value: Any) -> int:
    if type(value) in (str, bytes, list, dict):
        return len(value)
    raise no_overload("size", value)


def storable(value: Any) -> Any:  # noqa: PLR0911 - one per kind of value
    """The value as JSON can hold it, by the rules of protobuf's JSON form: times are text, bytes are base64.

    Raises for what would become another value: orjson writes NaN and infinity as null, and a map's int key would be text.
    """
    kind = type(value)
    if kind is list:
        kinds = set(map(type, value))
        if kinds <= _PLAIN or (kinds == {float} and all(map(math.isfinite, value))):
            return value
        return [storable(item) for item in value]
    if kind is dict:
        for key in value:
            if type(key) is not str:
                name = "bool" if type(key) is BoolKey else type_name(key)
                raise CelError(f"the result is a map with a key of type {name}, expected string keys for JSON")
        return {key: storable(item) for key, item in value.items()}
    if kind is float and not math.isfinite(value):
        raise CelError("the result is not a finite number, which JSON cannot hold")
    if kind is Uint:
        return int(value)
    if kind is bytes:
        return base64_encode(value)
    if kind in TIMES:
        return time_to_string(value)
    if kind in _UNSTORABLE:
        raise CelError(f"the result is {_UNSTORABLE[kind]}, which JSON cannot hold")
    return value
