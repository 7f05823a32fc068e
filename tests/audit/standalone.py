"""A Spark standalone cluster on the loopback interface: a master and two workers of one core and one gigabyte each."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from spark_batch.session import java_home
from tests.support.waiting import await_true

if TYPE_CHECKING:
    from collections.abc import Iterator

BIN = Path(sys.executable).parent
_DEPLOY = "org.apache.spark.deploy"
_START_S = 90.0
_STOP_S = 10.0


def environment() -> dict[str, str]:
    """For Spark's scripts: this Python, the Spark of this Python, a Java that runs it, loopback only."""
    return {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextlib.contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """The master's address, `spark://127.0.0.1:port`, while all workers are registered; everything ends with the block."""
    with contextlib.ExitStack() as stack:

        def start(name: str, *arguments: str) -> Path:
            log = folder / f"{name}.log"
            command = [str(BIN / "spark-class"), *arguments]
            with log.open("wb") as output:
                process = subprocess.Popen(command, env=environment(), stdout=output, stderr=subprocess.STDOUT)
            stack.callback(_end, process)
            return log

        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = start("master", f"{_DEPLOY}.master.Master", *ports)
        await_true(lambda: _address(log), "the master listens", _START_S)
        address = _address(log)
        assert address is not None
        for number in range(workers):
            limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}")]
            start(f"worker-{number}", f"{_DEPLOY}.worker.Worker", *ports, *limits, address)
        await_true(
            lambda: log.read_text().count("Registering worker") == workers, "the workers are registered", _START_S
        )
        yield address


def _address(log: Path) -> str | None:
    found = re.search(r"Starting Spark master at (spark://\S+)", log.read_text())
    return found[1] if found else None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
