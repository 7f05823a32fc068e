"""The engines side by side: how each is made ready, its command, and what it needs of the environment.

A job reads BOOTSTRAP, SRC_TOPIC, DST_TOPIC, GROUP, COMMIT_MS and STATE_DIR from the environment and runs until it is stopped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
JOBS = HERE / "jobs"
RUN = HERE / "run"
"""Whatever is built, logged or measured: ignored by git, may be deleted at any time."""

QUIX = "quixstreams==3.28.1"
BUILD_LIMIT_S = 900


class Unavailable(Exception):  # noqa: N818 - a finding that goes into the table, not an error
    """An engine cannot run on this machine; the message says why in a few words."""


@dataclass(frozen=True, slots=True)
class Engine:
    name: str
    prepare: Callable[[], list[str]]
    """Builds what is missing and returns the command. Raises Unavailable."""
    env: dict[str, str] = field(default_factory=dict)
    warm_up: int = 200_000
    """Records in front of the measured ones; they are processed, and verified, but outside the clock."""


def _checked(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=BUILD_LIMIT_S, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Unavailable(f"{Path(command[0]).name} failed: {last}")


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"no {name}")
    return found


def _reckon() -> list[str]:
    return [sys.executable, "-m", "worker", "run", str(HERE / "pipeline.yaml")]


def _naive() -> list[str]:
    return [sys.executable, str(JOBS / "naive.py")]


def _quix() -> list[str]:
    home = RUN / "quix"
    python, ready = home / "bin" / "python", home / QUIX
    if not ready.exists():
        venv.create(home, clear=True, with_pip=True)
        _checked([str(python), "-m", "pip", "install", "--quiet", QUIX], RUN)
        ready.touch()
    return [str(python), str(JOBS / "quix.py")]


def _kstreams() -> list[str]:
    java, home = _tool("java"), RUN / "kstreams"
    if not (home / "target" / "app.jar").exists():
        maven = _tool("mvn")
        shutil.copytree(JOBS / "kstreams", home, dirs_exist_ok=True)
        _checked([maven, "--quiet", "--batch-mode", "package"], home)
    target = home / "target"
    return [java, "-Xms512m", "-Xmx512m", "-cp", f"{target / 'app.jar'}:{target / 'libs'}/*", "bench.Job"]


def _franz() -> list[str]:
    binary = RUN / "franz"
    if not binary.exists():
        _checked([_tool("go"), "build", "-o", str(binary), "."], JOBS / "franz")
    return [str(binary)]


# librdkafka stops fetching for this long, 1 s by default, when its queue is full: the one setting that doubles the script.
_NAIVE_TUNED = {"CONSUMER_EXTRA": '{"fetch.queue.backoff.ms": 10}'}
_JIT_WARM_UP = 2_000_000  # the JIT needs millions of records to settle

OURS = "reckon"
ENGINES = {
    engine.name: engine
    for engine in (
        Engine(OURS, _reckon, {"LINEAGE": "true"}),
        Engine("reckon-no-lineage", _reckon, {"LINEAGE": "false"}),
        Engine("naive", _naive),
        Engine("naive-tuned", _naive, _NAIVE_TUNED),
        Engine("quix", _quix),
        Engine("kstreams", _kstreams, warm_up=_JIT_WARM_UP),
        Engine("kstreams-tuned", _kstreams, {"TUNED": "1"}, warm_up=_JIT_WARM_UP),
        Engine("franz", _franz),
        Engine("franz-tuned", _franz, {"JSON_LIB": "goccy"}),
    )
}
DEFAULT_ENGINES = (OURS, "naive", "naive-tuned", "quix")
