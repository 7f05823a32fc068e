"""Rules T1 to T9 (the unit of work), each against workers on a real broker."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import TYPE_CHECKING, Any, Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.broker import create_topics
from tests.support.pipelines import LASTING, Scene, events, faults, last_offsets
from tests.support.waiting import PATIENCE_S, await_true
from transforms.loading import load_pipeline
from worker.membership import NotAMemberError, parse_group_metadata
from worker.offsets import Offsets
from worker.settings import resolve
from worker.source import Source
from worker.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from worker.batch import Batch


@pytest.fixture
def scene(bootstrap: str, tmp_path: Path) -> Iterator[Scene]:
    with Scene(bootstrap, tmp_path) as scene:
        yield scene


def test_t1_the_committed_offset_is_that_after_the_last_processed_record(bootstrap: str, tmp_path: Path) -> None:
    """A worker that has prefetched the whole source and dies after three small transactions has committed these and nothing more."""
    with Scene(bootstrap, tmp_path, records=100) as scene:
        scene.produce(4000)
        worker = scene.worker(faults={"FAULT_KILL": "after_commit:3"})
        worker.wait(PATIENCE_S)
        scene.settle()

        assert faults(worker) == ["kill at after_commit"]
        receipts = scene.receipt_values()
        ends: dict[Any, int] = {}
        for receipt in receipts:
            ends |= {(part["topic"], part["partition"]): part["to"] for part in receipt["partitions"]}
        assert [sum(part["read"] for part in receipt["partitions"]) for receipt in receipts] == [100, 100, 100]
        assert ends == scene.committed()
        processed = [s for s in scene.sources() if s.offset < ends.get((s.topic, s.partition), 0)]
        assert len(processed) == 300
        expected = {(e.topic, e.key, e.timestamp_ms) for s in processed if (e := scene.expected(s))}
        assert expected == {(record.topic, record.key, record.timestamp_ms) for record in scene.outputs()}

        scene.drain(env={"RECKON_TRANSACTION_RECORDS": "5000"})
        assert scene.problems() == []


def test_t1_commit_markers_at_the_end_of_the_source_are_not_counted(scene: Scene) -> None:
    """The committed offset is that after the last record, though the log ends with markers and aborted records behind it."""
    scene.produce_in_transactions(900, aborted_every=2)
    scene.drain()

    assert scene.problems() == []
    ends = scene.reader.end_offsets(scene.partitions)
    assert last_offsets(scene.sources(), scene.partitions) == scene.committed()
    assert all(ends[partition] > committed for partition, committed in scene.committed().items())


def test_t2_after_an_abort_the_same_records_come_again(bootstrap: str, tmp_path: Path) -> None:
    """With a share of the transactions aborted, one partition becomes one partition in exactly the source's order."""
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1, records=300) as scene:
        scene.produce(3000)
        # Without short timeouts: those of a slow machine would be aborts that nobody told of.
        worker = scene.worker(drain=True, faults={"FAULT_ABORT_SHARE": "0.4", "FAULT_SEED": "3"}, short=False)
        assert worker.wait(PATIENCE_S) == 0
        scene.settle()

        assert len(faults(worker)) >= 3
        assert len(faults(worker)) == len(events(worker, "aborting"))
        in_order = [e.timestamp_ms for s in scene.sources() if (e := scene.expected(s)) and e.topic == scene.sink]
        assert in_order == [record.timestamp_ms for record in scene.outputs() if record.topic == scene.sink]
        assert scene.problems() == []
        assert len(scene.outputs(committed=False)) > len(scene.outputs()), "no aborted copies: nothing was aborted"


