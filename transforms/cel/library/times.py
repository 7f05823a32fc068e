"""The two types of time of CEL: google.protobuf.Timestamp and google.protobuf.Duration, in nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass

from transforms.errors import CelError

SECOND = 1_000_000_000
"""Nanoseconds in a second."""
MIN_SECONDS = -62_135_596_800
MAX_SECONDS = 253_402_300_799
"""0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, in seconds since 1970."""
_MIN_INSTANT = MIN_SECONDS * SECOND
_MAX_INSTANT = MAX_SECONDS * SECOND + SECOND - 1
_MIN_LENGTH = -(2**63)
_MAX_LENGTH = 2**63 - 1


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time. Made by `timestamp_of`, which keeps the range."""

    nanoseconds: int
    """Since 1970-01-01T00:00:00Z, without leap seconds."""


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time. Made by `duration_of`, which keeps the range."""

    nanoseconds: int


TIMES = frozenset({Timestamp, Duration})


def timestamp_of(nanoseconds: int) -> Timestamp:
    """From nanoseconds since 1970; CelError outside of the years 1 to 9999 (langdef.md, "Overflow")."""
    if _MIN_INSTANT <= nanoseconds <= _MAX_INSTANT:
        return Timestamp(nanoseconds)
    raise CelError("timestamp overflow: not within the years 1 to 9999")


def duration_of(nanoseconds: int) -> Duration:
    """CelError outside of an int64, some 292 years (langdef.md, "Overflow").

    Not the 10,000 years of protobuf's Duration: the conformance cases demand that the difference between the first and the last
    timestamp be an error.
    """
    if _MIN_LENGTH <= nanoseconds <= _MAX_LENGTH:
        return Duration(nanoseconds)
    raise CelError("duration overflow: more than 2^63 nanoseconds, which are 292 years")
