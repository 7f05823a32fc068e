"""The extension `sets`, and the lookup behind it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.transforms.cel.library.checks import no_overload
from transforms.cel.library.members import Members
from transforms.cel.library.sets import sets_contains, sets_equivalent, sets_intersects
from transforms.cel.library.times import Duration, Timestamp
from transforms.cel.values import NONE, CelType, Optional, Uint

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("left", "right", "contains", "equivalent", "intersects"),
    [
        ([], [], True, True, False),
        ([1], [], True, False, False),
        ([], [1], False, False, False),
        ([1, 2, 3], [3, 1, 1], True, False, True),
        ([1, 1, 2], [2, 1], True, True, True),
        ([1, 2], [2, 3], False, False, True),
        ([1, 2], [Uint(2), 1.0], True, True, True),
        ([1], [True], False, False, False),
        ([None, "a", b"a"], [b"a", None], True, False, True),
        ([[1, {"a": 2}]], [[1.0, {"a": Uint(2)}]], True, True, True),
        ([Timestamp(1)], [Duration(1)], False, False, False),
        ([math.nan], [math.nan], False, False, False),
        ([2**53 + 1], [2.0**53], True, True, True),
        ([2**53 + 1, Uint(2**53 + 1)], [2**53 + 1], True, True, True),
        ([2**53 + 1], [2**53], False, False, False),
        ([Uint(2**63), 2**53], [2.0**53, 2.0**63], True, True, True),
    ],
)
def test_sets(left: list[Any], right: list[Any], contains: bool, equivalent: bool, intersects: bool) -> None:  # noqa: FBT001
    assert sets_contains(left, right) is contains
    assert sets_equivalent(left, right) is equivalent
    assert sets_equivalent(right, left) is equivalent
    assert sets_intersects(left, right) is intersects
    assert sets_intersects(right, left) is intersects


@pytest.mark.parametrize(
    ("name", "function"),
    [("sets.contains", sets_contains), ("sets.equivalent", sets_equivalent), ("sets.intersects", sets_intersects)],
)
def test_types_of_arguments(name: str, function: Callable[[Any, Any], bool]) -> None:
    no_overload(f"{name}(list, int)", function, [1], 1)
    no_overload(f"{name}(string, list)", function, "a", ["a"])
    no_overload(f"{name}(map, map)", function, {}, {})


def test_members() -> None:
    """add() says whether the value is new; types without a hash of their own are compared."""
    members = Members([1, Optional([1]), CelType("int")])
    assert Uint(1) in members
    assert True not in members
    assert Optional([1.0]) in members
    assert NONE not in members
    assert CelType("int") in members
    assert members.add(NONE)
    assert not members.add(NONE)
    assert not members.add(1.0)
    assert members.add([1])
    assert not members.add([Uint(1)])
    assert members.add(math.nan)
    assert members.add(math.nan)
