"""Fields by name, and by path: `customer.email` is the field `email` of the object `customer`.

A part in backticks is taken as it stands, so that a name may have dots: `` `shop.id`.value ``; two backticks inside stand for one.
What these functions change they copy on the way: an object of the record may also be seen elsewhere, by `set: {a: b}` or by
another element of `explode`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from transforms.cel.runtime import type_name
from transforms.errors import MissingField, WrongType
from transforms.steps.base import Kind

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def parts(path: str) -> tuple[str, ...]:
    """The names of a path. ValueError where it is none."""
    found: list[str] = []
    at = 0
    while True:
        match = _PART.match(path, at)
        if match is None or path[match.end() : match.end() + 1] not in ("", "."):
            raise ValueError(path)
        found.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        if match.end() == len(path):
            return tuple(found)
        at = match.end() + 1


def _check(path: str) -> str:
    try:
        parts(path)
    except ValueError:
        raise PydanticCustomError(
            "path",
            "not a field, expected a name, names with dots between them, or `a.name` in backticks for one with dots",
        ) from None
    return path


FieldPath: TypeAlias = Annotated[str, Kind("field"), Field(min_length=1), AfterValidator(_check)]


def quoted(names: tuple[str, ...]) -> str:
    return '"' + ".".join(names) + '"'


def look(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The value, or None where there is none."""
    value: Any = record
    for name in names:
        if type(value) is not dict:
            return None
        value = value.get(name)
    return value


def put(record: dict[str, Any], names: tuple[str, ...], value: Any) -> None:
    """Sets a value; objects on the way are made where there are none."""
    for depth, name in enumerate(names[:-1], 1):
        inner = record.get(name)
        if inner is not None and type(inner) is not dict:
            raise WrongType(f"{quoted(names[:depth])} is of type {type_name(inner)}, expected an object")
        record[name] = inner = {} if inner is None else inner.copy()
        record = inner
    record[names[-1]] = value


def remove(record: dict[str, Any], names: tuple[str, ...]) -> None:
    """Removes a field, if it is there."""
    holder = look(record, names[:-1])
    if type(holder) is not dict or names[-1] not in holder:
        return
    for name in names[:-1]:
        record[name] = record = record[name].copy()
    del record[names[-1]]


def take(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Removes a field and returns its value. Raises `MissingField`."""
    holder = look(record, names[:-1])
    if type(holder) is not dict or names[-1] not in holder:
        raise MissingField(f"no such field: {quoted(names)}")
    value = holder[names[-1]]
    remove(record, names)
    return value


def read(path: str) -> str:
    """Source of a field's value, None where there is none; nested ones need `look`."""
    names = parts(path)
    return f"r.get({names[0]!a})" if len(names) == 1 else f"look(r, {names!a})"


def write(path: str, value: str) -> str:
    """Source of a statement that sets a field; nested ones need `put`."""
    names = parts(path)
    return f"r[{names[0]!a}] = {value}" if len(names) == 1 else f"put(r, {names!a}, {value})"
