"""What the operator sees of a running worker: a status line on a terminal, a log line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

import structlog
from rich.console import Console
from rich.status import Status

if TYPE_CHECKING:
    from worker.receipt import Receipt
    from worker.settings import Settings

LOG_EVERY_S = 10.0

_log = structlog.get_logger("reckon.progress")


class Progress:
    """Adds up the receipts of this process."""

    def __init__(self, settings: Settings) -> None:
        self._name = settings.pipeline
        self._started = self._told = time.monotonic()
        self.read = self.written = self.filtered = self.dead_lettered = self.transactions = 0
        terminal = sys.stderr.isatty() and settings.worker.log_format != "json"
        self._status = Status("waiting for partitions", console=Console(stderr=True)) if terminal else None

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def committed(self, receipt: Receipt) -> None:
        """Count one committed transaction."""
        self.transactions += 1
        for part in receipt.partitions:
            self.read += part.read
            self.filtered += part.filtered
            self.dead_lettered += part.dead_lettered
            self.written += sum(part.written.values())
        now = time.monotonic()
        if self._status is not None:
            self._status.update(
                f"{self._name}: {self.read:,} read, {self.written:,} written, {self.filtered:,} filtered, "
                f"{self.dead_lettered:,} dead letters in {self.transactions:,} transactions "
                f"({self.read / max(now - self._started, 1e-3):,.0f} records/s)"
            )
        elif now - self._told >= LOG_EVERY_S:
            self._told = now
            _log.info("progress", **self.totals())

    def totals(self) -> dict[str, int]:
        return {
            "read": self.read,
            "written": self.written,
            "filtered": self.filtered,
            "dead_lettered": self.dead_lettered,
            "transactions": self.transactions,
        }
