from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from tests.unit.worker.fakes import FakeCluster, FakeConsumer, message, settings
from worker.drain import Drain
from worker.offsets import Offsets

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from worker.offsets import Partition

A: Partition = ("in", 0)
B: Partition = ("in", 1)


def owning(starts: dict[Partition, int]) -> Offsets:
    offsets = Offsets()
    offsets.assign(starts)
    return offsets


@pytest.mark.parametrize(
    ("starts", "reached", "drained"),
    [
        pytest.param({}, {}, False, id="owns nothing: waits for what the others leave"),
        pytest.param({A: 10}, {}, True, id="read to the end"),
        pytest.param({A: 9}, {}, False, id="one record to go"),
        pytest.param({A: 12}, {}, True, id="records that came later were read too"),
        pytest.param({A: 10, B: 4}, {}, False, id="another partition is not at its end"),
        pytest.param({A: 10, B: 4}, {B: 5}, True, id="only a commit marker was left, the event tells"),
        pytest.param({A: 8}, {A: 9}, False, id="the event came before the end known at the start"),
        pytest.param({A: 10, ("in", 2): 0}, {}, True, id="a partition that was created later"),
    ],
)
def test_drained_means_every_owned_partition_is_at_its_end(
    starts: dict[Partition, int],
    reached: dict[Partition, int],
    drained: bool,  # noqa: FBT001 - a table
) -> None:
    """Against ends of 10 and 5 at the start."""
    assert Drain({A: 10, B: 5})(owning(starts), reached) is drained


def test_the_ends_are_those_at_the_start() -> None:
    """Of every partition of every topic; what is written later does not count."""
    cluster = FakeCluster()
    cluster.log = {A: [message(3), message(4)], B: [], ("other", 0): [message(7, topic="other")]}
    drain = Drain.at_start(cast("Consumer", FakeConsumer(cluster)), settings(topics=("in", "other")))
    cluster.log[A].append(message(9))

    assert [call[1:] for call in cluster.calls if call[0] == "get_watermark_offsets"] == [
        (A, 30.0),
        (B, 30.0),
        (("other", 0), 30.0),
    ]
    assert drain(owning({A: 5, B: 0, ("other", 0): 8}), {})
    assert not drain(owning({A: 4}), {})
    assert not drain(owning({("other", 0): 7}), {})
