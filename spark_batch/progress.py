"""What a person at a terminal sees of a running audit: one line with the stage, its tasks and the time. Nothing where nobody looks."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from pyspark import SparkContext

_EVERY_S = 0.5
_CLEAR = "\r\x1b[2K"


class Progress:
    """A context manager; `tell` names the stage. Plain text by hand: a cluster's driver need not have a library for it."""

    def __init__(self, stream: TextIO = sys.stderr, *, shown: bool | None = None) -> None:
        self._stream = stream
        self._shown = stream.isatty() if shown is None else shown
        self._stage = "starting Spark"
        self._began = time.monotonic()
        self._spark: SparkContext | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        if self._shown:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._shown:
            self._thread.join()
            self._stream.write(_CLEAR)
            self._stream.flush()

    def tell(self, stage: str) -> None:
        self._stage = stage

    def watch(self, spark: SparkContext) -> None:
        """From now on, show how many tasks of the running jobs are done."""
        self._spark = spark

    def _run(self) -> None:
        while not self._over.wait(_EVERY_S):
            line = f"{self._stage}{self._tasks()} ({time.monotonic() - self._began:.0f} s)"
            self._stream.write(f"{_CLEAR}{line}")
            self._stream.flush()

    def _tasks(self) -> str:
        if self._spark is None:
            return ""
        tracker = self._spark.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        tasks = sum(stage.numTasks for stage in stages if stage)
        done = sum(stage.numCompletedTasks for stage in stages if stage)
        return f": {done} of {tasks} tasks" if tasks else ""
