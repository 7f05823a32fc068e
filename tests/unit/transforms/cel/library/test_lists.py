"""The extension `lists`, first(), last() and reverse()."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transforms.cel.library.checks import fails, gives, no_overload
from transforms.cel.library import lists
from transforms.cel.library.limits import MOST_ITEMS
from transforms.cel.library.times import Duration, Timestamp
from transforms.cel.runtime import eq
from transforms.cel.values import NONE, Uint

if TYPE_CHECKING:
    from collections.abc import Callable

NAN = math.nan


def test_slice() -> None:
    items = [1, "b", None]
    gives(["b", None], lists.slice_(items, 1, 3))
    gives([], lists.slice_(items, 3, 3))
    gives([1, "b", None], lists.slice_(items, 0, 3))
    for start, end in ((-1, 2), (0, 4), (2, 1), (0, -1), (4, 4)):
        fails("slice: expected 0 <= start <= end <= the size of the list", lists.slice_, items, start, end)
    no_overload("slice(string, int, int)", lists.slice_, "abc", 0, 1)
    no_overload("slice(list, uint, int)", lists.slice_, items, Uint(0), 1)
    no_overload("slice(list, int, bool)", lists.slice_, items, 0, True)


@pytest.mark.parametrize(
    ("items", "depth", "expected"),
    [
        ([], (), []),
        ([1, "ab", [2], []], (), [1, "ab", 2]),
        ([1, [2, [3, [4]]]], (), [1, 2, [3, [4]]]),
        ([1, [2, [3, [4]]]], (0,), [1, [2, [3, [4]]]]),
        ([1, [2, [3, [4]]]], (1,), [1, 2, [3, [4]]]),
        ([1, [2, [3, [4]]]], (2,), [1, 2, 3, [4]]),
        ([1, [2, [3, [4]]]], (2**63 - 1,), [1, 2, 3, 4]),
        ([{"a": [1]}, [None]], (9,), [{"a": [1]}, None]),
    ],
)
def test_flatten(items: list[Any], depth: tuple[int, ...], expected: list[Any]) -> None:
    gives(expected, lists.flatten(items, *depth))


def test_flatten_leaves_its_argument_alone() -> None:
    items: list[Any] = [1, [2]]
    assert lists.flatten(items, 0) is not items
    lists.flatten(items)
    assert items == [1, [2]]


def test_errors_of_flatten() -> None:
    fails("flatten: the depth is negative", lists.flatten, [1], -1)
    no_overload("flatten(map)", lists.flatten, {})
    no_overload("flatten(list, double)", lists.flatten, [], 1.0)
    many = [0] * 1000
    fails(f"flatten: the result would be longer than {MOST_ITEMS} items", lists.flatten, [many] * 1001)


def test_flatten_of_deep_lists() -> None:
    """Deeper than Python's stack, without recursion."""
    deep: list[Any] = [1]
    for _ in range(20_000):
        deep = [deep]
    assert lists.flatten(deep, 20_000) == [1]


def test_distinct() -> None:
    """By the equality of CEL: 1, 1u and 1.0 are one, true is another, and NaN is never equal to anything."""
    gives([1, True, "1", b"1", None], lists.distinct([1, Uint(1), True, 1.0, "1", b"1", None, True, None]))
    gives([0.0, False], lists.distinct([0.0, False, 0, -0.0]))
    gives([NAN, NAN], lists.distinct([NAN, NAN]))
    gives([[1], [True], {"a": 1}], lists.distinct([[1], [1.0], [True], {"a": 1}, {"a": Uint(1)}]))
    gives([Timestamp(1), Duration(1)], lists.distinct([Timestamp(1), Duration(1), Timestamp(1), Duration(1)]))
    no_overload("distinct(string)", lists.distinct, "aa")


