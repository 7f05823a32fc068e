"""timestamp(), duration() and the getters of times (langdef.md, "Standard Environment").

Getters of a timestamp take a time zone, UTC without one; those of a duration take none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transforms.cel.library.time_text import parse_duration, parse_timestamp
from transforms.cel.library.times import SECOND, Duration, Timestamp, timestamp_of
from transforms.cel.library.zones import day_of, local_time
from transforms.cel.runtime import no_overload

if TYPE_CHECKING:
    from datetime import date

_MILLISECOND = 1_000_000


def to_timestamp(value: Any) -> Timestamp:
    """From text of RFC 3339, or from seconds since 1970."""
    kind = type(value)
    if kind is str:
        return parse_timestamp(value)
    if kind is int:
        return timestamp_of(value * SECOND)
    if isinstance(value, Timestamp):
        return value
    raise no_overload("timestamp", value)


def to_duration(value: Any) -> Duration:
    if type(value) is str:
        return parse_duration(value)
    if isinstance(value, Duration):
        return value
    raise no_overload("duration", value)


def _local(function: str, value: Any, zone: tuple[Any, ...]) -> tuple[int, int]:
    """Days since 1970-01-01 and the second of the day."""
    if type(value) is not Timestamp or (zone and type(zone[0]) is not str):
        raise no_overload(function, value, *zone)
    return local_time(value, zone[0] if zone else "UTC")


def _date(function: str, value: Any, zone: tuple[Any, ...]) -> date:
    """The date, whose year may be one of another cycle of the calendar: see `day_of`."""
    return day_of(_local(function, value, zone)[0])[0]


def get_full_year(value: Any, *zone: Any) -> int:
    day, more_years = day_of(_local("getFullYear", value, zone)[0])
    return day.year + more_years


def get_month(value: Any, *zone: Any) -> int:
    """From 0, which is January."""
    return _date("getMonth", value, zone).month - 1


def get_date(value: Any, *zone: Any) -> int:
    """The day of the month, from 1."""
    return _date("getDate", value, zone).day


def get_day_of_month(value: Any, *zone: Any) -> int:
    """The day of the month, from 0."""
    return _date("getDayOfMonth", value, zone).day - 1


def get_day_of_week(value: Any, *zone: Any) -> int:
    """From 0, which is Sunday."""
    return _date("getDayOfWeek", value, zone).isoweekday() % 7


def get_day_of_year(value: Any, *zone: Any) -> int:
    """From 0."""
    return _date("getDayOfYear", value, zone).timetuple().tm_yday - 1


def get_hours(value: Any, *zone: Any) -> int:
    """The hour of a timestamp; the whole hours of a duration, toward zero."""
    if type(value) is Duration and not zone:
        return _whole(value, 3_600 * SECOND)
    return _local("getHours", value, zone)[1] // 3_600


def get_minutes(value: Any, *zone: Any) -> int:
    """The minute of a timestamp; the whole minutes of a duration, toward zero."""
    if type(value) is Duration and not zone:
        return _whole(value, 60 * SECOND)
    return _local("getMinutes", value, zone)[1] // 60 % 60


def get_seconds(value: Any, *zone: Any) -> int:
    """The second of a timestamp; the whole seconds of a duration, toward zero."""
    if type(value) is Duration and not zone:
        return _whole(value, SECOND)
    return _local("getSeconds", value, zone)[1] % 60


def get_milliseconds(value: Any, *zone: Any) -> int:
    """Those beyond the whole seconds; of a duration too, as langdef.md says, whereas cel-go counts all of them."""
    if type(value) is Duration and not zone:
        return _whole(value, _MILLISECOND) - _whole(value, SECOND) * 1_000
    _local("getMilliseconds", value, zone)
    return int(value.nanoseconds % SECOND // _MILLISECOND)


def _whole(value: Duration, unit: int) -> int:
    whole = abs(value.nanoseconds) // unit
    return -whole if value.nanoseconds < 0 else whole
