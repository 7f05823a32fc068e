"""The cut over a cluster that changes meanwhile. On a real one: tests/audit/test_cut.py."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from spark_batch import cut as module
from spark_batch.cut import Topics, take_cut
from spark_batch.errors import CannotJudgeError
from spark_batch.kafka_admin import Topic
from spark_batch.model import Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spark_batch.kafka_admin import KafkaAdmin
    from spark_batch.model import Cut, Partition

IN, OUT = ("in", 0), ("out", 0)
TOPICS = Topics(("in",), ("out",))


class Cluster:
    """As KafkaAdmin sees it. `then` runs after every look at the group's offsets."""

    def __init__(self, then: Callable[[Cluster], None] = lambda _: None) -> None:
        self.partitions = {"in": 1, "out": 1}
        self.offsets: dict[Partition, int] = {IN: 50}
        self.high: dict[Partition, int] = {IN: 60, OUT: 100}
        self.stable: dict[Partition, list[int]] = {}
        """Last stable offsets in the order in which they are told, the last one for good; else the high watermark."""
        self.looks = 0
        self._then = then

    def names(self) -> set[str]:
        return set(self.partitions)

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        return {name: Topic(f"id of {name}", self.partitions[name]) for name in names if name in self.partitions}

    def committed(self, _group: str, partitions: Iterable[Partition], _wait_s: float) -> dict[Partition, int]:
        found = {partition: self.offsets[partition] for partition in partitions if partition in self.offsets}
        self.looks += 1
        self._then(self)
        return found

    def starts(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, 0)

    def ends(self, partitions: Iterable[Partition], *, committed: bool) -> dict[Partition, int]:
        return {each: self._stable(each) if committed else self.high.get(each, 0) for each in partitions}

    def _stable(self, partition: Partition) -> int:
        told = self.stable.get(partition, [self.high.get(partition, 0)])
        return told.pop(0) if len(told) > 1 else told[0]

    def open_producers(self, partitions: Iterable[Partition]) -> dict[Partition, list[Any]]:
        return {partition: [] for partition in partitions}

    def transactions(self, _producers: object) -> dict[int, Any]:
        return {}

    def compacted(self, _topics: object) -> frozenset[str]:
        return frozenset()


def taken(cluster: Cluster, topics: Topics = TOPICS) -> Cut:
    return take_cut(cast("KafkaAdmin", cluster), topics, "g", 0.0)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes by the pauses between two looks alone: how many looks there are does not depend on the machine."""
    now = [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(module, "time", SimpleNamespace(time=time.time, monotonic=lambda: now[0], sleep=sleep))


def test_an_end_that_went_back_without_a_transaction_cannot_be_judged() -> None:
    """A leader that was elected without all records: what is not there now would be missing, and nobody would know why."""
    cluster = Cluster()
    cluster.stable[OUT] = [90]
    message = "out[0] ended at offset 100 when the cut was taken, and ends at 90 now, without an open transaction: "
    with pytest.raises(CannotJudgeError, match=f"^{re.escape(message)}"):
        taken(cluster)


def test_a_marker_that_is_still_being_replicated_is_waited_for() -> None:
    """Also after the wait for transactions: nobody can be named, and nothing is wrong."""
    cluster = Cluster()
    cluster.stable[OUT] = [90, 90, 95, 95, 100]
    cut = taken(cluster)
    assert (cut.outputs, cut.open_transactions) == ({OUT: Range(0, 100)}, ())


def test_a_source_partition_that_appears_meanwhile_is_in_the_cut() -> None:
    """With its own place in the order: offsets first, outputs then."""

    def appear(cluster: Cluster) -> None:
        cluster.partitions["in"] = 2
        cluster.offsets["in", 1] = 3
        cluster.high |= {("in", 1): 3, OUT: 103}

    cluster = Cluster(appear)
    cut = taken(cluster)
    assert cluster.looks == 2
    assert (cut.committed, cut.source_end) == ({IN: 50, ("in", 1): 3}, {IN: 60, ("in", 1): 3})
    assert cut.outputs == {OUT: Range(0, 103)}


def test_a_topic_that_a_pattern_takes_meanwhile_is_in_the_cut() -> None:
    cluster = Cluster(lambda cluster: cluster.partitions.update({"in.more": 1}))
    cut = taken(cluster, Topics(("in",), ("out",), "^in.*"))
    assert (cluster.looks, set(cut.source_start)) == (2, {IN, ("in.more", 0)})
    assert set(cut.topic_ids) == {"in", "in.more", "out"}


def test_partitions_that_never_cease_to_appear_end_in_an_error() -> None:
    def appear(cluster: Cluster) -> None:
        cluster.partitions["in"] += 1

    cluster = Cluster(appear)
    with pytest.raises(CannotJudgeError, match=r"^source partitions or topics appeared, .* 5 times in a row"):
        taken(cluster)
    assert cluster.looks == 5


def test_an_offset_beyond_the_sources_end_is_looked_at_again() -> None:
    """While leaders change an end may step back for a moment."""
    cluster = Cluster()
    cluster.stable[IN] = [40, 45, 60]
    assert take_cut(cast("KafkaAdmin", cluster), TOPICS, "g", 5.0).source_end == {IN: 60}
    cluster.stable[IN] = [40, 45]
    assert take_cut(cast("KafkaAdmin", cluster), TOPICS, "g", 5.0).source_end == {IN: 45}
