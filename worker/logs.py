"""Logs: JSON lines for machines, coloured lines for a person at a terminal. No secret passes through here: settings are masked before."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Literal

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

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


class LibrdkafkaLog:
    """What confluent-kafka wants of a logger, so that librdkafka's own lines come out in our format.

    ``on_broken_connection``: called for each line about one (FAIL, at level info). librdkafka tells error_cb of connections that could not
    be made; of one that a broker closed in the middle of a request it tells the log alone (rd_kafka_broker_conn_closed).
    """

    def __init__(self, on_broken_connection: Callable[[], None] = lambda: None) -> None:
        self._on_broken_connection = on_broken_connection
        self._last = ""

    def log(self, level: int, message: str, *args: object) -> None:
        text = message % args if args else message
        if text.startswith("FAIL "):
            self._on_broken_connection()
        if text != self._last:  # while no broker is there, each attempt to connect says the same
            self._last = text
            structlog.get_logger("librdkafka").log(level, text)
