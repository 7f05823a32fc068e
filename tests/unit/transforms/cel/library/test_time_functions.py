"""timestamp(), duration(), and the getters, in UTC and elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transforms.cel.library.checks import fails, no_overload
from transforms.cel.library import time_functions as functions
from transforms.cel.library.times import SECOND, Duration, Timestamp
from transforms.cel.library.zones import day_of
from transforms.cel.values import Uint

if TYPE_CHECKING:
    from collections.abc import Callable

NO_ZONE = "not a time zone, expected for example Europe/Paris or +01:00"
DATES = (
    functions.get_full_year,
    functions.get_month,
    functions.get_date,
    functions.get_day_of_month,
    functions.get_day_of_week,
    functions.get_day_of_year,
)
CLOCK = (functions.get_hours, functions.get_minutes, functions.get_seconds, functions.get_milliseconds)


def _at(text: str) -> Timestamp:
    return functions.to_timestamp(text)


def _date(text: str, *zone: str) -> tuple[int, ...]:
    """Year, month from 0, day from 1, day from 0, day of the week from Sunday, day of the year from 0."""
    return tuple(getter(_at(text), *zone) for getter in DATES)


def _clock(value: Timestamp | Duration, *zone: str) -> tuple[int, ...]:
    return tuple(getter(value, *zone) for getter in CLOCK)


def test_timestamp() -> None:
    assert functions.to_timestamp("1970-01-01T00:00:01Z") == Timestamp(SECOND)
    assert functions.to_timestamp(-3) == Timestamp(-3 * SECOND)
    assert functions.to_timestamp(Timestamp(7)) == Timestamp(7)
    fails("timestamp overflow: not within the years 1 to 9999", functions.to_timestamp, 2**62)
    for call, value in (("uint", Uint(1)), ("bool", True), ("double", 1.0), ("null", None), ("duration", Duration(1))):
        no_overload(f"timestamp({call})", functions.to_timestamp, value)


def test_duration() -> None:
    assert functions.to_duration("1m") == Duration(60 * SECOND)
    assert functions.to_duration(Duration(7)) == Duration(7)
    for call, value in (("int", 1), ("timestamp", Timestamp(1)), ("null", None)):
        no_overload(f"duration({call})", functions.to_duration, value)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("1970-01-01T00:00:00Z", (), (1970, 0, 1, 0, 4, 0)),
        ("2024-12-31T23:59:59.999Z", (), (2024, 11, 31, 30, 2, 365)),
        ("2024-03-03T12:00:00Z", ("UTC",), (2024, 2, 3, 2, 0, 62)),
        ("2024-12-31T23:30:00Z", ("Europe/Paris",), (2025, 0, 1, 0, 3, 0)),
        ("2024-12-31T23:30:00Z", ("+00:30",), (2025, 0, 1, 0, 3, 0)),
        ("2025-01-01T00:30:00Z", ("America/New_York",), (2024, 11, 31, 30, 2, 365)),
        ("2025-01-01T00:30:00Z", ("-00:31",), (2024, 11, 31, 30, 2, 365)),
        ("0001-01-01T00:00:00Z", (), (1, 0, 1, 0, 1, 0)),
        ("0001-01-01T00:00:00Z", ("-01:00",), (0, 11, 31, 30, 0, 365)),
        ("9999-12-31T23:59:59Z", (), (9999, 11, 31, 30, 5, 364)),
        ("9999-12-31T23:59:59Z", ("+01:00",), (10000, 0, 1, 0, 6, 0)),
        ("0001-01-01T00:00:00Z", ("America/New_York",), (0, 11, 31, 30, 0, 365)),
        ("9999-12-31T23:59:59Z", ("Asia/Tokyo",), (10000, 0, 1, 0, 6, 0)),
    ],
)
def test_dates(text: str, zone: tuple[str, ...], expected: tuple[int, ...]) -> None:
    """Also in the year 0, a leap year, and in the year 10000, which a zone shows of the first and the last timestamp."""
    assert expected == _date(text, *zone)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2024-07-01T12:34:56.789999Z", (), (12, 34, 56, 789)),
        ("2024-07-01T12:34:56.789Z", ("Europe/Paris",), (14, 34, 56, 789)),
        ("2024-01-01T12:34:56.789Z", ("Europe/Paris",), (13, 34, 56, 789)),
        ("2024-07-01T12:34:56Z", ("Asia/Kolkata",), (18, 4, 56, 0)),
        ("2024-07-01T12:34:56Z", ("-08:45",), (3, 49, 56, 0)),
        ("2024-07-01T12:34:56Z", ("05:30",), (18, 4, 56, 0)),
        ("1969-12-31T23:59:59.25Z", (), (23, 59, 59, 250)),
        ("2024-03-31T00:59:59Z", ("Europe/Paris",), (1, 59, 59, 0)),
        ("2024-03-31T01:00:00Z", ("Europe/Paris",), (3, 0, 0, 0)),
        ("2024-10-27T00:59:59Z", ("Europe/Paris",), (2, 59, 59, 0)),
        ("2024-10-27T01:00:00Z", ("Europe/Paris",), (2, 0, 0, 0)),
    ],
)
def test_clocks(text: str, zone: tuple[str, ...], expected: tuple[int, ...]) -> None:
    """Around the changes of summer time too."""
    assert expected == _clock(_at(text), *zone)


@pytest.mark.parametrize(
    ("nanoseconds", "expected"),
    [
        (0, (0, 0, 0, 0)),
        (3_723_456_789_012, (1, 62, 3_723, 456)),
        (-3_723_456_789_012, (-1, -62, -3_723, -456)),
        (-999_999, (0, 0, 0, 0)),
        (86_400 * SECOND, (24, 1_440, 86_400, 0)),
    ],
)
def test_durations(nanoseconds: int, expected: tuple[int, ...]) -> None:
    """In whole units, toward zero; the milliseconds are those beyond the seconds."""
    assert expected == _clock(Duration(nanoseconds))


@pytest.mark.parametrize("getter", [*DATES, *CLOCK])
def test_getters_check_their_arguments(getter: Callable[..., int]) -> None:
    words = getter.__name__.split("_")
    name = words[0] + "".join(word.title() for word in words[1:])
    no_overload(f"{name}(string)", getter, "2024-01-01T00:00:00Z")
    no_overload(f"{name}(timestamp, int)", getter, Timestamp(0), 1)
    no_overload(f"{name}(timestamp, null)", getter, Timestamp(0), None)
    no_overload(f"{name}(duration, string)", getter, Duration(0), "UTC")


@pytest.mark.parametrize("getter", DATES)
def test_dates_of_durations(getter: Callable[..., int]) -> None:
    with pytest.raises(Exception, match=r"^no such overload: get\w+\(duration\)$"):
        getter(Duration(1))


@pytest.mark.parametrize(
    "zone",
    [
        "",
        " ",
        "Nowhere/City",
        "../../etc/passwd",
        "/etc/localtime",
        "+24:00",
        "+01:60",
        "+1:00",
        "+0100",
        "UTC+1",
        "America",
        "a\0b",
        "\ud800",
        "x" * 5000,
    ],
)
def test_what_is_no_zone(zone: str) -> None:
    fails(NO_ZONE, functions.get_hours, Timestamp(0), zone)


@given(st.integers(-719_162 - 400, 2_932_896 + 400))
def test_days_beyond_the_calendar(days: int) -> None:
    """Each day is the day after the one before it, in the years 0 and 10000 too."""
    day, years = day_of(days)
    after, years_after = day_of(days + 1)
    assert (after.isoweekday() - day.isoweekday()) % 7 == 1
    same_month = (after.year + years_after, after.month, after.day) == (day.year + years, day.month, day.day + 1)
    assert same_month or (after.day == 1 and day.day >= 28)
