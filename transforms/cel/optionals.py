"""Functions of optional values (cel-go's extension `optional`); `?.` and `[?]` are in containers.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transforms.cel.functions import Function
from transforms.cel.library.times import Duration
from transforms.cel.runtime import no_overload
from transforms.cel.values import NONE, Optional
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTIONS = {
    "optional.of": Function("Optional", "optional", 1, plain=True),
    "optional.ofNonZeroValue": Function("of_non_zero_value", "optional", 1, plain=True),
    "optional.none": Function("none", "optional", 0, plain=True),
    "optional.unwrap": Function("unwrap", "list", 1, plain=True),
    "unwrapOpt": Function("unwrap", "list", 1, method=True),
    "hasValue": Function("has_value", "bool", 1, method=True),
    "value": Function("value_of", "dyn", 1, method=True),
    "or": Function("or_optional", "optional", 2, method=True),
    "orValue": Function("or_value", "dyn", 2, method=True),
}
LAZY = frozenset({"or", "orValue"})
"""Their last argument is evaluated only where it is needed."""


def none() -> Optional:
    return NONE


def of_non_zero_value(value: Any) -> Optional:
    """None for null, false, zero, and what is empty."""
    zero = value is None or (type(value) is Duration and value.nanoseconds == 0) or value is NONE
    if not zero and type(value) in (bool, int, float, str, bytes, list, dict):
        zero = not value
    return NONE if zero else Optional(value)


def _checked(function: str, value: Any) -> Optional:
    if type(value) is not Optional:
        raise no_overload(function, value)
    return value


def has_value(value: Any) -> bool:
    return _checked("hasValue", value) is not NONE


def value_of(value: Any) -> Any:
    if _checked("value", value) is NONE:
        raise CelError("the optional has no value")
    return value.value


def or_optional(value: Any, other: Callable[[], Any]) -> Optional:
    return _checked("or", other()) if _checked("or", value) is NONE else value


def or_value(value: Any, other: Callable[[], Any]) -> Any:
    return other() if _checked("orValue", value) is NONE else value.value


def unwrap(values: Any) -> list[Any]:
    """The values of those optionals of a list that have one."""
    if type(values) is not list:
        raise no_overload("unwrap", values)
    return [value.value for value in values if _checked("unwrap", value) is not NONE]


def opt_map(value: Any, function: Callable[[Any], Any]) -> Optional:
    return NONE if _checked("optMap", value) is NONE else Optional(function(value.value))


def opt_flat_map(value: Any, function: Callable[[Any], Any]) -> Optional:
    return NONE if _checked("optFlatMap", value) is NONE else _checked("optFlatMap", function(value.value))
