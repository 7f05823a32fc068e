"""Workers as processes of their own, for the demo and the tests: started, stopped, killed, paused, and never left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from devkit.errors import DevkitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
"""The project: workers run here, so that `config/` and, in tests, the package `tests` are found."""

_POLL_S = 0.02
_STOP_S = 60.0
_LOG_S = 60.0
_TAIL = 30

# Kills the worker when this process is gone in whatever way, SIGKILL included: a worker whose broker is gone waits for it for ever.
_GUARD = 'read -r _ || kill -9 "$1"'


class WorkerError(DevkitError):
    """A worker did not do what was awaited: the message ends with the tail of its log."""


class WorkerProcess:
    """`python -m <module> run PIPELINE`, again and again with the same instance id; the log file keeps the lines of all its lives.

    A context manager that starts the worker and, in the end, kills whatever is left of it.
    """

    def __init__(
        self,
        pipeline: Path,
        instance_id: str,
        bootstrap: str,
        log_path: Path,
        *,
        env: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        module: str = "worker",
    ) -> None:
        """`env` is added to the environment, from which all RECKON_ settings of the caller are taken out."""
        self.instance_id = instance_id
        self.log_path = log_path
        self._command = [sys.executable, "-m", module, "run", str(pipeline), *args]
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("RECKON_")}
        self._env |= {"RECKON_INSTANCE_ID": instance_id, "RECKON_BOOTSTRAP_SERVERS": bootstrap, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Of the present or the last life."""
        assert self._process is not None, f"worker {self.instance_id} was never started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, again after an end. Returns at once."""
        if self.alive:
            return
        self._release_guard()
        with self.log_path.open("ab") as log:
            # A session of its own: Ctrl-C in a terminal reaches us alone, and we stop the worker in order.
            self._process = subprocess.Popen(  # noqa: S603 - this Python and arguments of ours
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=self._env,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(  # noqa: S603 - a constant script and a number
            ["/bin/sh", "-c", _GUARD, "worker-guard", str(self.pid)], stdin=subprocess.PIPE, start_new_session=True
        )

    def terminate(self) -> None:
        """SIGTERM: finish and leave; see `wait`."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone. Without effect on one that has ended."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self._release_guard()

    def pause(self) -> None:
        """SIGSTOP: on return it does nothing any more."""
        self._signal(signal.SIGSTOP)
        if hasattr(os, "waitid"):  # not on macOS; there the stop takes a moment
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def wait(self, timeout_s: float = _STOP_S) -> int:
        """The exit code, negative for a signal. WorkerError when it does not end in time."""
        assert self._process is not None, f"worker {self.instance_id} was never started"
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise WorkerError(f"worker {self.instance_id} did not end within {timeout_s:g} s\n{self.tail()}") from None
        self._release_guard()
        return code

    def logs(self) -> list[dict[str, Any]]:
        """Every JSON line of the log, oldest first."""
        return [entry for line in self._lines() if (entry := _entry(line)) is not None]

    def wait_for_log(self, event: str, timeout_s: float = _LOG_S, *, count: int = 1) -> dict[str, Any]:
        """The `count`-th log line with this event, of all lives. WorkerError when the worker ends first, or does not write it in time."""
        deadline = time.monotonic() + timeout_s
        while True:
            alive = self.alive
            found = [entry for entry in self.logs() if entry.get("event") == event]
            if len(found) >= count:
                return found[count - 1]
            if not alive or time.monotonic() > deadline:
                why = f"did not log {event!r} within {timeout_s:g} s" if alive else f"ended without logging {event!r}"
                raise WorkerError(f"worker {self.instance_id} {why}\n{self.tail()}")
            time.sleep(_POLL_S)

    def tail(self, lines: int = _TAIL) -> str:
        """The last lines of the log, with a heading."""
        return "\n".join([f"--- the last lines of worker {self.instance_id}:", *self._lines()[-lines:]])

    def _lines(self) -> list[str]:
        return self.log_path.read_text(errors="replace").splitlines() if self.log_path.exists() else []

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _release_guard(self) -> None:
        """A line tells the guard that all is well."""
        if self._guard is not None:
            self._guard.communicate(b"\n")
            self._guard = None


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
