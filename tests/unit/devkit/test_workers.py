"""Worker processes are watched, and never left behind. A script stands in for the worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devkit.workers import ROOT, WorkerError, WorkerProcess
from tests.support.processes import state_of
from tests.support.waiting import PATIENCE_S

STAND_IN = """
import json, os, signal, sys, time
print("not json")
print(json.dumps({"event": "environment", **{k: v for k, v in os.environ.items() if k.startswith("RECKON_")}}))
print(json.dumps({"event": "arguments", "argv": sys.argv[1:]}), flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
if "--end" in sys.argv:
    sys.exit(3)
print(json.dumps({"event": "ready"}), flush=True)
while True:
    time.sleep(0.05)
"""


def stand_in(folder: Path, *args: str) -> WorkerProcess:
    (folder / "stand_in.py").write_text(STAND_IN)
    env = {"PYTHONPATH": str(folder), "RECKON_EXTRA": "1"}
    return WorkerProcess(Path("p.yaml"), "w1", "127.0.0.1:1", folder / "w.log", env=env, args=args, module="stand_in")


def test_a_worker_gets_its_settings_and_none_of_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECKON_GROUP_ID", "the caller's")
    with stand_in(tmp_path, "--more") as worker:
        assert worker.wait_for_log("ready", PATIENCE_S) == {"event": "ready"}
        assert worker.logs()[:2] == [
            {
                "event": "environment",
                "RECKON_INSTANCE_ID": "w1",
                "RECKON_BOOTSTRAP_SERVERS": "127.0.0.1:1",
                "RECKON_EXTRA": "1",
            },
            {"event": "arguments", "argv": ["run", "p.yaml", "--more"]},
        ]


def test_terminate_lets_it_end_with_its_own_exit_code(tmp_path: Path) -> None:
    with stand_in(tmp_path) as worker:
        worker.wait_for_log("ready", PATIENCE_S)
        worker.terminate()
        assert worker.wait(PATIENCE_S) == 7
        assert not worker.alive


def test_the_log_keeps_the_lines_of_all_lives(tmp_path: Path) -> None:
    with stand_in(tmp_path) as worker:
        worker.wait_for_log("ready", PATIENCE_S)
        worker.kill()
        assert worker.wait(PATIENCE_S) == -signal.SIGKILL
        worker.start()
        worker.wait_for_log("ready", PATIENCE_S, count=2)


def test_a_paused_worker_stands_still_and_can_be_killed(tmp_path: Path) -> None:
    with stand_in(tmp_path) as worker:
        worker.wait_for_log("ready", PATIENCE_S)
        worker.pause()
        worker.terminate()
        with pytest.raises(WorkerError, match=r"did not end within 0\.3 s\n--- the last lines of worker w1:\nnot json"):
            worker.wait(0.3)
        worker.resume()
        assert worker.wait(PATIENCE_S) == 7
        worker.start()
        worker.wait_for_log("ready", PATIENCE_S, count=2)
        worker.pause()
    assert not worker.alive


def test_waiting_for_a_line_ends_with_the_worker(tmp_path: Path) -> None:
    """The error shows the log: what a person would look for next."""
    with (
        stand_in(tmp_path, "--end") as worker,
        pytest.raises(WorkerError, match=r"worker w1 ended without logging 'ready'\n--- the last .*\nnot json\n"),
    ):
        worker.wait_for_log("ready", PATIENCE_S)


def test_waiting_for_a_line_that_never_comes_ends_in_time(tmp_path: Path) -> None:
    with stand_in(tmp_path) as worker:
        worker.wait_for_log("ready", PATIENCE_S)
        with pytest.raises(WorkerError, match=r"worker w1 did not log 'never' within 0\.2 s"):
            worker.wait_for_log("never", 0.2)


def test_a_worker_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    """Its broker goes with the parent, and then it would wait for a broker for ever."""
    stand_in(tmp_path)
    script = (
        "import sys, time; from pathlib import Path; from tests.unit.devkit.test_workers import stand_in\n"
        f"w = stand_in(Path({str(tmp_path)!r})); w.start(); w.wait_for_log('ready', 60); print(w.pid, flush=True); time.sleep(300)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(pid, 0)
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + PATIENCE_S
    while running(pid):
        assert time.monotonic() < deadline, f"worker {pid} outlived its parent"
        time.sleep(0.02)


def running(pid: int) -> bool:
    """Whether a process that is not ours exists; on Linux one that nobody has reaped yet does not run."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path("/proc/self").exists() or state_of(pid) not in {"", "Z"}