@pytest.mark.parametrize("point", ["before_offsets", "before_commit"])
def test_t3_a_worker_whose_group_moved_on_cannot_commit(bootstrap: str, tmp_path: Path, point: str) -> None:
    """A zombie stands still inside a transaction until another worker has done its work, and wakes up: nothing is doubled.

    By T7 its transaction is over, too, before its session is, and the broker may say either; a commit that only the group can refuse is
    made in tests/faults/test_expelled.py. The numbering of its receipts has no gap either.
    """
    with Scene(bootstrap, tmp_path, records=200) as scene:
        scene.produce(2000)
        zombie = scene.worker("zombie", faults={"FAULT_STOP": f"{point}:3"})
        await_true(lambda: faults(zombie), "the zombie stands still")
        heir = scene.worker("heir")
        scene.await_drained()
        done = scene.committed()

        zombie.resume()
        await_true(lambda: "resumed" in faults(zombie), "the zombie goes on")
        await_true(
            lambda: events(zombie, "lost") or events(zombie, "revoked"), "the zombie knows that its partitions are gone"
        )
        assert [f"stop at {point}", "resumed"] == faults(zombie)
        assert done == scene.committed()

        scene.produce(1000)
        scene.await_drained()
        for worker in (zombie, heir):
            worker.terminate()
            assert worker.wait(PATIENCE_S) == 0
        assert scene.problems() == []


