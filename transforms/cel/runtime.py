"""The operations of CEL on JSON-like values, with CEL's errors (cel-spec, langdef.md; the conformance tests decide in doubt).

Types: null None, bool bool, int int, uint Uint, double float, string str, bytes bytes, list list, map dict (a bool as a key is a
`BoolKey`), timestamp Timestamp, duration Duration, type CelType, optional Optional. All functions raise `CelError` and nothing
else, apart from RecursionError for values nested deeper than Python's stack.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from transforms.cel.library.limits import check_characters, check_items
from transforms.cel.library.time_operators import add_time, subtract_time
from transforms.cel.library.times import TIMES, Duration, Timestamp
from transforms.cel.literals import INT_MAX, INT_MIN, UINT_MAX
from transforms.cel.values import NONE, CelType, Optional, Uint
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable

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
    Timestamp: "timestamp",
    Duration: "duration",
    CelType: "type",
    Optional: "optional",
}
_LONG_NAMES = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "optional": "optional_type",
}
TYPES: dict[str, CelType] = {
    name: CelType(name) for name in (_LONG_NAMES.get(short, short) for short in _NAMES.values())
}
"""The values of type() by their names."""
_TYPE_OF = {kind: TYPES[_LONG_NAMES.get(short, short)] for kind, short in _NAMES.items()}

SCALARS = frozenset({bool, int, Uint, float, str, bytes}) | TIMES
"""Types whose values are equal, and ordered, in CEL as in Python, when both are of the same type."""
NUMBERS = frozenset({int, Uint, float})
_JOINED = frozenset({str, bytes, list})


def type_name(value: object) -> str:
    return _NAMES[type(value)]


def type_(value: object) -> CelType:
    return _TYPE_OF[type(value)]


def dyn(value: Any) -> Any:
    """Hides the type from a checker."""
    return value


def no_overload(operation: str, *arguments: object) -> CelError:
    types = ", ".join(type_name(argument) for argument in arguments)
    return CelError(f"no such overload: {operation}({types})")


def no_operator(sign: str, left: object, right: object) -> CelError:
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
        if kind is float:
            return left + right
        if kind in _JOINED:
            # A variable of a macro may be doubled again and again in a short expression.
            (check_items if kind is list else check_characters)("+", len(left) + len(right))
            return left + right
        if kind is Uint:
            return _unsigned(int(left) + int(right))
    time = add_time(left, right)
    if time is None:
        raise no_operator("+", left, right)
    return time


def subtract(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _integer(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return _unsigned(int(left) - int(right))
    time = subtract_time(left, right)
    if time is None:
        raise no_operator("-", left, right)
    return time


def multiply(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _integer(left * right)
        if kind is float:
            return left * right
        if kind is Uint:
            return _unsigned(int(left) * int(right))
    raise no_operator("*", left, right)


def divide(left: Any, right: Any) -> Any:
    """Integers are truncated toward zero; doubles follow IEEE 754, so that 1.0 / 0.0 is infinity."""
    kind = type(left)
    if kind is not type(right) or kind not in NUMBERS:
        raise no_operator("/", left, right)
    if kind is float:
        if right != 0.0:
            return left / right
        return (
            math.nan if left == 0.0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)
        )
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
        raise no_operator("%", left, right)
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
    raise no_overload("-", value)


# Comparison


def eq(left: Any, right: Any) -> bool:
    """Numbers by value across their types, everything else only within a type; a bool is not a number.

    An int beside a double is rounded to a double, here and where they are ordered: 2^63 - 1 equals the double 2^63. langdef.md
    ("Numbers") speaks of one number line, on which they differ, but four of cel-spec's cases want them equal, for example
    comparisons/lte_literal/lte_dyn_big_double_int, and cel-go rounds, too. So from 2^53 on equality is not transitive.
    """
    kind, other = type(left), type(right)
    if kind is not other:
        if kind not in NUMBERS or other not in NUMBERS:
            return False
        return float(left) == float(right) if float in (kind, other) else int(left) == int(right)
    if kind is list:
        # Not `left == right`: Python takes two NaN of the same identity, and 1 and true, as equal.
        return len(left) == len(right) and all(map(eq, left, right))
    if kind is dict:
        return len(left) == len(right) and all(key in right and eq(value, right[key]) for key, value in left.items())
    if kind is Optional:
        return left is right or (left is not NONE and right is not NONE and eq(left.value, right.value))
    return bool(left == right)


def ne(left: Any, right: Any) -> bool:
    return not eq(left, right)


def _ordered(sign: str, left: Any, right: Any) -> tuple[Any, Any]:
    """The two values as Python orders them right."""
    kind, other = type(left), type(right)
    if kind is other and kind in SCALARS:
        return left, right
    if kind in NUMBERS and other in NUMBERS:
        return (float(left), float(right)) if float in (kind, other) else (left, right)
    raise no_operator(sign, left, right)


def lt(left: Any, right: Any) -> bool:
    one, two = _ordered("<", left, right)
    return bool(one < two)


def le(left: Any, right: Any) -> bool:
    one, two = _ordered("<=", left, right)
    return bool(one <= two)


def gt(left: Any, right: Any) -> bool:
    one, two = _ordered(">", left, right)
    return bool(one > two)


def ge(left: Any, right: Any) -> bool:
    one, two = _ordered(">=", left, right)
    return bool(one >= two)


# Logic


def wrong(message: str) -> Any:
    """What a checker would have refused."""
    raise CelError(message)


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