def test_sort() -> None:
    gives([-1, 2, 3], lists.sort([3, -1, 2]))
    gives(["B", "a", "b"], lists.sort(["b", "a", "B"]))
    gives([False, True], lists.sort([True, False]))
    gives([b"\x00", b"a"], lists.sort([b"a", b"\x00"]))
    gives([-math.inf, 0.5, math.inf], lists.sort([math.inf, 0.5, -math.inf]))
    gives([Uint(1), Uint(2)], lists.sort([Uint(2), Uint(1)]))
    gives([Timestamp(1), Timestamp(2)], lists.sort([Timestamp(2), Timestamp(1)]))
    gives([Duration(-1), Duration(2)], lists.sort([Duration(2), Duration(-1)]))
    gives([NAN], lists.sort([NAN]))
    gives([], lists.sort([]))


def test_sort_leaves_its_argument_alone() -> None:
    items = [2, 1]
    lists.sort(items)
    assert items == [2, 1]


def test_errors_of_sort() -> None:
    no_overload("sort of a list of several types", lists.sort, [1, "a"])
    no_overload("sort of a list of several types", lists.sort, [1, 2.0])
    no_overload("sort of a list of several types", lists.sort, [1, Uint(2)])
    no_overload("sort of a list of several types", lists.sort, [1, True])
    no_overload("sort of a list of null", lists.sort, [None])
    no_overload("sort of a list of list", lists.sort, [[1, 2]])
    no_overload("sort of a list of map", lists.sort, [{}])
    fails("sort: NaN has no order", lists.sort, [1.0, NAN])
    no_overload("sort(map)", lists.sort, {"b": 1})


def test_sort_by() -> None:
    """Items of any type, by keys of one; equal keys keep the order."""
    gives([{"n": 1}, "b", None], lists.sort_by(["b", {"n": 1}, None], [2, 1, 3]))
    gives(["x", "z", "y"], lists.sort_by(["x", "y", "z"], [1, 2, 1]))
    gives([], lists.sort_by([], []))
    no_overload("sortBy of a list of several types", lists.sort_by, [1, 2], [1, "a"])
    no_overload("sortBy of a list of null", lists.sort_by, [1, 2], [None, None])
    fails("sortBy: NaN has no order", lists.sort_by, [1, 2], [NAN, 1.0])
    no_overload("sortBy(string)", lists.sort_by, "ab", [1, 2])


def test_range() -> None:
    gives([0, 1, 2], lists.lists_range(3))
    gives([], lists.lists_range(0))
    gives([], lists.lists_range(-5))
    assert len(lists.lists_range(MOST_ITEMS)) == MOST_ITEMS
    fails(f"lists.range: the result would be longer than {MOST_ITEMS} items", lists.lists_range, MOST_ITEMS + 1)
    no_overload("lists.range(uint)", lists.lists_range, Uint(3))
    no_overload("lists.range(bool)", lists.lists_range, True)


def test_reverse() -> None:
    gives([3, "b", None], lists.reverse([None, "b", 3]))
    gives("🗻ba", lists.reverse("ab🗻"))
    gives([], lists.reverse([]))
    gives("", lists.reverse(""))
    no_overload("reverse(bytes)", lists.reverse, b"ab")
    no_overload("reverse(map)", lists.reverse, {})


@pytest.mark.parametrize(("name", "function", "expected"), [("first", lists.first, 1), ("last", lists.last, None)])
def test_first_and_last(name: str, function: Callable[[Any], Any], expected: Any) -> None:
    """An optional, which has a value if the list has one, null included."""
    gives(expected, function([1, "b", None]).value)
    assert function([1, "b", None]) is not NONE
    assert function([]) is NONE
    no_overload(f"{name}(string)", function, "abc")


_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 2),
        st.integers(0, 2).map(Uint),
        st.sampled_from([0.0, 1.0, NAN, "a", b"a"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
    max_leaves=4,
)


@given(st.lists(_VALUES, max_size=8))
def test_distinct_agrees_with_the_equality_of_the_runtime(items: list[Any]) -> None:
    expected: list[Any] = []
    for item in items:
        if not any(eq(item, other) for other in expected):
            expected.append(item)
    gives(expected, lists.distinct(items))
