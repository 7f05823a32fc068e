"""The extension `math` of cel-go. No function converts: math.ceil(1) is an error, as 1 is no double."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from transforms.cel.literals import INT_MIN, UINT_MAX
from transforms.cel.runtime import NUMBERS, gt, lt, no_overload
from transforms.cel.values import Uint
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable

_EXACT = 2.0**52
"""From here on doubles have no fraction."""


def math_greatest(*values: Any) -> Any:
    """Of the arguments, or of the items of one list, the first of those that equal the greatest; with its type."""
    numbers = _numbers("math.greatest", values)
    return _first(gt, numbers) if float in map(type, numbers) else max(numbers)


def math_least(*values: Any) -> Any:
    """Of the arguments, or of the items of one list, the first of those that equal the least; with its type."""
    numbers = _numbers("math.least", values)
    return _first(lt, numbers) if float in map(type, numbers) else min(numbers)


def _first(beats: Callable[[Any, Any], bool], numbers: Any) -> Any:
    """The first that none beats. Python's max() and min() do not round an int beside a double, see `runtime.eq`."""
    found = numbers[0]
    for number in numbers[1:]:
        if beats(number, found):
            found = number
    return found


def _numbers(function: str, values: tuple[Any, ...]) -> Any:
    numbers = values[0] if len(values) == 1 and type(values[0]) is list else values
    if not numbers:
        raise CelError(f"{function} of an empty list")
    if not NUMBERS.issuperset(map(type, numbers)):
        raise no_overload(function, *values)
    if len(numbers) > 1 and any(number != number for number in numbers):  # noqa: PLR0124 - NaN
        raise CelError(f"{function}: NaN has no order")
    return numbers


def _double(function: str, value: Any) -> float:
    if type(value) is not float:
        raise no_overload(function, value)
    return value


def math_ceil(value: Any) -> float:
    return _whole(math.ceil, _double("math.ceil", value))


def math_floor(value: Any) -> float:
    return _whole(math.floor, _double("math.floor", value))


def math_trunc(value: Any) -> float:
    return _whole(math.trunc, _double("math.trunc", value))


def math_round(value: Any) -> float:
    """To the nearest; halves away from zero, unlike Python's round()."""
    return _whole(_half_away, _double("math.round", value))


def _half_away(value: float) -> int:
    whole = math.trunc(value)
    if abs(value - whole) >= 0.5:
        return whole + (1 if value > 0 else -1)
    return whole


def _whole(rounding: Any, value: float) -> float:
    """Rounded; the sign stays with a zero. Infinity, NaN and what is whole already are what they are."""
    if not -_EXACT < value < _EXACT:
        return value
    return math.copysign(float(rounding(value)), value)


def math_abs(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        if value == INT_MIN:
            raise CelError("integer overflow")
        return abs(value)
    if kind is float:
        return abs(value)
    if kind is Uint:
        return value
    raise no_overload("math.abs", value)


def math_sign(value: Any) -> Any:
    """-1, 0 or 1 in the type of the argument; of NaN it is NaN."""
    kind = type(value)
    if kind not in NUMBERS:
        raise no_overload("math.sign", value)
    if value != value:  # noqa: PLR0124 - NaN
        return value
    return kind((value > 0) - (value < 0))


def math_sqrt(value: Any) -> float:
    """A double from any number; of what is below zero it is NaN."""
    if type(value) not in NUMBERS:
        raise no_overload("math.sqrt", value)
    return math.nan if value < 0 else math.sqrt(value)


def math_is_nan(value: Any) -> bool:
    return math.isnan(_double("math.isNaN", value))


def math_is_inf(value: Any) -> bool:
    return math.isinf(_double("math.isInf", value))


def math_is_finite(value: Any) -> bool:
    return math.isfinite(_double("math.isFinite", value))


def _bits(function: str, left: Any, right: Any) -> tuple[int, int, type]:
    kind = type(left)
    if kind is not type(right) or kind not in (int, Uint):
        raise no_overload(function, left, right)
    return int(left), int(right), kind


def math_bit_and(left: Any, right: Any) -> Any:
    one, other, kind = _bits("math.bitAnd", left, right)
    return kind(one & other)


def math_bit_or(left: Any, right: Any) -> Any:
    one, other, kind = _bits("math.bitOr", left, right)
    return kind(one | other)


def math_bit_xor(left: Any, right: Any) -> Any:
    one, other, kind = _bits("math.bitXor", left, right)
    return kind(one ^ other)


def math_bit_not(value: Any) -> Any:
    if type(value) is int:
        return ~value
    if type(value) is Uint:
        return Uint(UINT_MAX ^ int(value))
    raise no_overload("math.bitNot", value)


def math_bit_shift_left(value: Any, bits: Any) -> Any:
    """Bits that leave on the left are lost; that is no overflow."""
    pattern = _shifted("math.bitShiftLeft", value, bits)
    return _as(type(value), (pattern << bits) & UINT_MAX if bits < 64 else 0)


def math_bit_shift_right(value: Any, bits: Any) -> Any:
    """Zeros come from the left, also into a negative int."""
    pattern = _shifted("math.bitShiftRight", value, bits)
    return _as(type(value), pattern >> bits if bits < 64 else 0)


def _shifted(function: str, value: Any, bits: Any) -> int:
    """The 64 bits of `value`, as a number without a sign."""
    if type(value) not in (int, Uint) or type(bits) is not int:
        raise no_overload(function, value, bits)
    if bits < 0:
        raise CelError(f"{function} by a negative number of bits")
    return int(value) & UINT_MAX


def _as(kind: type, pattern: int) -> Any:
    """What the 64 bits say as an int or a uint."""
    if kind is Uint:
        return Uint(pattern)
    return pattern + 2 * INT_MIN if pattern > UINT_MAX >> 1 else pattern
