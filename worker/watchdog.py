"""A thread that ends the process when the main thread cannot: hung in a call, over its grace period, or told twice to stop.

``os._exit`` is right here and loses nothing: what is not committed is aborted by the successor's ``init_transactions``. Python's
own signal handlers would not do, because they run only when the main thread is back from librdkafka; the wake-up descriptor of
``signal.set_wakeup_fd`` is written at once.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import structlog

from worker.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SIGNALS = (*STOP_SIGNALS, signal.SIGCONT)

STILL_S = 10.0
"""So long without a turn of its loop, and the process stood still: a frozen machine or container, of which no signal tells."""

_TURN_S = 0.2
_LATE_S = 1.0
"""A turn that is later than that was kept from its time, and the guarded call with it: by SIGSTOP, a freeze, a starved machine."""

_LOG_S = 1.0
"""So long a line of the log may take: longer, nobody reads stderr."""

_log = structlog.get_logger("reckon.watchdog")


class Watchdog:
    """Guards one main thread. ``grace_s``: from the first stop signal to the end by force; ``call_limit_s``: for one guarded call."""

    def __init__(self, *, grace_s: float, call_limit_s: float) -> None:
        self._grace_s = grace_s
        self._call_limit_s = call_limit_s
        self._lock = threading.Lock()
        self._call: tuple[str, float] | None = None
        self._stop_deadline: float | None = None
        self._signals = 0
        self.stopping = False
        """Whether a stop signal came: finish the batch and leave."""
        self.woke_at = float("-inf")
        """When (time.monotonic) the process went on that had stood still; another may have taken its place since."""

    @contextmanager
    def guard(self, operation: str) -> Iterator[None]:
        """A call that must come back within ``call_limit_s`` (E5: begin and commit have hung after a fatal error, #4420)."""
        with self._lock:
            self._call = (operation, time.monotonic() + self._call_limit_s)
        try:
            yield
        finally:
            with self._lock:
                self._call = None

    def extend(self) -> None:
        """The guarded call is getting on. From its own thread only, a signal handler's for one: no lock, which that thread may hold."""
        call = self._call
        if call is not None:
            self._call = call[0], time.monotonic() + self._call_limit_s

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Take the stop signals over, in the main thread, and start watching."""
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        previous = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
        wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        thread = threading.Thread(target=self._watch, args=(reader,), name="watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in previous.items():
                signal.signal(number, handler)
            writer.close()
            thread.join()
            reader.close()

    def _watch(self, reader: socket.socket) -> None:
        reader.settimeout(_TURN_S)
        turned = time.monotonic()
        while True:
            try:
                numbers = reader.recv(64)
            except TimeoutError:
                numbers = None
            if numbers == b"":
                return
            before, turned = turned, time.monotonic()
            if signal.SIGCONT in (numbers or b"") or turned - before > STILL_S:
                self.woke_at = turned
            late_s = turned - before - _TURN_S
            if late_s > _LATE_S:
                self._shift(turned, late_s)
            for number in numbers or b"":
                if number in STOP_SIGNALS:
                    self._signalled(number)
            self._check_deadlines(turned)

    def _shift(self, now: float, late_s: float) -> None:
        """The call did not have this time. Never more than a whole limit from now: it may have begun after the process went on."""
        with self._lock:
            if self._call is not None:
                operation, deadline = self._call
                self._call = operation, min(deadline + late_s, now + self._call_limit_s)

    def _signalled(self, number: int) -> None:
        self._signals += 1
        self.stopping = True
        if self._signals > 1:
            _exit("second stop signal: leaving at once, the open transaction will be aborted", signal=number)
        self._stop_deadline = time.monotonic() + self._grace_s
        _say(lambda: _log.info("stopping", signal=signal.Signals(number).name, grace_s=self._grace_s))

    def _check_deadlines(self, now: float) -> None:
        """``now``: when this turn began. Not read again: the process may have stood still since, which the next turn sees."""
        with self._lock:
            call = self._call
        if call is not None and now > call[1]:
            _exit("a call did not come back", operation=call[0], limit_s=self._call_limit_s)
        if self._stop_deadline is not None and now > self._stop_deadline:
            _exit("the grace period is over before the batch could be ended", grace_s=self._grace_s)


def _exit(why: str, **facts: object) -> None:
    try:
        _say(lambda: _log.critical(why, **facts))
    finally:
        os._exit(ExitCode.FATAL.value)


def _say(line: Callable[[], object]) -> None:
    """Log without depending on it. Where nobody reads stderr, a main thread inside a log line holds the locks that this one needs."""

    def say() -> None:
        with suppress(OSError, ValueError):  # stderr is gone, or closed: nobody is left to be told
            line()

    thread = threading.Thread(target=say, name="watchdog's log", daemon=True)
    with suppress(RuntimeError):  # no more threads can be started
        thread.start()
        thread.join(_LOG_S)
