"""What brokers limit: sizes of records, and rates (quotas). Slow is no error, and what cannot be written anywhere stops the worker."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests.faults.surroundings.trouble import ending, quota
from tests.support.pipelines import Scene, events
from tests.support.topics import set_topic

if TYPE_CHECKING:
    from pathlib import Path


def test_a_dead_letter_that_is_too_large_for_its_topic(bootstrap: str, tmp_path: Path) -> None:
    """Exit code 1, with the record's place, the topic and the setting to raise; nothing is committed or lost. Raised, all goes on."""
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1, records=50) as scene:
        scene.produce(100)
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(scene.source, "no json " + random.Random(1).randbytes(5_000).hex(), partition=0)
        assert producer.flush(20) == 0
        set_topic(bootstrap, scene.dead_letters, {"max.message.bytes": "2000"})
        code, message = ending(scene.worker(drain=True))
        assert code == 1
        assert message.startswith(
            f"the dead letter of {scene.source}[0] offset 100 cannot be delivered to {scene.dead_letters}: MSG_SIZE_TOO_LARGE"
        )
        assert message.endswith("raise the topic's max.message.bytes and the producer's message.max.bytes")
        assert sum(scene.committed().values()) <= 100

        set_topic(bootstrap, scene.dead_letters, {"max.message.bytes": ""})
        scene.drain()
        assert scene.problems() == []


@pytest.mark.long
@pytest.mark.parametrize("kind", ["producer_byte_rate"])
def test_quotas_make_it_slow_and_nothing_else(bootstrap: str, tmp_path: Path, kind: str) -> None:
    """Held to 15 kB/s, 360 kB take more than ten seconds; no transaction is aborted."""
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1, records=20) as scene:
        producer = Producer({"bootstrap.servers": bootstrap})
        noise = random.Random(2)
        for _ in range(90):  # no JSON: their values go to the dead letters as they are; too few for their limit
            producer.produce(scene.source, "no json " + noise.randbytes(2_000).hex(), partition=0)
        assert producer.flush(20) == 0
        # The broker knows the rate of the last eleven samples of a second: it throttles what goes beyond their mean.
        with quota(bootstrap, f"{scene.name}/one", **{kind: 15_000}):
            started = time.monotonic()
            worker = scene.worker(
                drain=True,
                short=False,
                env={"RECKON_CONSUMER_FETCH_MESSAGE_MAX_BYTES": "20000"},  # or all would come in one answer
            )
            assert worker.wait(120) == 0, worker.tail()
            took = time.monotonic() - started
        assert took > 10, f"no throttling: {took:.1f} s"
        assert events(worker, "aborting") == []
        assert scene.problems() == []
