"""Time zones: IANA names and fixed offsets (langdef.md, "Timezones"), and what the clock and the calendar say there."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from transforms.cel.library.time_text import offset_seconds
from transforms.cel.library.times import MAX_SECONDS, MIN_SECONDS, SECOND, Timestamp
from transforms.errors import CelError

_FIXED = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})")
_EPOCH_DATETIME = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY = 86_400
_CYCLE_DAYS = 146_097
_CYCLE_YEARS = 400
"""The Gregorian calendar repeats after 400 years, days of the week included."""


@lru_cache(maxsize=256)
def _zone(name: str) -> int | ZoneInfo:
    """A fixed offset in seconds, or a zone."""
    if name == "UTC":
        return 0
    match = _FIXED.fullmatch(name)
    if match is not None:
        offset = offset_seconds(match[1], int(match[2]), int(match[3]))
        if offset is not None:
            return offset
    try:
        return ZoneInfo(name)
    except (
        LookupError,
        ValueError,
        OSError,
    ):  # a directory of the zones' files is an OSError in some versions of Python
        raise CelError("not a time zone, expected for example Europe/Paris or +01:00") from None


def local_time(value: Timestamp, zone: str) -> tuple[int, int]:
    """Days since 1970-01-01 and the second of the day, at `zone`; CelError if there is no such zone."""
    seconds = value.nanoseconds // SECOND
    place = _zone(zone)
    if isinstance(place, ZoneInfo):
        # Within a day of either end Python's datetime would overflow; no zone changes its offset there.
        inner = min(max(seconds, MIN_SECONDS + _DAY), MAX_SECONDS - _DAY)
        offset = (_EPOCH_DATETIME + timedelta(seconds=inner)).astimezone(place).utcoffset()
        seconds += 0 if offset is None else offset // timedelta(seconds=1)
    else:
        seconds += place
    return divmod(seconds, _DAY)


def day_of(days: int) -> tuple[date, int]:
    """The date that many days after 1970-01-01, and what to add to its year.

    A zone can show the last days of year 0 and the first of year 10000, which Python's calendar has not: then the date is that
    of 400 years later or earlier.
    """
    ordinal = days + _EPOCH_DAY
    if ordinal < 1:
        return date.fromordinal(ordinal + _CYCLE_DAYS), -_CYCLE_YEARS
    if ordinal > date.max.toordinal():
        return date.fromordinal(ordinal - _CYCLE_DAYS), _CYCLE_YEARS
    return date.fromordinal(ordinal), 0
