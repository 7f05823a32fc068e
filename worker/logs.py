"""Logs: JSON lines for machines, coloured lines for a person at a terminal. No secret passes through here: settings are masked before."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

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
    """What confluent-kafka wants of a logger, so that librdkafka's own lines come out in our format."""

    def log(self, level: int, message: str, *args: object) -> None:
        structlog.get_logger("librdkafka").log(level, message % args if args else message)
