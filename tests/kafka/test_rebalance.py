"""Rules R1 to R5: partitions change hands under load, with both group protocols, and nothing is lost, doubled or reordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from tests.support.pipelines import LASTING, STEPS, Scene, events, faults, under_load
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from pathlib import Path

    from devkit.verify import Partition
    from devkit.workers import WorkerProcess


PROTOCOLS = {"classic": LASTING, "consumer": {"RECKON_CONSUMER_GROUP_PROTOCOL": "consumer"}}

HOLDS = {
    "RECKON_RECORD_BUDGET_MS": "200000",
    "RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": "210000",
    "RECKON_CONSUMER_SESSION_TIMEOUT_MS": "220000",
}
"""For a worker that a test keeps at a record, inside a transaction, for as long as it likes."""


def owned(worker: WorkerProcess) -> int:
    """How many partitions the worker has, by its log."""
    changes = [e for e in worker.logs() if e.get("event") in ("assigned", "revoked", "lost")]
    return int(changes[-1]["owned"]) if changes else 0


def at_work(scene: Scene) -> set[str]:
    """The instances that have committed something, by their receipts."""
    return {str(receipt["transactional_id"]).removeprefix(f"{scene.name}/") for receipt in scene.receipt_values()}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_r1_r3_r4_one_three_one_workers_under_load(bootstrap: str, tmp_path: Path, name: str) -> None:
    """Two workers join a third and leave it again while records come in: exact set, exact order per key, receipts tile.

    ``classic`` is cooperative-sticky, ``consumer`` is KIP-848. Each worker has worked, and partitions were revoked under way.
    """
    settings = PROTOCOLS[name]
    wanted = {"one", "two", "three"}
    with Scene(bootstrap, tmp_path, partitions=6, records=200) as scene:
        scene.produce(600)
        first = scene.worker("one", short=False, env=settings)
        scene.await_committed(300)
        with under_load(scene):
            others = [scene.worker(instance, short=False, env=settings) for instance in ("two", "three")]
            workers = [first, *others]
            await_true(lambda: [owned(worker) for worker in workers] == [2, 2, 2], "two partitions for each")
            reached = sum(scene.committed().values())
            scene.await_committed(reached + 600)
            await_true(lambda: wanted <= at_work(scene), "each has committed something")
            for worker in others:
                worker.terminate()
            assert [worker.wait(PATIENCE_S) for worker in others] == [0, 0]
            await_true(lambda: owned(first) == 6, "all partitions are back")
        scene.await_drained()
        first.terminate()
        assert first.wait(PATIENCE_S) == 0

        assert scene.problems() == []
        assert wanted == at_work(scene)
        assert events(first, "revoked")


def test_r2_a_worker_that_lost_its_partitions_commits_nothing_of_them(bootstrap: str, tmp_path: Path) -> None:
    """Under load a worker stands still beyond its session: another takes over; back again, it learns that it lost, and goes on."""
    with Scene(bootstrap, tmp_path, partitions=4, records=200) as scene:
        scene.produce(400)
        sleeper = scene.worker("sleeper")
        with under_load(scene):
            scene.await_committed(200)
            sleeper.pause()
            heir = scene.worker("heir")
            await_true(lambda: owned(heir) == 4, "the heir has all partitions")
            sleeper.resume()
            await_true(lambda: events(sleeper, "lost"), "the sleeper knows")
            await_true(lambda: owned(sleeper) > 0, "the sleeper works again")
        scene.await_drained()
        for worker in (sleeper, heir):
            worker.terminate()
            assert worker.wait(PATIENCE_S) == 0
        assert scene.problems() == []


def test_r1_partitions_that_a_killed_static_member_leaves_to_nobody_are_taken_up(
    bootstrap: str, tmp_path: Path
) -> None:
    """It is killed between the generation in which it has to give a partition up and the one in which another gets it, and comes back.

    Without a look at the group's assignment the partition stands still until the next rebalance, whenever that is.
    """
    gate = tmp_path / "gate"
    steps = STEPS.replace("]", ", {python: tests.support.gate:held}]")
    with Scene(bootstrap, tmp_path, partitions=2, steps=steps) as scene:
        # None of them loses its session: a rebalance for that would give the partition away, too.
        first = scene.worker("first", env={"GATE": str(gate), **HOLDS, **LASTING})
        scene.produce(100)
        scene.await_committed(100)
        gate.touch()
        scene.produce(100)
        await_true(gate.with_suffix(".reached").exists, "it is at work, and does not poll")
        second = scene.worker("second", short=False, env=LASTING)
        await_true(lambda: events(second, "assigned"), "the group has a new generation")
        assert events(second, "assigned")[0]["owned"] == 0
        first.kill()
        gate.unlink()
        # Of the two it is the one that looks, by its id, and it does so 5 s after its session timeout.
        again = scene.worker("first", env={"RECKON_CONSUMER_SESSION_TIMEOUT_MS": "10000"})
        await_true(lambda: events(again, "assigned"), "it is back")
        assert (owned(again), owned(second)) == (1, 0)

        await_true(lambda: owned(again) + owned(second) == 2, "every partition has an owner")
        scene.produce(100)
        scene.await_drained()
        for worker in (again, second):
            worker.terminate()
            assert worker.wait(PATIENCE_S) == 0
        told = [len(events(worker, "joining anew for partitions that nobody has")) for worker in (again, second)]
        assert told == [1, 0]
        assert scene.problems() == []


def test_r5_records_of_new_partitions_are_processed_from_their_beginning(bootstrap: str, tmp_path: Path) -> None:
    """Partitions are added under load, and have records before the worker knows of them: with start=latest none is skipped."""
    with Scene(bootstrap, tmp_path, partitions=1, start="latest") as scene:
        scene.produce(100)
        quickly = {"RECKON_CONSUMER_TOPIC_METADATA_REFRESH_INTERVAL_MS": "500"}
        worker = scene.worker(short=False, env=LASTING | quickly)
        scene.await_committed(100)
        scene.produce(50)
        scene.await_committed(150)
        worker.pause()  # so that it cannot know the new partitions before they have records
        scene.add_partitions(3)
        for number, records in ((1, 40), (2, 60), (0, 20)):
            scene.produce(records, partition=number)
        worker.resume()
        scene.await_drained()
        worker.terminate()
        assert worker.wait(PATIENCE_S) == 0

        assert scene.problems(starts={(scene.source, 0): 100}) == []
        assert {(scene.source, 0): 170, (scene.source, 1): 40, (scene.source, 2): 60} == scene.committed()


def test_r5_topics_that_a_pattern_takes_later_are_read_from_their_beginning(bootstrap: str, tmp_path: Path) -> None:
    """A topic is created under load and has records before the worker knows of it: with start=latest none is skipped.

    With the classic protocol: with KIP-848 the broker looks for new topics, at an interval of its own (ten minutes by default).
    """
    with Scene(bootstrap, tmp_path, partitions=2, start="latest", pattern=True) as scene:
        scene.produce(100)
        skipped = {p: sum(s.partition == p[1] for s in scene.sources()) for p in scene.partitions}
        quickly = {"RECKON_KAFKA_TOPIC_METADATA_REFRESH_INTERVAL_MS": "500"}
        worker = scene.worker(short=False, env=LASTING | quickly)
        scene.await_committed(100)
        scene.produce(50)
        scene.add_topic(f"{scene.source}.later", 2)
        scene.produce(70)
        scene.await_drained()
        scene.produce(30)
        scene.await_drained()
        worker.terminate()
        assert worker.wait(PATIENCE_S) == 0

        assert scene.problems(starts=skipped) == []
        assert sum(scene.committed().values()) == 250


def test_r5_start_latest_skips_what_was_there_and_nothing_that_came_after(bootstrap: str, tmp_path: Path) -> None:
    """The first worker of a new group dies before it commits its first records: its successor begins where it began."""
    with Scene(bootstrap, tmp_path, start="latest") as scene:
        scene.produce(300)
        starts: dict[Partition, int] = {p: sum(s.partition == p[1] for s in scene.sources()) for p in scene.partitions}
        # Without short timeouts: a first commit that takes too long would be tried a second time.
        first = scene.worker(faults={"FAULT_KILL": "before_commit:2"}, short=False)
        scene.await_committed(300)
        assert starts == scene.committed()
        scene.produce(200)
        first.wait(PATIENCE_S)
        assert faults(first) == ["kill at before_commit"]
        assert starts == scene.committed()

        scene.produce(200)
        scene.drain()
        assert scene.problems(starts) == []


def test_r5_workers_that_begin_a_new_group_together_all_begin_at_the_end(bootstrap: str, tmp_path: Path) -> None:
    """The first generation: one of them looks up its partitions when the other has its pins committed long since.

    A plain consumer holds the partitions until both have joined, because it gives nothing up without a poll; when it leaves they get them
    in one rebalance.
    """
    with Scene(bootstrap, tmp_path, start="latest") as scene:
        scene.produce(300)
        starts: dict[Partition, int] = {p: sum(s.partition == p[1] for s in scene.sources()) for p in scene.partitions}
        holder = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": scene.name,
                "partition.assignment.strategy": "cooperative-sticky",
                "heartbeat.interval.ms": 300,
            }
        )
        holder.subscribe([scene.source])
        await_true(lambda: holder.poll(0.1) is None and len(holder.assignment()) == 2, "the holder has all")
        quick = scene.worker("quick", short=False, env=LASTING)
        slow = scene.worker("slow", short=False, env=LASTING, faults={"FAULT_ASSIGN_DELAY_MS": "1500"})
        await_true(lambda: len(scene.members()) == 3, "both have joined")
        holder.close()
        await_true(lambda: starts == scene.committed(), "both have pinned their partition")
        assert faults(slow) == ["late look-up"]
        scene.produce(200)
        scene.await_drained()
        for worker in (quick, slow):
            worker.terminate()
            assert worker.wait(PATIENCE_S) == 0
            assert owned(worker) == 0

        assert scene.problems(starts) == []
