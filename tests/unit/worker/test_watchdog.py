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

import pytest

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

# A worker whose stderr goes into a pipe that nobody reads. Who waits for "noted" knows that the first signal has been taken.
NOBODY_READS = """
import contextlib, os, structlog
from worker.logs import configure

unread, stderr = os.pipe()

def fill():
    os.set_blocking(stderr, False)
    for size in (65_536, 1):  # what is left of the last page, too
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(stderr, bytes(size))
    os.set_blocking(stderr, True)

def blocked():
    print("ready", flush=True)
    structlog.get_logger().info("never written")  # and keeps the locks that every line needs

def tell_when_stopping():
    while not watchdog.stopping:
        time.sleep(0.01)
    os.write(1, b"noted\\n")

os.dup2(stderr, 2)
configure("json", "info")
"""
FULL = ("fill()", "blocked()")
CLOSED = ("os.close(unread)", "stuck()")

# The watchdog's clock: after each of its looks as many seconds pass as the script says, or what the script says is done.
TURNS = """
from types import SimpleNamespace
import worker.watchdog

now = [1000.0]
worker.watchdog.time = SimpleNamespace(monotonic=lambda: now[0])
worker.watchdog._TURN_S = 0.01  # of the machine's time
steps = []
looks = threading.Semaphore(0)

class Watched(Watchdog):
    def _check_deadlines(self, *args):
        super()._check_deadlines(*args)
        if steps:
            step = steps.pop(0)
            if callable(step):
                step()
            else:
                now[0] += step
        looks.release()

def passes(*given):
    while looks.acquire(blocking=False):
        pass
    steps.extend(given)
    for _ in range(len(given) + 2):  # one look may be under way, and the last step is judged by the look after it
        looks.acquire()

watchdog = Watched(grace_s=600, call_limit_s=5)
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


def given_up(script: str) -> str:
    """What came of a script, and of the log, until the watchdog ended it for a call that did not come back; its end it did not reach."""
    with running(script) as process:
        code, output = ended(process)
    assert code == 1
    assert "a call did not come back" in output
    assert "never" not in output
    return output


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
with watchdog.installed():
    for _ in range(3):
        with watchdog.guard("flush"):
            passes(1, 1)
    passes(1, 1, 1, 1, 1, 1)
    print("came through", flush=True)
    with watchdog.guard("flush"):
        passes(1, 1, 1, 1, 1, 0.1)
print("never")
"""
    output = given_up(TURNS + script)
    assert output.startswith("came through\n")


def test_time_in_which_the_process_stood_still_is_not_the_calls() -> None:
    """SIGSTOP or a freeze beyond the limit, and the watchdog wakes up first: the call goes on with what it had left, and no more."""
    script = """
with watchdog.installed():
    with watchdog.guard("flush"):
        passes(1, 8, 1)
    print("came through", flush=True)
    with watchdog.guard("commit_transaction"):
        passes(1, 8, 1, 1, 1, 0.75)
        print("still in time", flush=True)
        passes(0.5)
print("never")
"""
    output = given_up(TURNS + script)
    assert output.startswith("came through\nstill in time\n")
    assert "operation=commit_transaction" in output


def test_a_call_that_begins_when_the_process_goes_on_has_one_limit_and_no_more() -> None:
    """Its thread may be back before the watchdog, which then sees the time without a turn, and a call that had no part in it."""
    script = """
call = watchdog.guard("flush")

def goes_on():
    now[0] += 3600
    call.__enter__()

with watchdog.installed():
    passes(goes_on, 1, 1, 1, 1)
    print("still in time", flush=True)
    passes(1, 0.5)
print("never")
"""
    output = given_up(TURNS + script)
    assert output.startswith("still in time\n")


@pytest.mark.parametrize(("before", "hang"), [FULL, CLOSED], ids=["full", "closed"])
def test_e5_a_call_that_does_not_come_back_ends_the_process_where_nobody_reads_its_log(before: str, hang: str) -> None:
    """The main thread is in a log line itself, with the locks of stderr; or writing to stderr is an error."""
    script = f"""
{before}
watchdog = Watchdog(grace_s=600, call_limit_s=0.2)
print("set up", flush=True)
with watchdog.installed(), watchdog.guard("flush"):
    {hang}
"""
    with running(NOBODY_READS + script) as process:
        await_line(process, "set up")
        code, _ = ended(process)

    assert code == 1


@pytest.mark.parametrize(("before", "hang"), [FULL, CLOSED], ids=["full", "closed"])
@pytest.mark.parametrize(("grace_s", "signals"), [(600, 2), (0.2, 1)], ids=["two signals", "grace period"])
def test_a_stop_ends_the_process_where_nobody_reads_its_log(
    before: str, hang: str, grace_s: float, signals: int
) -> None:
    """By the second SIGTERM, or by the grace period after the first."""
    script = f"""
{before}
watchdog = Watchdog(grace_s={grace_s}, call_limit_s=600)
with watchdog.installed():
    threading.Thread(target=tell_when_stopping, daemon=True).start()
    {hang}
"""
    with running(NOBODY_READS + script) as process:
        await_line(process, "ready")
        process.send_signal(signal.SIGTERM)
        if signals == 2:
            await_line(process, "noted")
            process.send_signal(signal.SIGTERM)
        code, _ = ended(process)

    assert code == 1


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