def test_t3_the_commit_carries_the_current_member_and_generation(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before joining there is nothing to commit with; after a rebalance the generation is the new one, the member the broker's."""
    with open_source(scene, monkeypatch) as (source, offsets):
        with pytest.raises(NotAMemberError):
            source.group_metadata()
        source.subscribe()
        collect_until(source, lambda: len(offsets.owned) == 2, "both partitions are ours")
        member, generation = parse_group_metadata(source.group_metadata())
        assert [member] == scene.members()

        with other_member(scene) as other:
            later: list[tuple[str, int]] = []

            def has_moved_on() -> bool:
                # A generation is there before the poll that hands its assignment over: until then there is nothing to commit with.
                with contextlib.suppress(NotAMemberError):
                    later.append(parse_group_metadata(source.group_metadata()))
                    return len(offsets.owned) == 1 and bool(other.assigned)
                return False

            collect_until(source, has_moved_on, "each has one partition, and we have the metadata of a member")
            assert member == later[-1][0]
            assert later[-1][1] > generation


def test_t4_a_pipeline_that_filters_everything_moves_on_and_leaves_receipts(bootstrap: str, tmp_path: Path) -> None:
    """No output, but offsets and receipts of all that was read."""
    with Scene(bootstrap, tmp_path, steps='[{filter: "false"}]', more="tombstones: drop") as scene:
        scene.produce(5, partition=0)  # the sixth would be malformed
        scene.drain()

        assert scene.outputs() == []
        assert {scene.partitions[0]: 5} == scene.committed()
        (receipt,) = scene.receipt_values()
        assert len(receipt["partitions"][0].pop("topic_id")) == 22
        assert receipt["partitions"] == [
            {
                "topic": scene.source,
                "partition": 0,
                "from": 0,
                "to": 5,
                "read": 5,
                "filtered": 5,
                "dead_lettered": 0,
                "written": {},
            }
        ]


def test_t4_an_idle_worker_begins_no_transaction(bootstrap: str, tmp_path: Path) -> None:
    """The worker is set to die when it begins its second transaction: it lives while nothing comes, and dies of the next record."""
    with Scene(bootstrap, tmp_path, partitions=1) as scene:
        scene.produce(1)
        # Without short timeouts: a first transaction that takes too long would be begun a second time.
        worker = scene.worker(faults={"FAULT_KILL": "after_begin:2"}, short=False)
        scene.await_committed(1)
        scene.settle()
        ends = scene.reader.end_offsets([(scene.receipts, 0)])
        assert ends == {(scene.receipts, 0): 2}, "a receipt and its marker"

        time.sleep(1.5)  # many polls of an idle worker: nothing else shows that nothing is done
        assert worker.alive
        assert ends == scene.reader.end_offsets([(scene.receipts, 0)], committed=False)

        scene.produce(1)
        worker.wait(PATIENCE_S)
        assert faults(worker) == ["kill at after_begin"]


def test_t5_an_input_of_which_one_output_is_refused_leaves_none(bootstrap: str, tmp_path: Path) -> None:
    """A tombstone goes to two topics, one of which refuses its large key: neither topic shows it, the dead letters do."""
    steps = '[{route: [{when: "n < 0", to: "PLACE.small"}, {to: "PLACE.large"}]}]'
    with Scene(bootstrap, tmp_path, steps=steps) as scene:
        scene.path.write_text(scene.path.read_text().replace("PLACE", scene.name))
        small, large = f"{scene.name}.small", f"{scene.name}.large"
        create_topics(bootstrap, {small: 1}, {"max.message.bytes": "1000"})
        create_topics(bootstrap, {large: 1})
        large_key = random.Random(1).randbytes(3000)  # which no compression makes small
        producer = Producer({"bootstrap.servers": bootstrap})
        for key in (b"a", large_key, b"c"):
            producer.produce(scene.source, None, key, 0)
        assert producer.flush(PATIENCE_S) == 0
        scene.drain()

        found = scene.reader.read([small, large, scene.dead_letters])
        assert [(small, b"a"), (small, b"c")] == [(r.topic, r.key) for r in found if r.topic == small]
        assert [(large, b"a"), (large, b"c")] == [(r.topic, r.key) for r in found if r.topic == large]
        assert [large_key] == [record.key for record in found if record.topic == scene.dead_letters]


def test_t6_a_restart_ends_the_open_transaction_of_its_predecessor_at_once(bootstrap: str, tmp_path: Path) -> None:
    """Killed inside a transaction: readers are stuck, also when a producer with another id starts, until the same instance is back.

    The transaction's timeout of ten minutes cannot be the cause. Static membership, so that the group does not wait for the dead either.
    """
    patient = {
        "RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": "600000",
        "RECKON_CONSUMER_SESSION_TIMEOUT_MS": "610000",
        "RECKON_CONSUMER_MAX_POLL_INTERVAL_MS": "620000",
        "RECKON_CONSUMER_GROUP_INSTANCE_ID": "one",
    }
    with Scene(bootstrap, tmp_path, sinks=1, records=200) as scene:
        scene.produce(1000)
        killed = scene.worker(
            faults={"FAULT_KILL": "before_commit:2"}, env=patient
        )  # all outputs are delivered by then
        killed.wait(PATIENCE_S)
        assert faults(killed) == ["kill at before_commit"]
        sink = [(scene.sink, 0)]
        stable = scene.reader.end_offsets(sink)
        assert scene.reader.end_offsets(sink, committed=False)[scene.sink, 0] > stable[scene.sink, 0]

        stranger = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{scene.name}/two"})
        stranger.init_transactions(PATIENCE_S)
        time.sleep(1.5)  # nothing else shows that nothing happens
        assert stable == scene.reader.end_offsets(sink)

        heir = scene.worker(env=patient)
        await_true(lambda: scene.reader.end_offsets(sink) != stable, "the last stable offset moves")
        scene.await_drained()
        heir.terminate()
        assert heir.wait(PATIENCE_S) == 0
        assert scene.problems() == []


def test_t7_timeouts_in_the_wrong_order_are_refused_by_name(scene: Scene) -> None:
    """Exit code 2, and a message with both names and both values."""
    worker = scene.worker(
        env={
            "RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": "50000",
            "RECKON_CONSUMER_SESSION_TIMEOUT_MS": "45000",
            "RECKON_CONSUMER_MAX_POLL_INTERVAL_MS": "45000",
        }
    )
    assert worker.wait(PATIENCE_S) == 2
    text = worker.log_path.read_text()
    assert (
        "producer transaction.timeout.ms is 50000 and consumer session.timeout.ms is 45000: the first must be lower"
        in text
    )
    assert (
        "consumer session.timeout.ms is 45000 and consumer max.poll.interval.ms is 45000: the first must be lower"
        in text
    )


def test_t8_settings_that_are_the_guarantee_are_refused(scene: Scene) -> None:
    """Exit code 2, and one message per setting; nothing was begun."""
    worker = scene.worker(
        env={
            "RECKON_PRODUCER_ACKS": "1",
            "RECKON_PRODUCER_ENABLE_IDEMPOTENCE": "false",
            "RECKON_CONSUMER_ENABLE_AUTO_COMMIT": "true",
            "RECKON_CONSUMER_ISOLATION_LEVEL": "read_uncommitted",
            "RECKON_PRODUCER_TRANSACTIONAL_ID": "mine",
        }
    )
    assert worker.wait(PATIENCE_S) == 2
    text = worker.log_path.read_text()
    for problem in (
        "producer: acks=1 (environment) would break exactly-once: it is pinned to all",
        "producer: enable.idempotence=false (environment) would break exactly-once: it is pinned to true",
        "consumer: enable.auto.commit=true (environment) would break exactly-once: it is pinned to false",
        "consumer: isolation.level=read_uncommitted (environment) would break exactly-once: it is pinned to read_committed",
        "producer: transactional.id (environment) cannot be set",
    ):
        assert problem in text


def test_t9_rebalances_happen_only_inside_collect(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the loop is busy with a batch another member joins: nothing changes hands until the loop collects again, on its own thread.

    What is collected in that call and belongs to a partition that goes is not in the batch.
    """
    scene.produce(400)
    threads: list[int] = []
    with open_source(scene, monkeypatch) as (source, offsets):
        release = source._release

        def spy(*args: Any) -> None:
            threads.append(threading.get_ident())
            release(*args)

        def generation() -> int:
            return parse_group_metadata(source.consumer.consumer_group_metadata())[1]

        monkeypatch.setattr(source, "_release", spy)
        source.subscribe()
        batch = collect_until(source, lambda: len(offsets.owned) == 2, "both partitions are ours")
        before = generation()
        with other_member(scene) as other:
            await_true(lambda: generation() > before, "the client has heard in the background that the group moves on")
            assert len(scene.members()) == 2
            assert set(scene.partitions) == offsets.owned
            assert set(batch.runs) <= offsets.owned
            assert threads == []

            batch = collect_until(source, lambda: len(offsets.owned) == 1 and other.assigned, "each has one partition")
            assert [threading.get_ident()] == threads
            assert set(batch.runs) <= offsets.owned


@contextlib.contextmanager
def open_source(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Source, Offsets]]:
    """The worker's source in this process, not subscribed yet; closed in the end."""
    for name, value in {**LASTING, "RECKON_BOOTSTRAP_SERVERS": scene.bootstrap, "RECKON_INSTANCE_ID": "here"}.items():
        monkeypatch.setenv(name, value)
    offsets = Offsets()
    source = Source(resolve(load_pipeline(scene.path)), offsets, Watchdog(grace_s=60, call_limit_s=60), lambda _: {})
    with contextlib.closing(source):
        yield source, offsets


def collect_until(source: Source, condition: Callable[[], object], what: str) -> Batch:
    """Collect, committing nothing, until the condition holds; returns the last batch. AssertionError with ``what``."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        batch = source.collect()
        if condition():
            return batch
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"


class other_member:  # noqa: N801 - a context manager used like a function
    """Another member of the group, polled in a thread of its own."""

    def __init__(self, scene: Scene) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": scene.bootstrap,
                "group.id": scene.name,
                "partition.assignment.strategy": "cooperative-sticky",
                "heartbeat.interval.ms": 300,
                "enable.auto.commit": False,
            }
        )
        self.assigned: list[TopicPartition] = []
        self._consumer.subscribe([scene.source], on_assign=lambda _, partitions: self.assigned.extend(partitions))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _poll(self) -> None:
        while not self._stop.is_set():
            self._consumer.poll(0.05)
