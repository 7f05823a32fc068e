"""What the compiler knows of the library: the names in CEL, and the Python functions under their names in generated code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transforms.cel.functions import MANY, Function
from transforms.cel.library import encoders, formatting, lists, numbers, regexes, sets, strings, time_functions

if TYPE_CHECKING:
    from collections.abc import Callable


def _method(runtime: str, result: str, arity: int, most: int | None = None) -> Function:
    return Function(runtime, result, arity, most, method=True)


def _plain(runtime: str, result: str, arity: int, most: int | None = None) -> Function:
    return Function(runtime, result, arity, most, plain=True)


_TIMES = {
    "timestamp": _plain("to_timestamp", "timestamp", 1),
    "duration": _plain("to_duration", "duration", 1),
    "getFullYear": _method("get_full_year", "int", 1, 2),
    "getMonth": _method("get_month", "int", 1, 2),
    "getDate": _method("get_date", "int", 1, 2),
    "getDayOfMonth": _method("get_day_of_month", "int", 1, 2),
    "getDayOfWeek": _method("get_day_of_week", "int", 1, 2),
    "getDayOfYear": _method("get_day_of_year", "int", 1, 2),
    "getHours": _method("get_hours", "int", 1, 2),
    "getMinutes": _method("get_minutes", "int", 1, 2),
    "getSeconds": _method("get_seconds", "int", 1, 2),
    "getMilliseconds": _method("get_milliseconds", "int", 1, 2),
}
_STRINGS = {
    "charAt": _method("char_at", "string", 2),
    "indexOf": _method("index_of", "int", 2, 3),
    "lastIndexOf": _method("last_index_of", "int", 2, 3),
    "substring": _method("substring", "string", 2, 3),
    "replace": _method("replace", "string", 3, 4),
    "split": _method("split", "list", 2, 3),
    "join": _method("join", "string", 1, 2),
    "lowerAscii": _method("lower_ascii", "string", 1),
    "upperAscii": _method("upper_ascii", "string", 1),
    "trim": _method("trim", "string", 1),
    "format": _method("string_format", "string", 2),
    "strings.quote": _plain("strings_quote", "string", 1),
}
_MATH = {
    "math.greatest": _plain("math_greatest", "dyn", 1, MANY),
    "math.least": _plain("math_least", "dyn", 1, MANY),
    "math.ceil": _plain("math_ceil", "double", 1),
    "math.floor": _plain("math_floor", "double", 1),
    "math.round": _plain("math_round", "double", 1),
    "math.trunc": _plain("math_trunc", "double", 1),
    "math.abs": _plain("math_abs", "dyn", 1),
    "math.sign": _plain("math_sign", "dyn", 1),
    "math.sqrt": _plain("math_sqrt", "double", 1),
    "math.isNaN": _plain("math_is_nan", "bool", 1),
    "math.isInf": _plain("math_is_inf", "bool", 1),
    "math.isFinite": _plain("math_is_finite", "bool", 1),
    "math.bitAnd": _plain("math_bit_and", "dyn", 2),
    "math.bitOr": _plain("math_bit_or", "dyn", 2),
    "math.bitXor": _plain("math_bit_xor", "dyn", 2),
    "math.bitNot": _plain("math_bit_not", "dyn", 1),
    "math.bitShiftLeft": _plain("math_bit_shift_left", "dyn", 2),
    "math.bitShiftRight": _plain("math_bit_shift_right", "dyn", 2),
}
_LISTS = {
    "slice": _method("slice_", "list", 3),
    "flatten": _method("flatten", "list", 1, 2),
    "distinct": _method("distinct", "list", 1),
    "sort": _method("sort", "list", 1),
    "reverse": _method("reverse", "dyn", 1),
    "first": _method("first", "optional", 1),
    "last": _method("last", "optional", 1),
    "lists.range": _plain("lists_range", "list", 1),
    "sets.contains": _plain("sets_contains", "bool", 2),
    "sets.equivalent": _plain("sets_equivalent", "bool", 2),
    "sets.intersects": _plain("sets_intersects", "bool", 2),
}
_MORE = {
    "base64.encode": _plain("base64_encode", "string", 1),
    "base64.decode": _plain("base64_decode", "bytes", 1),
    "regex.replace": _plain("regex_replace", "string", 3, 4),
    "regex.extract": _plain("regex_extract", "optional", 2),
    "regex.extractAll": _plain("regex_extract_all", "list", 2),
}
FUNCTIONS: dict[str, Function] = _TIMES | _STRINGS | _MATH | _LISTS | _MORE
"""Name in CEL -> what the parser and the writers know of it."""

_HOMES = (time_functions, strings, formatting, numbers, lists, sets, encoders, regexes)


def _find(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = next(getattr(home, name) for home in _HOMES if hasattr(home, name))
    return found


OPERATIONS: dict[str, Callable[..., Any]] = {
    name: _find(name) for name in ("sort_by", *(function.runtime for function in FUNCTIONS.values()))
}
"""Name in generated code -> Python function. `sort_by(list, keys)` is what the macro sortBy() calls."""
