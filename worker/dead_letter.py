"""Dead letters: the source record untouched, plus headers that say what went wrong and where; and the limit on them.

Headers added, all text: ``reckon.error.class``, ``reckon.error.message``, ``reckon.step``, ``reckon.pipeline.line``,
``reckon.source.topic``, ``reckon.source.partition``, ``reckon.source.offset``, ``reckon.worker.version``.
"""

from __future__ import annotations

from collections import deque
from importlib.metadata import version
from typing import TYPE_CHECKING

from worker.errors import DeadLetterLimitError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from transforms.records import Failure
    from worker.lineage import Message

WORKER_VERSION = version("reckon")

MESSAGE_LIMIT = 1000
"""Characters of an error message that go into a header."""

SHARE_MINIMUM = 100
"""Dead letters in the window below which a share is not judged: the first bad record of a morning is no bad deploy."""


def dead_letters(topic: str, failures: Iterable[Failure]) -> list[Message]:
    """One message per failure: key, value, headers and timestamp of the source record as they were, ours after them."""
    return [
        (
            topic,
            failure.record.value(),
            failure.record.key(),
            -1,
            None,
            None,
            max(failure.record.timestamp()[1], 0),
            [
                *(failure.record.headers() or ()),
                ("reckon.error.class", failure.error_class),
                ("reckon.error.message", failure.message[:MESSAGE_LIMIT]),
                ("reckon.step", failure.step),
                ("reckon.pipeline.line", str(failure.line)),
                ("reckon.source.topic", str(failure.record.topic())),
                ("reckon.source.partition", str(failure.record.partition())),
                ("reckon.source.offset", str(failure.record.offset())),
                ("reckon.worker.version", WORKER_VERSION),
            ],
        )
        for failure in failures
    ]


class DeadLetterLimit:
    """Stops a worker that is pouring its source into the dead letters: the mark of a bad deploy, not of bad records.

    ``share``: of the last ``window`` records read, 0 < share <= 1; judged from SHARE_MINIMUM dead letters on. ``absolute``: dead letters
    since the worker started, or None for no such limit. Only committed batches count: ``check`` comes before a commit, ``committed``
    after it.
    """

    def __init__(self, share: float, window: int, absolute: int | None) -> None:
        self._share = share
        self._window = window
        self._absolute = absolute
        self._batches: deque[tuple[int, int]] = deque()
        self._read = 0
        self._dead = 0
        self.total = 0
        """Dead letters committed since the start."""

    def check(self, read: int, dead: int, example: Failure | None) -> None:
        """Raise DeadLetterLimitError when a batch of ``read`` records with ``dead`` dead letters would pass a limit."""
        if not dead:
            return
        why = None
        if self._absolute is not None and self.total + dead > self._absolute:
            why = f"{self.total + dead} dead letters since the start, the limit is {self._absolute} (dead_letters.limit.absolute)"
        elif self._dead + dead >= SHARE_MINIMUM and self._dead + dead > self._share * (self._read + read):
            share = (self._dead + dead) / (self._read + read)
            why = (
                f"{share:.0%} of the last {self._read + read} records failed, the limit is {self._share:.0%} "
                f"(dead_letters.limit.share over a window of {self._window})"
            )
        if why is not None:
            last = f"; the last one: {example.error_class} at {example.step}: {example.message}" if example else ""
            raise DeadLetterLimitError(f"{why}: nothing of this batch was committed{last}")

    def committed(self, read: int, dead: int) -> None:
        """Count a batch that was committed."""
        self.total += dead
        self._batches.append((read, dead))
        self._read += read
        self._dead += dead
        while self._read - self._batches[0][0] >= self._window:
            old_read, old_dead = self._batches.popleft()
            self._read -= old_read
            self._dead -= old_dead
