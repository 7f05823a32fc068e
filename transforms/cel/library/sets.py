"""The extension `sets` of cel-go: lists as sets. How often an item occurs, and where, says nothing."""

from __future__ import annotations

from typing import Any

from transforms.cel.library.members import Members
from transforms.cel.runtime import no_overload


def _check(function: str, left: Any, right: Any) -> None:
    if type(left) is not list or type(right) is not list:
        raise no_overload(function, left, right)


def sets_contains(items: Any, part: Any) -> bool:
    """Whether every item of `part` is in `items`."""
    _check("sets.contains", items, part)
    return _contains(items, part)


def sets_equivalent(left: Any, right: Any) -> bool:
    """Whether each contains the other."""
    _check("sets.equivalent", left, right)
    return _contains(left, right) and _contains(right, left)


def sets_intersects(left: Any, right: Any) -> bool:
    """Whether any item is in both."""
    _check("sets.intersects", left, right)
    members = Members(left)
    return any(item in members for item in right)


def _contains(items: list[Any], part: list[Any]) -> bool:
    members = Members(items)
    return all(item in members for item in part)
