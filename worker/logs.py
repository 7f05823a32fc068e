"""Logs: JSON lines for machines, coloured lines for a person at a terminal. No secret passes through here: settings are masked before."""

from __future__ import annotations

import logging
import re
import sys
import time
from typing import TYPE_CHECKING, Literal

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Format = Literal["auto", "console", "json"]


def configure(log_format: Format, level: str) -> None:
    """Set up structlog, on stderr. ``auto`` is console where stderr is a terminal, json elsewhere."""
    console = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


LIMIT_S = 10.0
"""The same is said so often at most: while a broker is away, librdkafka says it many times a second."""

_MOST_TEXTS = 256
_PASSING = re.compile(r"\d+ ?ms|, \d+ identical error\(s\) suppressed|#(?:producer|consumer)-\d+")
"""What differs from one time to the next: times, counts, the number of a client that was made anew."""


class Limiter:
    """Lets each text through once in ``LIMIT_S``. Texts that differ in times alone are the same."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[float, int]] = {}

    def passes(self, text: str) -> dict[str, int] | None:
        """None where it was said just now; else what to add to the line: how many were suppressed since, if any."""
        now, key = time.monotonic(), _PASSING.sub("", text)
        last, suppressed = self._said.get(key, (float("-inf"), 0))
        if now - last < LIMIT_S:
            self._said[key] = last, suppressed + 1
            return None
        if len(self._said) > _MOST_TEXTS:
            self._said.clear()
        self._said[key] = now, 0
        return {"suppressed": suppressed} if suppressed else {}


class LibrdkafkaLog:
    """What confluent-kafka wants of a logger, so that librdkafka's own lines come out in our format, and none too often.

    ``notices``: start of a line -> what is called with each such line, also with those that are not written. librdkafka tells error_cb of
    connections that could not be made; of one that a broker closed in the middle of a request it tells the log alone (FAIL, at level info:
    rd_kafka_broker_conn_closed).
    """

    def __init__(
        self, notices: Mapping[str, Callable[[str], None]] | None = None, limiter: Limiter | None = None
    ) -> None:
        self._notices = notices or {}
        self._limiter = limiter or Limiter()

    def log(self, level: int, message: str, *args: object) -> None:
        text = message % args if args else message
        for start, notice in self._notices.items():
            if text.startswith(start):
                notice(text)
        if (more := self._limiter.passes(text)) is not None:
            structlog.get_logger("librdkafka").log(level, text, **more)
