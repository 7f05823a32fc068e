"""One broker process: started, stopped, killed, paused and restarted at will, and never left behind."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from devkit import ports
from devkit.admin import admin_client, registered_brokers
from devkit.errors import BrokerDiedError, BrokerTimeoutError, PortTakenError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_log = logging.getLogger("devkit")

START_TIMEOUT = 150.0  # seconds; 3 s is usual, 18 s were seen on a machine with ten times the work that it could do
_STOP_TIMEOUT = 60.0  # seconds that a clean stop may take before it becomes SIGKILL
_POLL = 0.02  # seconds between two looks at something awaited

# Kills its argument when its standard input ends without a line, that is when the process holding the other end is
# gone in whatever way, SIGKILL included. Not PR_SET_PDEATHSIG: that fires when the *thread* that started the broker
# ends, needs code between fork and exec of a threaded process, and exists on Linux only. Not atexit or signal
# handlers either: they see neither SIGKILL nor a crash.
_GUARD = 'read -r _ || kill -9 "$1"'


class Node:
    """One broker and controller. Made by Cluster; `id` is 1.., `address` is "127.0.0.1:port"."""

    def __init__(self, node_id: int, command: Sequence[str], folder: Path, listeners: Sequence[ports.Port]) -> None:
        """`command` runs the broker; `listeners` are its client port and its controller port."""
        self.id = node_id
        self.port = listeners[0].number
        self.address = f"{ports.HOST}:{self.port}"
        self.log_path = folder / "broker.log"
        self._command = command
        self._folder = folder
        self._listeners = listeners
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._paused = False

    @property
    def pid(self) -> int | None:
        """Process id of the last start, None before the first."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """Whether the process exists; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the last start ended: the exit code, or minus the signal's number; None before its end."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start (again): same ports, same data. Returns when the node accepts requests; no-op when it is alive.

        Raises BrokerDiedError, BrokerTimeoutError or PortTakenError. One node of three only becomes ready with a
        second one alive: the controllers need a majority.
        """
        if not self.alive:
            self.spawn()
        self.await_ready()

    def spawn(self) -> None:
        """Start the process without waiting for it."""
        self._release()
        self._paused = False
        for port in self._listeners:
            port.before_start()
        with self.log_path.open("ab") as log:
            # a session of its own: Ctrl-C in a terminal reaches us alone, and we stop the broker in order
            self._process = subprocess.Popen(  # noqa: S603 - Java and arguments from this package
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(  # noqa: S603 - a constant script and a number
            ["/bin/sh", "-c", _GUARD, "devkit-guard", str(self._process.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def await_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until the node answers a metadata request in which it counts itself as a broker."""
        deadline = time.monotonic() + timeout
        self._await(lambda: ports.accepts(self.port), deadline)
        admin = admin_client(self.address)
        self._await(lambda: self.id in registered_brokers(admin), deadline)

    def _await(self, condition: Callable[[], bool], deadline: float) -> None:
        while not condition():
            if not self.alive:
                raise self.failure()
            if time.monotonic() > deadline:
                raise BrokerTimeoutError(
                    f"node {self.id} did not answer in time; the end of its log:\n{self.log_tail()}"
                )
            time.sleep(_POLL)

    def failure(self) -> BrokerDiedError | PortTakenError:
        """Why the process is gone, as an error to raise."""
        code = self._process.returncode if self._process else None
        tail = self.log_tail()
        for port in self._listeners:
            if f"{ports.HOST}:{port.number}: Address already in use" in tail:
                return PortTakenError(f"port {port.number} on {ports.HOST} is in use by another program")
        return BrokerDiedError(f"node {self.id} ended with {code}; the end of its log:\n{tail}")

    def stop(self, timeout: float = _STOP_TIMEOUT) -> bool:
        """Stop cleanly (SIGTERM) and wait; True when it ended by itself, False when SIGKILL was needed (also logged)."""
        self.terminate()
        return self.await_end(timeout)

    def terminate(self) -> None:
        """Ask the process to stop, without waiting; a paused one is resumed, or it could not hear it."""
        self._signal(signal.SIGTERM)
        self.resume()

    def await_end(self, timeout: float = _STOP_TIMEOUT) -> bool:
        if self._process is None:
            return True
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            _log.warning("node %d did not stop within %g s: killed", self.id, timeout)
            self.kill()
            return False
        self._release()
        return True

    def kill(self) -> None:
        """SIGKILL, and wait for the end; no-op when it is not alive."""
        self._signal(signal.SIGKILL)
        if self._process:
            self._process.wait()
        self._release()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing is answered. Returns when every thread stands still."""
        if self._process is None or self._paused:
            return
        self._signal(signal.SIGSTOP)
        if self._process.returncode is None:  # the signal alone returns while threads of the broker still run
            _, status = os.waitpid(self._process.pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                self._paused = True
            else:  # it ended just now, and waitpid took the news that Popen would look for
                self._process.returncode = os.waitstatus_to_exitcode(status)

    def resume(self) -> None:
        """SIGCONT: undo pause()."""
        self._signal(signal.SIGCONT)
        self._paused = False

    def _signal(self, number: signal.Signals) -> None:
        if self._process:
            self._process.send_signal(number)  # polls first: never hits a stranger with a reused process id

    def _release(self) -> None:
        """End the guard of a process that is gone: a line tells it to leave without killing."""
        if self._guard:
            self._guard.communicate(b"\n")
            self._guard = None

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of the broker's log, "" when there is none."""
        try:
            text = self.log_path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])
