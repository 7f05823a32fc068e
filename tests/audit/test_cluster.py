"""The same job by spark-submit on a standalone cluster: driver, executors and their Pythons are processes of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from spark_batch.model import Depth
from tests.audit.standalone import BIN, environment, standalone_cluster
from tests.support.pipelines import Scene
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

AUDIT = Path(__file__).parents[2] / "spark_batch" / "audit.py"
LIMIT_S = 240.0


def submit(
    master: str, scene: Scene, folder: Path, *args: str, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run spark_batch/audit.py, in another working folder."""
    submitted = [str(BIN / "spark-submit"), "--master", master]
    # What two executors of one core fit into; the cluster's addresses are loopback's.
    sizes = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "4"}
    hosts = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    submitted += [word for name, value in {**sizes, **hosts}.items() for word in ("--conf", f"{name}={value}")]
    command = [*submitted, str(AUDIT), "--pipeline", str(scene.path), "--out", str(folder / "report"), *args]
    return subprocess.run(
        command, cwd=folder, env=dict(env), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


@pytest.mark.timeout(480)  # LIMIT_S comes first, and says more
@pytest.mark.long  # `make cluster`, a stage of CI
def test_the_audit_runs_unchanged_on_a_cluster(bootstrap: str, tmp_path: Path) -> None:
    """Depth content, so that executors run the transform: spark-submit was given no jars and no Python files. Its exit code is the audit's,
    its output one line, and the page is there. An output by another hand is found."""
    with Scene(bootstrap, tmp_path, records=50) as scene, standalone_cluster(tmp_path) as master:
        scene.produce(200)
        scene.drain()
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(scene.sink, b"{}", headers=[("reckon.source", f"{scene.source}/9/0/0")])
        assert producer.flush(PATIENCE_S) == 0
        env = {**environment(), "RECKON_BOOTSTRAP_SERVERS": bootstrap}
        done = submit(master, scene, tmp_path, "--depth", Depth.CONTENT, env=env)
        logs = [path.read_text() for path in sorted(tmp_path.glob("work-*/*/*/stderr"))]
    assert done.returncode == 1, done.stderr[-4000:]
    (text,) = done.stdout.splitlines()
    line = json.loads(text)
    assert (line["verdict"], line["findings"]) == ("findings", {"orphan": 1})
    assert sum(line["records"].values()) == 200
    assert Path(line["page"]).stat().st_size > 0
    assert len(logs) == 2, "both workers ran an executor"
