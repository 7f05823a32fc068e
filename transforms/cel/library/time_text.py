"""Times as text: timestamps in RFC 3339, durations as in "1h30m" (langdef.md, "Types and Conversions")."""

from __future__ import annotations

import re
from datetime import date

from transforms.cel.library.times import SECOND, Duration, Timestamp, duration_of, timestamp_of
from transforms.errors import CelError

_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_LONGEST = 256
"""Characters of a duration: more say nothing that an int64 can hold, and Python's int() has no bound of its own that low."""
_EPOCH = date(1970, 1, 1).toordinal()


def parse_timestamp(text: str) -> Timestamp:
    """Fractions are cut after nanoseconds; there are no leap seconds, as in protobuf's JSON form."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise _not_a_timestamp()
    year, month, day, hours, minutes, seconds, fraction, sign, zone_hours, zone_minutes = match.groups()
    hour, minute, second = int(hours), int(minutes), int(seconds)
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        raise _not_a_timestamp() from None
    if hour > 23 or minute > 59 or second > 59:
        raise _not_a_timestamp()
    total = days * 86_400 + hour * 3_600 + minute * 60 + second
    if sign is not None:
        offset = offset_seconds(sign, int(zone_hours), int(zone_minutes))
        if offset is None:
            raise _not_a_timestamp()
        total -= offset
    nanoseconds = total * SECOND
    if fraction is not None:
        nanoseconds += int(fraction[:9].ljust(9, "0"))
    return timestamp_of(nanoseconds)


def _not_a_timestamp() -> CelError:
    return CelError("the string is not a timestamp of RFC 3339, expected for example 2009-02-13T23:31:30.5Z")


def offset_seconds(sign: str, hours: int, minutes: int) -> int | None:
    """Seconds east of UTC; None if there is no such offset."""
    if hours > 23 or minutes > 59:
        return None
    offset = hours * 3_600 + minutes * 60
    return -offset if sign == "-" else offset


def timestamp_text(value: Timestamp) -> str:
    """In UTC, with as many digits of the fraction as say something."""
    seconds, fraction = divmod(value.nanoseconds, SECOND)
    days, second = divmod(seconds, 86_400)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    day = date.fromordinal(days + _EPOCH).isoformat()
    return f"{day}T{hour:02}:{minute:02}:{second:02}{_fraction_text(fraction)}Z"


def _fraction_text(nanoseconds: int) -> str:
    return f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""


def parse_duration(text: str) -> Duration:
    """A sign, and terms of a decimal number and a unit, in any order: "-1.5h", "1h2m3.5s", "0". Cut after nanoseconds."""
    terms = text[1:] if text[:1] in ("+", "-") else text
    if terms == "0":
        return Duration(0)
    if not terms or len(terms) > _LONGEST:
        raise _not_a_duration()
    nanoseconds = 0
    place = 0
    while place < len(terms):
        match = _TERM.match(terms, place)
        if match is None:
            raise _not_a_duration()
        whole, fraction, unit = match.groups()
        if not whole and not fraction:
            raise _not_a_duration()
        size = _UNITS[unit]
        nanoseconds += int(whole or "0") * size
        if fraction:
            nanoseconds += int(fraction) * size // 10 ** len(fraction)
        place = match.end()
    return duration_of(-nanoseconds if text[0] == "-" else nanoseconds)


def _not_a_duration() -> CelError:
    return CelError("the string is not a duration, expected for example 1h30m, 1.5s or 250ms")


def duration_text(value: Duration) -> str:
    """Seconds with as many digits as say something. Exact, whereas cel-go writes what a double can hold of it."""
    sign = "-" if value.nanoseconds < 0 else ""
    seconds, fraction = divmod(abs(value.nanoseconds), SECOND)
    return f"{sign}{seconds}{_fraction_text(fraction)}s"
