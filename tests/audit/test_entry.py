"""The audit as a command: exit codes, the line on stdout, the state from one run to the next. In process, with the tests' Spark session."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from confluent_kafka import Producer

from devkit.verify import by_lineage
from spark_batch import audit, state
from spark_batch.errors import AuditError, CannotStartError
from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.model import Depth
from spark_batch.security import java_options
from tests.support.pipelines import EPOCH_MS, Scene
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    Run: TypeAlias = "Callable[..., tuple[int, dict[str, Any]]]"


@pytest.fixture(scope="module")
def scene(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A pipeline that a worker ran over 300 records."""
    with Scene(bootstrap, tmp_path_factory.mktemp("entry"), records=50) as scene:
        scene.produce(300)
        scene.drain()
        yield scene


@pytest.fixture
def run(
    spark: SparkSession,
    scene: Scene,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """(exit code, the line on stdout) of an audit of the scene with these arguments."""
    monkeypatch.setenv("RECKON_BOOTSTRAP_SERVERS", scene.bootstrap)

    def audited(*args: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = audit.main(["--pipeline", str(scene.path), "--out", str(tmp_path / "report"), *args])
        (line,) = capsys.readouterr().out.splitlines()
        return code, json.loads(line)

    return audited


def test_increments(run: Run, scene: Scene, tmp_path: Path) -> None:
    """Complete; then only what is new, with a finding that is told once; then nothing new. A deeper look needs a state of its own."""
    folder = tmp_path / "state"
    code, line = run("--state", str(folder))
    assert (code, line["exit_code"], line["verdict"], line["findings"]) == (0, 0, "complete", {})
    assert sum(line["records"].values()) == 300
    first = state.load(folder)
    assert first is not None
    assert (first.pipeline, first.depth, first.committed) == (scene.name, Depth.RECORDS, scene.committed())
    assert sum(first.sequences.values()) == len(scene.receipt_values())

    scene.produce(50)
    scene.drain("two")
    producer = Producer({"bootstrap.servers": scene.bootstrap})
    producer.produce(scene.sink, b"{}", headers=[("reckon.source", f"{scene.source}/7/0/0")])
    assert producer.flush(PATIENCE_S) == 0
    code, line = run("--state", str(folder))
    assert (code, line["verdict"], line["findings"]) == (1, "findings", {"orphan": 1})
    assert sum(line["records"].values()) == 50
    code, line = run("--state", str(folder))
    assert (code, line["findings"], sum(line["records"].values())) == (0, {}, 0)

    code, line = run("--state", str(folder), "--depth", "content")
    problem = f"{folder}: the audits before looked at records only; to look at content name another folder by --state, "
    assert (code, line["error"]) == (3, f"{problem}or begin with --from-beginning")
    code, line = run("--state", str(folder), "--from-beginning", "--depth", "offsets")
    assert (code, sum(line["records"].values())) == (0, 350)
    last = state.load(folder)
    assert last is not None
    assert (last.depth, last.committed) == (Depth.OFFSETS, scene.committed())


def test_since_begins_with_the_transactions_of_that_time(run: Run, bootstrap: str, tmp_path: Path) -> None:
    """At the millisecond, or where the receipt begins that holds it. Of two doubled outputs one has a source so young: only it is told."""
    with Scene(bootstrap, tmp_path, records=20) as scene:
        scene.produce(100)  # a millisecond apart
        scene.drain()
        outputs = [each for each in scene.outputs() if each.topic == scene.sink]
        outputs.sort(key=lambda each: each.timestamp_ms)
        producer = Producer({"bootstrap.servers": bootstrap})
        for each in (outputs[0], outputs[-1]):
            producer.produce(scene.sink, each.value, each.key, 0, headers=list(each.headers))
        assert producer.flush(PATIENCE_S) == 0
        since_ms = EPOCH_MS + 60
        since = datetime.fromtimestamp(since_ms / 1000, UTC).isoformat()
        code, line = run("--pipeline", str(scene.path), "--since", since, "--json")
        entries = [entry for receipt in scene.receipt_values() for entry in receipt["partitions"]]
        begins = {}
        for topic, partition in scene.partitions:
            first = min(s.offset for s in scene.sources() if s.partition == partition and s.timestamp_ms >= since_ms)
            spans = [(entry["from"], entry["to"]) for entry in entries if entry["partition"] == partition]
            begins[topic, partition] = next(low for low, high in spans if low <= first < high)
        identity = by_lineage(scene.dead_letters)(outputs[-1])
    assert min(begins.values()) > 0
    assert {(each["topic"], each["partition"]): each["start"] for each in line["audited"]} == begins
    assert sum(line["totals"].values()) == sum(scene.committed()[place] - begin for place, begin in begins.items())
    assert (code, line["finding_counts"]) == (1, {"duplicate": 1})
    assert identity is not None
    assert [tuple(each["source"].values()) for each in line["findings"]] == [identity[0]]


def test_the_line_can_be_the_whole_report(run: Run, tmp_path: Path) -> None:
    _, line = run("--depth", "offsets", "--json")
    assert line == json.loads((tmp_path / "report" / "audit.json").read_text())


def test_bad_arguments_have_their_code(run: Run) -> None:
    """3, of the arguments, of the pipeline file, of client settings; nothing was started."""
    assert [run(*args)[0] for args in (["--depth", "deep"], ["--pipeline", "/not/there.yaml"])] == [3, 3]


def test_a_security_setting_that_java_lacks_is_a_bad_argument(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECKON_KAFKA_SSL_CRL_LOCATION", "/crl")
    code, line = run()
    expected = "client setting ssl.crl.location: the audit's Java client has nothing equal"
    assert (code, line) == (3, {"exit_code": 3, "verdict": "bad arguments", "error": expected})


def test_what_nobody_expected_is_not_taken_for_findings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that ends with an exception ends with 1, which means findings."""

    def broken(_context: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("spark_batch.judge.judge", broken)
    code, line = run()
    assert (code, line["error"]) == (2, "RuntimeError: the audit did not come to its end")


def test_a8_what_retention_removes_meanwhile_is_looked_at_again(
    run: Run, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first scan fails, and log starts have moved since its cut: a new cut; without such a move the error would stand."""
    from spark_batch import judge as module  # noqa: PLC0415

    calls: list[object] = []
    right = module.judge

    def failing(context: Any) -> Any:
        calls.append(context.cut)
        if len(calls) == 1:
            raise RuntimeError("offsets out of range")
        return right(context)

    source = scene.partitions[0]
    moved = [{source: (0, 1)}, {}]
    monkeypatch.setattr("spark_batch.audit.moved_starts", lambda *_: moved.pop(0))
    monkeypatch.setattr("spark_batch.judge.judge", failing)
    code, _ = run("--depth", "offsets")
    assert (code, len(calls), moved) == (0, 2, [{}])


def test_a_broker_that_does_not_answer_cannot_be_judged(spark: SparkSession) -> None:
    options = {
        **java_options({"bootstrap.servers": "127.0.0.1:1"}),
        "default.api.timeout.ms": "500",
        "request.timeout.ms": "300",
    }
    with KafkaAdmin(spark, options) as admin, pytest.raises(CannotStartError, match=r"no answer from 127\.0\.0\.1:1: "):
        admin.topics(["any"])


def test_java_takes_the_security_settings(spark: SparkSession) -> None:
    """The JAAS line is read, and refused settings are told without their secrets: no connection is needed for either."""
    settings = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "SCRAM-SHA-256",
    }
    options = java_options({**settings, "sasl.username": "ann", "sasl.password": 'geheim "\\'})
    with KafkaAdmin(spark, options):
        pass
    broken = {**options, "sasl.jaas.config": options["sasl.jaas.config"].removesuffix('";')}
    with pytest.raises(AuditError) as caught, KafkaAdmin(spark, broken):
        pass
    assert "geheim" not in str(caught.value)
