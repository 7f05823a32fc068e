"""The watchdog in processes of its own, because it ends them.

The stuck ones wait for a mutex that they hold themselves: no signal and no handler of Python's brings the main thread back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from worker.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
LIMIT_S = 60

PROLOGUE = """
import ctypes, threading, time
from worker.watchdog import Watchdog

def stuck():
    mutex = ctypes.create_string_buffer(128)
    lock = ctypes.CDLL(None).pthread_mutex_lock
    lock(mutex)
    print("ready", flush=True)
    lock(mutex)
"""


@contextmanager
def running(script: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROLOGUE + script],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
    ) as process:
        killer = threading.Timer(LIMIT_S, process.kill)
        killer.start()
        try:
            yield process
        finally:
            killer.cancel()
            killer.join()
            process.kill()


def await_line(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
    raise AssertionError(f"the process ended without a line with {word!r}")


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    assert process.stdout is not None
    rest = process.stdout.read()
    return process.wait(), rest


def test_a_second_signal_exits_at_once_even_when_the_main_thread_is_stuck() -> None:
    """The first one only begins the stop; the second ends the process with code 1, long before the grace period."""
    with running("with Watchdog(grace_s=600, call_limit_s=600).installed(): stuck()") as process:
        await_line(process, "ready")
        process.send_signal(signal.SIGTERM)
        await_line(process, "stopping")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        code, output = ended(process)

    assert code == 1
    assert "second stop signal" in output


def test_the_grace_period_ends_a_stuck_process() -> None:
    """One signal, and the batch does not come to its end in time."""
    with running("with Watchdog(grace_s=0.2, call_limit_s=600).installed(): stuck()") as process:
        await_line(process, "ready")
        process.send_signal(signal.SIGTERM)
        code, output = ended(process)

    assert code == 1
    assert "the grace period is over" in output


def test_e5_a_guarded_call_that_does_not_come_back_ends_the_process() -> None:
    """Without any signal; the log names the call."""
    script = """
watchdog = Watchdog(grace_s=600, call_limit_s=0.2)
with watchdog.installed(), watchdog.guard("commit_transaction"):
    stuck()
"""
    with running(script) as process:
        code, output = ended(process)

    assert code == 1
    assert "a call did not come back" in output
    assert "operation=commit_transaction" in output


def test_e5_calls_that_come_back_are_not_hit() -> None:
    """Several calls which together take longer than the limit, and a pause that is not guarded at all; by a clock of the test's own.

    The same call with the clock beyond the limit is hit: the watchdog did look each time.
    """
    script = """
import sys
from types import SimpleNamespace
import worker.watchdog

now = [1000.0]
worker.watchdog.time = SimpleNamespace(monotonic=lambda: now[0])
looks = threading.Semaphore(0)

class Watched(Watchdog):
    def _check_deadlines(self):
        super()._check_deadlines()
        looks.release()

def passes(seconds):
    now[0] += seconds
    while looks.acquire(blocking=False):
        pass
    for _ in range(2):  # one look may have begun before the clock moved
        looks.acquire()

watchdog = Watched(grace_s=600, call_limit_s=5)
with watchdog.installed():
    for _ in range(3):
        with watchdog.guard("flush"):
            passes(2)
    passes(8)
    print("came through", flush=True)
    with watchdog.guard("flush"):
        passes(5.1)
print("never")
"""
    with running(script) as process:
        code, output = ended(process)

    assert code == 1
    assert output.startswith("came through\n")
    assert "a call did not come back" in output
    assert "never" not in output


def test_the_first_signal_asks_the_main_thread_to_stop() -> None:
    """The main thread sees it and leaves by itself with code 0."""
    script = """
watchdog = Watchdog(grace_s=600, call_limit_s=600)
with watchdog.installed():
    print("ready", watchdog.stopping, flush=True)
    while not watchdog.stopping:
        time.sleep(0.01)
print("left")
"""
    with running(script) as process:
        await_line(process, "ready False")
        process.send_signal(signal.SIGTERM)
        code, output = ended(process)

    assert code == 0
    assert output.endswith("left\n")


def test_a_normal_end_leaves_everything_as_it_was() -> None:
    """Signal handlers and wake-up descriptor are restored, and the thread is gone."""
    before = (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    threads = set(threading.enumerate())  # of other tests some may be left, and end meanwhile

    with Watchdog(grace_s=60, call_limit_s=60).installed():
        [watching] = [each for each in set(threading.enumerate()) - threads if each.name == "watchdog"]
        during = (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
        assert before[0] is not during[0]
        assert before[1] is not during[1]

    assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    assert signal.set_wakeup_fd(-1) == -1
    assert not watching.is_alive()
