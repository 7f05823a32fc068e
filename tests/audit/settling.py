"""Markers land a moment after a commit or an abort returned (A6): who reads before them sees less than there is, or an open transaction.

A world, or a scene that was worked off, is looked at when nothing of it is under way any more: then an audit has nothing to wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.pipelines import await_true

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from devkit.reader import Reader
    from devkit.workers import WorkerProcess
    from tests.support.pipelines import Scene

PATIENCE_S = 60.0


def await_settled(reader: Reader, topics: Iterable[str]) -> None:
    """Until no transaction is open below the ends that these topics have now: read_committed readers see all that is there.

    AssertionError after PATIENCE_S.
    """
    partitions = reader.partitions_of(topics)
    ends = reader.end_offsets(partitions, committed=False)

    def settled() -> bool:
        stable = reader.end_offsets(partitions)
        return all(stable[partition] >= end for partition, end in ends.items())

    await_true(settled, f"no transaction is open below {ends}", PATIENCE_S)


def drain(
    scene: Scene, instance: str = "one", env: Mapping[str, str] | None = None, *, within_s: float = PATIENCE_S
) -> None:
    """A worker without faults works off all there is in at most `within_s` seconds; then all that came of it can be read."""
    await_settled(
        scene.reader, scene.topics
    )  # or it would end before records whose marker lands after its look at the ends
    worker: WorkerProcess = scene.worker(instance, drain=True, env=env)
    assert worker.wait(within_s) == 0, worker.tail()
    scene.await_drained()
    await_settled(scene.reader, [scene.sink, scene.dead_letters, scene.receipts])
