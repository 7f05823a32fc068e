"""The extension `lists` of cel-go; first() and last(), which its optional types bring; and reverse(), which strings have too."""

from __future__ import annotations

from typing import Any

from transforms.cel.library.limits import check_items
from transforms.cel.library.members import Members
from transforms.cel.library.times import TIMES
from transforms.cel.runtime import SCALARS, no_overload, type_name
from transforms.cel.values import NONE, Optional
from transforms.errors import CelError

_SORTED = SCALARS | TIMES


def slice_(items: Any, start: Any, end: Any) -> list[Any]:
    """From `start`, up to `end`, which is not in it."""
    if type(items) is not list or type(start) is not int or type(end) is not int:
        raise no_overload("slice", items, start, end)
    if not 0 <= start <= end <= len(items):
        raise CelError("slice: expected 0 <= start <= end <= the size of the list")
    return items[start:end]


def flatten(items: Any, *depth: Any) -> list[Any]:
    """Lists in the list are replaced by their items, `depth` times, or once."""
    if type(items) is not list or (depth and type(depth[0]) is not int):
        raise no_overload("flatten", items, *depth)
    levels = depth[0] if depth else 1
    if levels < 0:
        raise CelError("flatten: the depth is negative")
    flat = list(items)
    while levels > 0 and any(type(item) is list for item in flat):
        check_items("flatten", sum(len(item) if type(item) is list else 1 for item in flat))
        flat = [inner for item in flat for inner in (item if type(item) is list else (item,))]
        levels -= 1
    return flat


def distinct(items: Any) -> list[Any]:
    """The first of those that are equal, in the order of the list."""
    if type(items) is not list:
        raise no_overload("distinct", items)
    members = Members()
    return [item for item in items if members.add(item)]


def sort(items: Any) -> list[Any]:
    """Ascending. All items have the same type, one that has an order."""
    if type(items) is not list:
        raise no_overload("sort", items)
    _check_sortable("sort", items)
    return sorted(items)


def sort_by(items: Any, keys: list[Any]) -> list[Any]:
    """Ascending by the keys, one for each item; items with equal keys stay in their order. The macro sortBy() calls it."""
    if type(items) is not list:
        raise no_overload("sortBy", items)
    _check_sortable("sortBy", keys)
    return [items[place] for place in sorted(range(len(items)), key=keys.__getitem__)]


def _check_sortable(function: str, keys: list[Any]) -> None:
    kinds = set(map(type, keys))
    if len(kinds) > 1:
        raise CelError(f"no such overload: {function} of a list of several types")
    if not kinds <= _SORTED:
        raise CelError(f"no such overload: {function} of a list of {type_name(keys[0])}")
    if kinds == {float} and len(keys) > 1 and any(key != key for key in keys):  # noqa: PLR0124 - NaN
        raise CelError(f"{function}: NaN has no order")


def lists_range(count: Any) -> list[int]:
    """0, 1, ... `count` - 1; nothing for a negative count."""
    if type(count) is not int:
        raise no_overload("lists.range", count)
    check_items("lists.range", count)
    return list(range(count))


def reverse(value: Any) -> Any:
    """A list, or a string by its code points."""
    if type(value) is not list and type(value) is not str:
        raise no_overload("reverse", value)
    return value[::-1]


def first(items: Any) -> Optional:
    if type(items) is not list:
        raise no_overload("first", items)
    return Optional(items[0]) if items else NONE


def last(items: Any) -> Optional:
    if type(items) is not list:
        raise no_overload("last", items)
    return Optional(items[-1]) if items else NONE
