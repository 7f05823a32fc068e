"""Requests that were held up on their way and have been sent again since: they arrive in a later transaction, and may not touch it (E3).

librdkafka lacks KIP-890's client part: its transactions follow each other under one epoch, and the broker takes a late request for one of
the transaction that is open now.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from devkit.ports import HOST
from devkit.reader import Reader
from tests.faults.holding import END_TXN, TXN_OFFSET_COMMIT, Held, HoldingProxy, broker_behind_proxy
from tests.support.pipelines import EPOCH_MS, Scene
from tests.support.waiting import PATIENCE_S, await_true
from transforms.loading import load_pipeline
from worker.doubt import Doubt
from worker.settings import resolve
from worker.transaction import TransactionalProducer
from worker.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.xdist_group("twice"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[str, HoldingProxy]]:
    with broker_behind_proxy() as place:
        yield place


class Writer:
    """The worker's producer, behind the proxy, and a group that is nobody's."""

    def __init__(self, scene: Scene, proxy: HoldingProxy, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RECKON_BOOTSTRAP_SERVERS", f"{HOST}:{proxy.port}")
        watchdog = Watchdog(grace_s=PATIENCE_S, call_limit_s=PATIENCE_S)
        self.scene = scene
        self.producer = TransactionalProducer(resolve(load_pipeline(scene.path)).producer, watchdog)
        settings = {"bootstrap.servers": scene.bootstrap, "group.id": scene.name, "isolation.level": "read_committed"}
        self.group = Consumer(settings)

    def transaction(self, value: bytes, end: int) -> None:
        """One output, and the group's offset of the source's one partition."""
        self.producer.begin()
        assert self.producer.produce([(self.scene.sink, value, b"key", 0, None, None, EPOCH_MS, None)]) == {}
        self.producer.commit([TopicPartition(self.scene.source, 0, end)], self.group.consumer_group_metadata())

    def outputs(self, reader: Reader) -> list[bytes | None]:
        return [record.value for record in reader.read([self.scene.sink])]

    def committed(self) -> int:
        """The group's offset, once none is pending any more."""
        (found,) = self.group.committed([TopicPartition(self.scene.source, 0)], PATIENCE_S)
        assert found.error is None
        return int(found.offset)


@pytest.fixture(params=[True, False], ids=["our rule", "without it"])
def ours(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a fresh producer follows what may have been sent twice. Without it: to show that there is something to be prevented."""
    if not request.param:
        monkeypatch.setattr(Doubt, "sent_twice", lambda *_: False)
        monkeypatch.setattr(Doubt, "note_broken_connection", lambda *_: None)
    return bool(request.param)


@pytest.fixture
def writer(
    place: tuple[str, HoldingProxy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, ours: bool
) -> Iterator[Writer]:
    bootstrap, proxy = place
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1) as scene:
        writer = Writer(scene, proxy, monkeypatch)
        writer.producer.open()
        yield writer
        writer.producer.close()
        writer.group.close()


def sent_twice(writer: Writer, proxy: HoldingProxy, key: int) -> Held:
    """A transaction that commits offset 10. Its request of this kind is held up, its connection lost, and the second one answered."""
    late = proxy.hold(key)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(writer.transaction, b"first", 10)
        assert late.came.wait(PATIENCE_S)
        late.hang_up()
        done.result(PATIENCE_S)
    assert writer.committed() == 10
    return late


def test_late_offsets_set_nothing_back(place: tuple[str, HoldingProxy], writer: Writer, *, ours: bool) -> None:
    """Those of the first transaction come between the offsets and the end of the second (DECISIONS 33)."""
    late = sent_twice(writer, place[1], TXN_OFFSET_COMMIT)
    end = place[1].hold(END_TXN)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(writer.transaction, b"second", 20)
        assert end.came.wait(PATIENCE_S)
        late.let_go()
        assert late.answered.wait(PATIENCE_S)
        end.let_go()
        done.result(PATIENCE_S)
    assert writer.committed() == (20 if ours else 10)


def test_a_late_end_commits_nothing(place: tuple[str, HoldingProxy], writer: Writer, *, ours: bool) -> None:
    """That of the first transaction comes when the second has written, and is about to send its offsets: it would be half done."""
    late = sent_twice(writer, place[1], END_TXN)
    offsets = place[1].hold(TXN_OFFSET_COMMIT)
    with ThreadPoolExecutor(1) as pool, Reader(writer.scene.bootstrap) as reader:
        done = pool.submit(writer.transaction, b"second", 20)
        assert offsets.came.wait(PATIENCE_S)
        late.let_go()
        assert late.answered.wait(PATIENCE_S)
        if ours:
            assert writer.outputs(reader) == [b"first"]
            offsets.let_go()
            done.result(PATIENCE_S)
            reader.await_stable([writer.scene.sink])
            assert (writer.outputs(reader), writer.committed()) == ([b"first", b"second"], 20)
        else:
            await_true(lambda: writer.outputs(reader) == [b"first", b"second"], "the second output, without its offset")
            assert writer.committed() == 10
            offsets.let_go()
