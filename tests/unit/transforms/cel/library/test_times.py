"""Timestamps and durations: the text forms, the ranges, the operators."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transforms.cel.library.checks import fails
from transforms.cel.library.time_operators import add_time, subtract_time, time_to_int, time_to_string
from transforms.cel.library.time_text import duration_text, parse_duration, parse_timestamp, timestamp_text
from transforms.cel.library.times import SECOND, Duration, Timestamp, duration_of, timestamp_of
from transforms.cel.runtime import eq, lt

FIRST = -62_135_596_800 * SECOND
LAST = 253_402_300_800 * SECOND - 1
INT_MIN, INT_MAX = -(2**63), 2**63 - 1

BAD_TIMESTAMP = "the string is not a timestamp of RFC 3339, expected for example 2009-02-13T23:31:30.5Z"
BAD_DURATION = "the string is not a duration, expected for example 1h30m, 1.5s or 250ms"
TIMESTAMP_OVERFLOW = "timestamp overflow: not within the years 1 to 9999"
DURATION_OVERFLOW = "duration overflow: more than 2^63 nanoseconds, which are 292 years"


def test_they_are_values() -> None:
    """Immutable, hashable by value, and never equal to a number or to each other."""
    assert {Timestamp(1), Timestamp(1), Duration(1)} == {Timestamp(1), Duration(1)}
    assert not eq(Timestamp(1), Duration(1))
    assert not eq(Timestamp(1), 1)
    with pytest.raises(FrozenInstanceError):
        Timestamp(1).nanoseconds = 2  # type: ignore[misc]
    assert not hasattr(Timestamp(1), "__dict__")


def test_they_are_ordered_among_themselves() -> None:
    assert lt(Timestamp(1), Timestamp(2))
    assert not lt(Duration(2), Duration(2))
    fails("no such overload: timestamp < duration", lt, Timestamp(1), Duration(2))
    fails("no such overload: duration < int", lt, Duration(1), 2)


def test_ranges() -> None:
    assert timestamp_of(FIRST) == Timestamp(FIRST)
    assert timestamp_of(LAST) == Timestamp(LAST)
    fails(TIMESTAMP_OVERFLOW, timestamp_of, FIRST - 1)
    fails(TIMESTAMP_OVERFLOW, timestamp_of, LAST + 1)
    assert duration_of(INT_MIN) == Duration(INT_MIN)
    assert duration_of(INT_MAX) == Duration(INT_MAX)
    fails(DURATION_OVERFLOW, duration_of, INT_MIN - 1)
    fails(DURATION_OVERFLOW, duration_of, INT_MAX + 1)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", SECOND),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1970-01-01T00:00:00.5Z", SECOND // 2),
        ("1970-01-01T00:00:00.1234567899Z", 123_456_789),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T18:30:00-05:30", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("2000-02-29T00:00:00Z", 951_782_400 * SECOND),
        ("0001-01-01T00:00:00Z", FIRST),
        ("9999-12-31T23:59:59.999999999Z", LAST),
        ("0001-01-01T01:00:00+01:00", FIRST),
    ],
)
def test_timestamps_are_read(text: str, nanoseconds: int) -> None:
    assert Timestamp(nanoseconds) == parse_timestamp(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2020-01-01",
        "2020-01-01T00:00:00",
        "2020-01-01 00:00:00Z",
        "2020-01-01T00:00Z",
        "2020-01-01T00:00:00.Z",
        "2020-01-01T00:00:00,5Z",
        "2020-01-01T00:00:00+0100",
        "2020-01-01T00:00:00+24:00",
        "2020-01-01T00:00:00+01:60",
        "2020-13-01T00:00:00Z",
        "2021-02-29T00:00:00Z",
        "2020-01-01T24:00:00Z",
        "2020-01-01T00:60:00Z",
        "2016-12-31T23:59:60Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "2020-01-01T00:00:00Z\n",
        " 2020-01-01T00:00:00Z",
        "٢٠٢٠-01-01T00:00:00Z",
    ],
)
def test_what_is_no_timestamp(text: str) -> None:
    fails(BAD_TIMESTAMP, parse_timestamp, text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"])
def test_timestamps_beyond_the_range_in_utc(text: str) -> None:
    fails(TIMESTAMP_OVERFLOW, parse_timestamp, text)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (500_000_000, "1970-01-01T00:00:00.5Z"),
        (1, "1970-01-01T00:00:00.000000001Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (FIRST, "0001-01-01T00:00:00Z"),
        (LAST, "9999-12-31T23:59:59.999999999Z"),
    ],
)
def test_timestamps_are_written(nanoseconds: int, text: str) -> None:
    assert text == timestamp_text(Timestamp(nanoseconds))


@given(st.integers(FIRST, LAST))
def test_timestamps_come_back(nanoseconds: int) -> None:
    """Written and read again, each is what it was; and Python's datetime agrees to the microsecond."""
    text = timestamp_text(Timestamp(nanoseconds))
    assert parse_timestamp(text) == Timestamp(nanoseconds)
    seconds = (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    assert nanoseconds / SECOND == pytest.approx(seconds, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("1ns", 1),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("1μs", 1_000),
        ("1ms", 1_000_000),
        ("1m", 60 * SECOND),
        ("1h2m3.5s", 3_723_500_000_000),
        ("3s1h", 3_603 * SECOND),
        ("1s1s", 2 * SECOND),
        ("-1.5h", -5_400 * SECOND),
        ("+2s", 2 * SECOND),
        (".5s", SECOND // 2),
        ("5.s", 5 * SECOND),
        ("1.0000000009s", SECOND),
        ("-1.0000000009s", -SECOND),
        ("9223372036854775807ns", INT_MAX),
        ("-9223372036854775808ns", INT_MIN),
        ("00000000000000000000000000001s", SECOND),
    ],
)
def test_durations_are_read(text: str, nanoseconds: int) -> None:
    assert Duration(nanoseconds) == parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "+",
        "1",
        "00",
        "s",
        ".s",
        "1d",
        "1 s",
        " 1s",
        "1s ",
        "1s\n",
        "1h-1m",
        "--1s",
        "1e3s",
        "1S",
        "٢s",
        "1" * 9000 + "s",
    ],
)
def test_what_is_no_duration(text: str) -> None:
    fails(BAD_DURATION, parse_duration, text)


