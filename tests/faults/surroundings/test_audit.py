"""The audit on a broker with passwords and ACLs: the same pipeline file, the same environment as the worker's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType  # type: ignore[attr-defined] # its stubs export less than it does

from devkit.workers import ROOT
from tests.faults.surroundings.secured import PASSWORD, credentials, guard, needed
from tests.support.pipelines import Scene

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.surroundings.secured import SecuredCluster

pytestmark = [pytest.mark.xdist_group("secured broker"), pytest.mark.long]

LIMIT_S = 110.0


def audited(scene: Scene, env: dict[str, str], out: Path) -> tuple[int, dict[str, Any], str]:
    """(exit code, the line on stdout, stderr) of `reckon audit` at depth records, without RECKON_ settings but these."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RECKON_")}
    command = [sys.executable, "-m", "worker", "audit", "--pipeline", str(scene.path), "--out", str(out)]
    done = subprocess.run(
        [*command, "--depth", "records"],
        cwd=ROOT,
        env=clean | env,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    (line,) = done.stdout.splitlines()
    return done.returncode, json.loads(line), done.stderr


def test_an_auditor_with_the_rights_to_read_and_one_without(secured: SecuredCluster, tmp_path: Path) -> None:
    """A user of its own: Read and DescribeConfigs on the topics, Describe on the group and on the transactional ids: COMPLETE. Without Read
    on the receipts: exit code 2 and the topic's name. No password in any output.
    """
    with Scene(secured.bootstrap, tmp_path, records=50) as scene:
        guard(scene)
        scene.produce(200)
        worker = secured.user()
        secured.allow(worker, needed(scene).values())
        scene.drain(env=credentials(secured, worker))
        topics = (scene.source, scene.sink, scene.dead_letters, scene.receipts)
        reads = {topic: (ResourceType.TOPIC, topic, AclOperation.READ) for topic in topics}
        others = [
            *((ResourceType.TOPIC, topic, AclOperation.DESCRIBE_CONFIGS) for topic in topics),
            (ResourceType.GROUP, scene.name, AclOperation.DESCRIBE),
            (ResourceType.TRANSACTIONAL_ID, f"{scene.name}/one", AclOperation.DESCRIBE),
        ]
        auditor = secured.user()
        secured.allow(auditor, [*reads.values(), *others])
        code, line, errors = audited(scene, credentials(secured, auditor), tmp_path / "report")
        assert (code, line.get("verdict"), line.get("findings")) == (0, "complete", {}), (line, errors[-3000:])
        assert sum(line["records"].values()) == 200

        secured.forbid(auditor, [reads[scene.receipts]])
        code, line, errors = audited(scene, credentials(secured, auditor), tmp_path / "refused")
        assert code == 2, (line, errors[-3000:])
        assert scene.receipts in line["error"]
        assert all(PASSWORD not in text for text in (errors, json.dumps(line)))
    del scene.reader
