"""The extension `math`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transforms.cel.library.checks import fails, gives, no_overload
from transforms.cel.library import numbers
from transforms.cel.values import Uint

if TYPE_CHECKING:
    from collections.abc import Callable

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
ROUNDINGS = (numbers.math_ceil, numbers.math_floor, numbers.math_trunc, numbers.math_round)


@pytest.mark.parametrize(
    ("values", "greatest", "least"),
    [
        ((3,), 3, 3),
        ((1.5,), 1.5, 1.5),
        ((3, 5, 4), 5, 3),
        ((Uint(3), 2, 2.5), Uint(3), 2),
        ((2, 2.0, Uint(2)), 2, 2),
        ((2.0, 2), 2.0, 2.0),
        ((INT_MAX, 1.0, float(2**63)), INT_MAX, 1.0),
        ((INT_MAX, INT_MAX - 1), INT_MAX, INT_MAX - 1),
        ((INT_MIN, Uint(UINT_MAX)), Uint(UINT_MAX), INT_MIN),
        ((math.inf, 1, -math.inf), math.inf, -math.inf),
        ((2**53 + 1, 2.0**53), 2**53 + 1, 2**53 + 1),
    ],
)
def test_greatest_and_least(values: tuple[Any, ...], greatest: Any, least: Any) -> None:
    """Compared as by `<`, which rounds an int beside a double; of equals it is the first. A list stands for its items."""
    gives(greatest, numbers.math_greatest(*values))
    gives(least, numbers.math_least(*values))
    gives(greatest, numbers.math_greatest(list(values)))
    gives(least, numbers.math_least(list(values)))


@pytest.mark.parametrize(
    ("name", "function"), [("math.greatest", numbers.math_greatest), ("math.least", numbers.math_least)]
)
def test_errors_of_greatest_and_least(name: str, function: Callable[..., Any]) -> None:
    fails(f"{name} of an empty list", function, [])
    fails(f"{name}: NaN has no order", function, 1, math.nan)
    fails(f"{name}: NaN has no order", function, [math.nan, 1.0])
    no_overload(f"{name}(string)", function, "1")
    no_overload(f"{name}(int, string)", function, 1, "2")
    no_overload(f"{name}(int, bool)", function, 1, True)
    no_overload(f"{name}(list)", function, [1, None])
    no_overload(f"{name}(list, int)", function, [1], 2)
    gives(math.nan, function(math.nan))


@pytest.mark.parametrize(
    ("value", "ceil", "floor", "trunc", "rounded"),
    [
        (1.2, 2.0, 1.0, 1.0, 1.0),
        (-1.2, -1.0, -2.0, -1.0, -1.0),
        (0.5, 1.0, 0.0, 0.0, 1.0),
        (-0.5, -0.0, -1.0, -0.0, -1.0),
        (2.5, 3.0, 2.0, 2.0, 3.0),
        (-2.5, -2.0, -3.0, -2.0, -3.0),
        (0.49999999999999994, 1.0, 0.0, 0.0, 0.0),
        (3.0, 3.0, 3.0, 3.0, 3.0),
        (4503599627370495.5, 4503599627370496.0, 4503599627370495.0, 4503599627370495.0, 4503599627370496.0),
        (1e300, 1e300, 1e300, 1e300, 1e300),
        (math.inf, math.inf, math.inf, math.inf, math.inf),
        (-math.inf, -math.inf, -math.inf, -math.inf, -math.inf),
        (math.nan, math.nan, math.nan, math.nan, math.nan),
    ],
)
def test_rounding(value: float, ceil: float, floor: float, trunc: float, rounded: float) -> None:
    """Halves go away from zero; a zero keeps the sign."""
    for expected, function in zip((ceil, floor, trunc, rounded), ROUNDINGS, strict=True):
        actual = function(value)
        gives(expected, actual)
        assert math.copysign(1.0, expected) == math.copysign(1.0, actual)


@given(st.floats())
def test_rounding_stays_near(value: float) -> None:
    floor, ceil = numbers.math_floor(value), numbers.math_ceil(value)
    if math.isfinite(value):
        assert floor <= numbers.math_trunc(value) <= ceil
        assert floor <= numbers.math_round(value) <= ceil
        assert ceil - floor in (0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("math.ceil", numbers.math_ceil),
        ("math.floor", numbers.math_floor),
        ("math.trunc", numbers.math_trunc),
        ("math.round", numbers.math_round),
        ("math.isNaN", numbers.math_is_nan),
        ("math.isInf", numbers.math_is_inf),
        ("math.isFinite", numbers.math_is_finite),
    ],
)
def test_functions_of_doubles_alone(name: str, function: Callable[..., Any]) -> None:
    for kind, value in (("int", 1), ("uint", Uint(1)), ("bool", True), ("string", "1"), ("null", None)):
        no_overload(f"{name}({kind})", function, value)


def test_abs_and_sign() -> None:
    for value, absolute, sign in (
        (-3, 3, -1),
        (0, 0, 0),
        (INT_MAX, INT_MAX, 1),
        (Uint(7), Uint(7), Uint(1)),
        (Uint(0), Uint(0), Uint(0)),
        (-1.5, 1.5, -1.0),
        (-0.0, 0.0, 0.0),
        (-math.inf, math.inf, -1.0),
        (math.nan, math.nan, math.nan),
    ):
        gives(absolute, numbers.math_abs(value))
        gives(sign, numbers.math_sign(value))
    fails("integer overflow", numbers.math_abs, INT_MIN)
    gives(-1, numbers.math_sign(INT_MIN))
    no_overload("math.abs(bool)", numbers.math_abs, True)
    no_overload("math.abs(string)", numbers.math_abs, "1")
    no_overload("math.sign(bool)", numbers.math_sign, False)
    no_overload("math.sign(null)", numbers.math_sign, None)


def test_square_root() -> None:
    gives(9.0, numbers.math_sqrt(81))
    gives(3.0, numbers.math_sqrt(Uint(9)))
    gives(1.5, numbers.math_sqrt(2.25))
    gives(math.nan, numbers.math_sqrt(-1))
    gives(math.nan, numbers.math_sqrt(math.nan))
    gives(math.inf, numbers.math_sqrt(math.inf))
    no_overload("math.sqrt(bool)", numbers.math_sqrt, True)
    no_overload("math.sqrt(string)", numbers.math_sqrt, "4")


def test_kinds_of_doubles() -> None:
    for value, nan, infinite, finite in (
        (1.0, False, False, True),
        (math.nan, True, False, False),
        (-math.inf, False, True, False),
    ):
        assert numbers.math_is_nan(value) is nan
        assert numbers.math_is_inf(value) is infinite
        assert numbers.math_is_finite(value) is finite


def test_bits() -> None:
    gives(8, numbers.math_bit_and(12, 10))
    gives(Uint(8), numbers.math_bit_and(Uint(12), Uint(10)))
    gives(-8, numbers.math_bit_and(-3, -6))
    gives(14, numbers.math_bit_or(12, 10))
    gives(Uint(14), numbers.math_bit_or(Uint(12), Uint(10)))
    gives(-1, numbers.math_bit_or(INT_MIN, INT_MAX))
    gives(6, numbers.math_bit_xor(12, 10))
    gives(Uint(UINT_MAX), numbers.math_bit_xor(Uint(UINT_MAX), Uint(0)))
    gives(INT_MIN, numbers.math_bit_not(INT_MAX))
    gives(Uint(UINT_MAX - 5), numbers.math_bit_not(Uint(5)))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("math.bitAnd", numbers.math_bit_and),
        ("math.bitOr", numbers.math_bit_or),
        ("math.bitXor", numbers.math_bit_xor),
    ],
)
def test_bits_of_one_type_of_integer(name: str, function: Callable[..., Any]) -> None:
    no_overload(f"{name}(int, uint)", function, 1, Uint(1))
    no_overload(f"{name}(double, double)", function, 1.0, 1.0)
    no_overload(f"{name}(bool, bool)", function, True, True)
    no_overload("math.bitNot(bool)", numbers.math_bit_not, True)
    no_overload("math.bitNot(double)", numbers.math_bit_not, 1.0)


@pytest.mark.parametrize(
    ("value", "bits", "left", "right"),
    [
        (5, 0, 5, 5),
        (5, 1, 10, 2),
        (-1, 1, -2, INT_MAX),
        (-1, 0, -1, -1),
        (1, 63, INT_MIN, 0),
        (3, 63, INT_MIN, 0),
        (INT_MIN, 63, 0, 1),
        (1, 64, 0, 0),
        (-1, 64, 0, 0),
        (-1, INT_MAX, 0, 0),
        (Uint(UINT_MAX), 4, Uint(UINT_MAX - 15), Uint(UINT_MAX >> 4)),
        (Uint(1), 64, Uint(0), Uint(0)),
    ],
)
def test_shifts(value: Any, bits: int, left: Any, right: Any) -> None:
    """64 bits, without overflow; from the left come zeros, whatever the sign."""
    gives(left, numbers.math_bit_shift_left(value, bits))
    gives(right, numbers.math_bit_shift_right(value, bits))


@pytest.mark.parametrize(
    ("name", "function"),
    [("math.bitShiftLeft", numbers.math_bit_shift_left), ("math.bitShiftRight", numbers.math_bit_shift_right)],
)
def test_errors_of_shifts(name: str, function: Callable[..., Any]) -> None:
    fails(f"{name} by a negative number of bits", function, 1, -1)
    no_overload(f"{name}(int, uint)", function, 1, Uint(1))
    no_overload(f"{name}(double, int)", function, 1.0, 1)
    no_overload(f"{name}(int, bool)", function, 1, True)
