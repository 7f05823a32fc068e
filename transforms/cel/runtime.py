"""The operations of CEL on JSON-like values, with CEL's errors (cel-spec, langdef.md; the conformance tests decide in doubt).

Types: null None, bool bool, int int, uint Uint, double float, string str, bytes bytes, list list, map dict. All functions
raise `CelError` and nothing else, apart from RecursionError for values nested deeper than Python's stack.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2

from transforms.cel.literals import INT_MAX, INT_MIN, UINT_MAX
from transforms.cel.nodes import Uint
from transforms.errors import CelError

_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
}
SCALARS = frozenset({bool, int, Uint, float, str, bytes})
"""Types whose values are equal, and ordered, in CEL as in Python, when both are of the same type."""
_NUMBERS = frozenset({int, Uint, float})
_JOINED = frozenset({float, str, bytes, list})


def type_name(value: object) -> str:
    return _NAMES[type(value)]


def _no_overload(operation: str, *arguments: object) -> CelError:
    types = ", ".join(type_name(argument) for argument in arguments)
    return CelError(f"no such overload: {operation}({types})")


def _no_operator(sign: str, left: object, right: object) -> CelError:
    return CelError(f"no such overload: {type_name(left)} {sign} {type_name(right)}")


def _integer(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def _unsigned(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelError("unsigned integer overflow")


# Arithmetic


def add(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _integer(left + right)
        if kind in _JOINED:
            return left + right
        if kind is Uint:
            return _unsigned(int(left) + int(right))
    raise _no_operator("+", left, right)


def subtract(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _integer(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return _unsigned(int(left) - int(right))
    raise _no_operator("-", left, right)


def multiply(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _integer(left * right)
        if kind is float:
            return left * right
        if kind is Uint:
            return _unsigned(int(left) * int(right))
    raise _no_operator("*", left, right)


def divide(left: Any, right: Any) -> Any:
    """Integers are truncated toward zero; doubles follow IEEE 754, so that 1.0 / 0.0 is infinity."""
    kind = type(left)
    if kind is not type(right) or kind not in _NUMBERS:
        raise _no_operator("/", left, right)
    if kind is float:
        if right != 0.0:
            return left / right
        return math.nan if left == 0.0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    if kind is Uint:
        return Uint(quotient)
    return _integer(quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Any, right: Any) -> Any:
    """The sign is that of the dividend; doubles have no modulo in CEL."""
    kind = type(left)
    if kind is not type(right) or (kind is not int and kind is not Uint):
        raise _no_operator("%", left, right)
    if right == 0:
        raise CelError("modulus by zero")
    remainder = abs(int(left)) % abs(int(right))
    if kind is Uint:
        return Uint(remainder)
    return remainder if left >= 0 else -remainder


def negate(value: Any) -> Any:
    if type(value) is int:
        return _integer(-value)
    if type(value) is float:
        return -value
    raise _no_overload("-", value)


# Comparison


def eq(left: Any, right: Any) -> bool:
    """Numbers by value across their types, everything else only within a type; a bool is not a number."""
    kind, other = type(left), type(right)
    if kind is not other:
        return kind in _NUMBERS and other in _NUMBERS and bool(left == right)
    if kind is list:
        # Not `left == right`: Python takes two NaN of the same identity, and 1 and true, as equal.
        return len(left) == len(right) and all(map(eq, left, right))
    if kind is dict:
        return len(left) == len(right) and all(has_key(right, key) and eq(value, right[key]) for key, value in left.items())
    return bool(left == right)


def ne(left: Any, right: Any) -> bool:
    return not eq(left, right)


def _check_order(sign: str, left: Any, right: Any) -> None:
    kind, other = type(left), type(right)
    if not ((kind is other and kind in SCALARS) or (kind in _NUMBERS and other in _NUMBERS)):
        raise _no_operator(sign, left, right)


def lt(left: Any, right: Any) -> bool:
    _check_order("<", left, right)
    return bool(left < right)


def le(left: Any, right: Any) -> bool:
    _check_order("<=", left, right)
    return bool(left <= right)


def gt(left: Any, right: Any) -> bool:
    _check_order(">", left, right)
    return bool(left > right)


def ge(left: Any, right: Any) -> bool:
    _check_order(">=", left, right)
    return bool(left >= right)


# Logic


def truth(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise CelError(f"no such overload: expected a bool, found {type_name(value)}")


def not_(value: Any) -> bool:
    return not truth(value)


def _decide(decisive: bool, operands: tuple[Callable[[], Any], ...]) -> bool:  # noqa: FBT001
    """One decisive operand decides, whatever errors the others have; without one, the first error stands."""
    first: CelError | None = None
    for operand in operands:
        try:
            if truth(operand()) is decisive:
                return decisive
        except CelError as error:
            first = first or error
    if first is not None:
        raise first
    return not decisive


def and_(*operands: Callable[[], Any]) -> bool:
    return _decide(False, operands)


def or_(*operands: Callable[[], Any]) -> bool:
    return _decide(True, operands)


# Lists and maps


def has_key(mapping: dict[Any, Any], key: Any) -> bool:
    if type(key) is str:
        return key in mapping
    # In Python 1 and True are one key, in CEL they are two. Only map literals have keys that are no strings: few.
    return any(eq(key, candidate) for candidate in mapping)


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
        if type(key) not in _NUMBERS:
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
    raise _no_operator("in", value, collection)


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
    raise _no_overload("size", value)


# Strings


@lru_cache(maxsize=256)
def pattern(text: str) -> Callable[[str], Any]:
    """The search function of a regular expression. RE2 takes time linear in the text, whatever the pattern is."""
    try:
        options = re2.Options()
        options.log_errors = False
        return re2.compile(text, options).search  # type: ignore[no-any-return]
    except re2.error as error:
        raise CelError("not a regular expression") from error


def matches(value: Any, text: Any) -> bool:
    if type(value) is not str or type(text) is not str:
        raise _no_overload("matches", value, text)
    return pattern(text)(value) is not None


def contains(value: Any, part: Any) -> bool:
    if type(value) is not str or type(part) is not str:
        raise _no_overload("contains", value, part)
    return part in value


def starts_with(value: Any, part: Any) -> bool:
    if type(value) is not str or type(part) is not str:
        raise _no_overload("startsWith", value, part)
    return value.startswith(part)


def ends_with(value: Any, part: Any) -> bool:
    if type(value) is not str or type(part) is not str:
        raise _no_overload("endsWith", value, part)
    return value.endswith(part)


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
                raise CelError(f"the result is a map with a key of type {type_name(key)}, expected string keys for JSON")
            storable(item)
    return value
