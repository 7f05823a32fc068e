"""Kafka's TransactionalMessageCopier scenario (its transactions_test.py) in small, a kill at every point of a transaction, and mutants.

750 records per transaction, a third of the transactions aborted at random, both workers killed three times, each time after another
fifth of the records; a concurrent read_committed consumer must see what the verifier sees in the end.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

import pytest

from tests.support.pipelines import Onlooker, Scene, faults
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from pathlib import Path

    from devkit.workers import WorkerProcess

STATIC = {"RECKON_CONSUMER_GROUP_INSTANCE_ID": "one"}
"""A restarted worker gets its partitions back at once, where the session's end would be waited for."""

SEEDS = ("15", "50")
"""Of their first 30 draws 10 are below 0.33, the second one among them: a life of two transactions has an abort."""

KILLS = 3
TRIES, MORE = 10, 6_000
"""So often a kill is tried, and so many records are added for the next try."""

POINTS = (
    "before_begin:2",
    "after_begin:2",
    "between_produces:900",
    "before_offsets:2",
    "after_offsets:2",
    "before_commit:2",
    "inside_commit:2",
    "after_commit:2",
)


@pytest.mark.parametrize(("sources", "sinks", "workers"), [(2, 3, 2), (1, 1, 1)])
def test_transactional_message_copier(bootstrap: str, tmp_path: Path, sources: int, sinks: int, workers: int) -> None:
    """Exact set, exact order per key and source partition, no duplicate, receipts tile; with one partition also the exact order."""
    records = 9_000 * workers
    with Scene(bootstrap, tmp_path, partitions=sources, sinks=sinks, records=750) as scene:
        scene.produce(records)
        running = [
            scene.worker(
                f"copier-{number}",
                faults={"FAULT_ABORT_SHARE": "0.33", "FAULT_DELAY_MS": "80", "FAULT_SEED": SEEDS[number]},
                env={"RECKON_CONSUMER_GROUP_INSTANCE_ID": f"copier-{number}"},
            )
            for number in range(workers)
        ]
        onlooker = Onlooker(bootstrap, [(scene.sink, number) for number in range(sinks)])
        with onlooker:
            for kill in range(1, KILLS + 1):
                scene.await_committed(records * kill // 5)
                kill_at_work(scene, running)
            scene.await_drained()
            stop(running)
            scene.settle()
            copies = sorted((r for r in scene.outputs() if r.topic == scene.sink), key=itemgetter(1, 2))
            await_true(lambda: len(onlooker.seen) >= len(copies), "the onlooker is done")

        assert scene.problems() == []
        assert sorted(onlooker.seen, key=itemgetter(0, 1)) == [(r.partition, r.offset, r.value) for r in copies]
        aborts = sum(fault == "abort" for worker in running for fault in faults(worker))
        assert aborts >= records / 750 / 10, "too few aborts for a share of a third"
        assert len(scene.outputs(committed=False)) > len(scene.outputs())
        if (sources, sinks) == (1, 1):
            in_order = [e.timestamp_ms for s in scene.sources() if (e := scene.expected(s)) and e.topic == scene.sink]
            assert in_order == [record.timestamp_ms for record in copies]


def kill_at_work(scene: Scene, workers: list[WorkerProcess]) -> None:
    """SIGKILL for all of them while there is work left, and a restart. Where this process came too late for that, more work, and again."""
    for _ in range(TRIES):
        for worker in workers:
            assert worker.alive
            worker.kill()
        done, ends = scene.committed(), scene.reader.end_offsets(scene.partitions)
        for worker in workers:
            worker.start()
        if any(done.get(partition, 0) < end for partition, end in ends.items()):
            return
        scene.produce(MORE)
        scene.await_committed(sum(done.values()) + 1)
    raise AssertionError(f"killed {TRIES} times when all was done: the kills prove nothing")


def stop(workers: list[WorkerProcess]) -> None:
    for worker in workers:
        worker.terminate()
    assert [0] * len(workers) == [worker.wait(PATIENCE_S) for worker in workers]


@pytest.mark.long  # tests/faults/test_share.py dies at each of these points, before three judges
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_of_a_transaction_loses_and_doubles_nothing(
    bootstrap: str, tmp_path: Path, point: str
) -> None:
    """SIGKILL where it hurts, a restart, and the outputs, dead letters and receipts are those of an undisturbed run."""
    with Scene(bootstrap, tmp_path, records=400) as scene:
        scene.produce(1600)
        killed = scene.worker(faults={"FAULT_KILL": point}, env=STATIC)
        assert killed.wait(PATIENCE_S) == -9
        assert [f"kill at {point.partition(':')[0]}"] == faults(killed)
        assert sum(scene.committed().values()) < 1600

        scene.drain(env=STATIC)
        assert scene.problems() == []


@pytest.mark.parametrize(
    ("mutant", "fault", "finding"),
    [
        ("no-rewind", {"FAULT_ABORT_SHARE": "0.33"}, "missing"),
        ("outputs-outside", {"FAULT_ABORT_SHARE": "0.33"}, "duplicated"),
        ("offsets-early", {"FAULT_KILL": "before_commit:3"}, "missing"),
        ("unknown-is-failed", {"FAULT_UNKNOWN_SHARE": "0.5"}, "duplicated"),
    ],
)
def test_the_judge_sees_a_broken_worker(
    bootstrap: str, tmp_path: Path, mutant: str, fault: dict[str, str], finding: str
) -> None:
    """Each mutant loses or doubles records under a fault that the worker survives, and the verifier says so."""
    with Scene(bootstrap, tmp_path, records=100) as scene:
        scene.produce(800)
        broken = scene.worker(drain=True, faults={"FAULT_MUTANT": mutant, "FAULT_SEED": SEEDS[0], **fault}, env=STATIC)
        broken.wait(PATIENCE_S)
        assert faults(broken)
        scene.drain(env=STATIC)
        assert [line for line in scene.problems() if line.startswith(f"{finding}: ")]


def test_a_commit_of_unknown_outcome_is_resolved_either_way(bootstrap: str, tmp_path: Path) -> None:
    """E3, E4: half of the commits end in a fatal error, half of these after they took place: nothing lost, nothing doubled."""
    with Scene(bootstrap, tmp_path, records=100) as scene:
        scene.produce(1200)
        # Without short timeouts: those of a slow machine would be outcomes that nobody told of.
        worker = scene.worker(drain=True, faults={"FAULT_UNKNOWN_SHARE": "0.5", "FAULT_SEED": "2"}, short=False)
        assert worker.wait(PATIENCE_S) == 0
        told = faults(worker)
        assert {f"unknown outcome, committed: {outcome}" for outcome in (True, False)} == set(told)
        assert scene.problems() == []
        # Where it had not taken place the numbering goes on, else it begins anew: per incarnation it has no gap.
        assert len({r["incarnation"] for r in scene.receipt_values()}) <= 1 + told.count(
            "unknown outcome, committed: True"
        )
