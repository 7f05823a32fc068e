"""Times in operators and conversions that other types have too. All of them answer None to what is no operation on times: the
operator that asked knows better how to say "no such overload".
"""

from __future__ import annotations

from transforms.cel.library.time_text import duration_text, timestamp_text
from transforms.cel.library.times import SECOND, Duration, Timestamp, duration_of, timestamp_of


def add_time(left: object, right: object) -> Timestamp | Duration | None:
    """Timestamp + duration, duration + timestamp, duration + duration; CelError for an overflow."""
    if type(left) is Duration:
        if type(right) is Duration:
            return duration_of(left.nanoseconds + right.nanoseconds)
        if type(right) is Timestamp:
            return timestamp_of(left.nanoseconds + right.nanoseconds)
    if type(left) is Timestamp and type(right) is Duration:
        return timestamp_of(left.nanoseconds + right.nanoseconds)
    return None


def subtract_time(left: object, right: object) -> Timestamp | Duration | None:
    """Timestamp - timestamp, timestamp - duration, duration - duration; CelError for an overflow."""
    if type(left) is Timestamp:
        if type(right) is Timestamp:
            return duration_of(left.nanoseconds - right.nanoseconds)
        if type(right) is Duration:
            return timestamp_of(left.nanoseconds - right.nanoseconds)
    if type(left) is Duration and type(right) is Duration:
        return duration_of(left.nanoseconds - right.nanoseconds)
    return None


def time_to_int(value: object) -> int | None:
    """Seconds since 1970 of a timestamp, rounded down; nanoseconds of a duration, as in cel-go."""
    if type(value) is Timestamp:
        return value.nanoseconds // SECOND
    if type(value) is Duration:
        return value.nanoseconds
    return None


def time_to_string(value: object) -> str | None:
    """2009-02-13T23:31:30.5Z, and 90.25s."""
    if type(value) is Timestamp:
        return timestamp_text(value)
    if type(value) is Duration:
        return duration_text(value)
    return None
