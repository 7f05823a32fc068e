"""Whether a worker is inside a transaction is the broker's word: one that is not is never said to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devkit import Cluster, oracle
from devkit.demo import PIPELINE
from devkit.orphan import kill_inside_transaction
from devkit.reader import Reader
from devkit.workers import WorkerError, WorkerProcess

if TYPE_CHECKING:
    from pathlib import Path


def test_an_idle_worker_is_never_inside_and_goes_on_unharmed(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topics(dict.fromkeys((oracle.SOURCE, *oracle.OUTPUTS), 1))
    with (
        Reader(cluster.bootstrap) as reader,
        WorkerProcess(PIPELINE, "idle", cluster.bootstrap, tmp_path / "idle.log") as worker,
    ):
        worker.wait_for_log("assigned")
        with pytest.raises(WorkerError, match=r"worker idle was stopped \d+ times within 2 s and was never inside"):
            kill_inside_transaction(worker, reader, "orders/idle", timeout_s=2)
        worker.terminate()
        assert worker.wait() == 0
        with pytest.raises(WorkerError, match="worker idle ended before it was killed"):
            kill_inside_transaction(worker, reader, "orders/idle", timeout_s=2)