@pytest.mark.parametrize("text", ["9223372036854775808ns", "-9223372036854775809ns", "2562048h", "9" * 200 + "h"])
def test_durations_beyond_the_range(text: str) -> None:
    fails(DURATION_OVERFLOW, parse_duration, text)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (90 * SECOND, "90s"),
        (60_001_000_000, "60.001s"),
        (-1, "-0.000000001s"),
        (-1_500_000_000, "-1.5s"),
        (INT_MAX, "9223372036.854775807s"),
        (INT_MIN, "-9223372036.854775808s"),
    ],
)
def test_durations_are_written(nanoseconds: int, text: str) -> None:
    assert text == duration_text(Duration(nanoseconds))


@given(st.integers(INT_MIN, INT_MAX))
def test_durations_come_back(nanoseconds: int) -> None:
    assert parse_duration(duration_text(Duration(nanoseconds))) == Duration(nanoseconds)


def test_addition() -> None:
    assert add_time(Timestamp(5), Duration(-7)) == Timestamp(-2)
    assert add_time(Duration(7), Timestamp(5)) == Timestamp(12)
    assert add_time(Duration(7), Duration(5)) == Duration(12)
    fails(TIMESTAMP_OVERFLOW, add_time, Timestamp(LAST), Duration(1))
    fails(TIMESTAMP_OVERFLOW, add_time, Duration(-1), Timestamp(FIRST))
    fails(DURATION_OVERFLOW, add_time, Duration(INT_MAX), Duration(1))


def test_subtraction() -> None:
    assert subtract_time(Timestamp(5), Timestamp(7)) == Duration(-2)
    assert subtract_time(Timestamp(5), Duration(7)) == Timestamp(-2)
    assert subtract_time(Duration(5), Duration(7)) == Duration(-2)
    fails(DURATION_OVERFLOW, subtract_time, Timestamp(LAST), Timestamp(FIRST))
    fails(TIMESTAMP_OVERFLOW, subtract_time, Timestamp(FIRST), Duration(1))
    fails(DURATION_OVERFLOW, subtract_time, Duration(0), Duration(INT_MIN))


def test_what_is_no_operation_on_times() -> None:
    """The answer is None, and the operator says what it does not know."""
    assert add_time(Timestamp(1), Timestamp(1)) is None
    assert add_time(Timestamp(1), 1) is None
    assert add_time(1, Duration(1)) is None
    assert subtract_time(Duration(1), Timestamp(1)) is None
    assert subtract_time("x", Duration(1)) is None
    assert time_to_int("x") is None
    assert time_to_string(1) is None


def test_conversions() -> None:
    """int() of a timestamp counts seconds, and rounds down; int() of a duration counts nanoseconds."""
    assert time_to_int(Timestamp(1_999_999_999)) == 1
    assert time_to_int(Timestamp(-1)) == -1
    assert time_to_int(Duration(-5)) == -5
    assert time_to_string(Timestamp(0)) == "1970-01-01T00:00:00Z"
    assert time_to_string(Duration(SECOND)) == "1s"
