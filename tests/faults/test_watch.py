"""What is watched from outside is seen: a stable offset that stands."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from tests.faults.watch import STANDS_S, Watch
from tests.support.broker import create_topics, unique
from tests.support.pipelines import await_true

if TYPE_CHECKING:
    from collections.abc import Sequence


def _write(producer: Producer, topic: str, values: Sequence[bytes]) -> None:
    for value in values:
        producer.produce(topic, value)
    producer.flush()


def test_an_open_transaction_holds_a_stable_offset(bootstrap: str) -> None:
    """Told with its place and for how long it stood, once; what moves on sooner, or has nothing behind it, is not told of."""
    name = unique("watch")
    line: Any = SimpleNamespace(sink=f"{name}.out", dead_letters=f"{name}.dead", receipts=f"{name}.receipts")
    create_topics(bootstrap, {line.sink: 1, line.dead_letters: 1, line.receipts: 1})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions()
    with Watch([line], bootstrap) as watch:
        producer.begin_transaction()
        _write(producer, line.sink, [b"a"])
        producer.commit_transaction()
        producer.begin_transaction()
        _write(producer, line.sink, [b"b", b"c"])
        began = time.monotonic()
        await_true(lambda: watch.stands and watch.stands[0].lasted_s > 2 * STANDS_S, "it is seen to stand")
        producer.commit_transaction()
        stood_s = time.monotonic() - began
        await_true(lambda: len(watch.outputs) == 3, "it moves on")
    (stand,) = watch.stands
    assert stand.where == f"{line.sink}[0] at 2"  # behind the first record and its marker
    assert 2 * STANDS_S < stand.lasted_s < stood_s + 1
    assert watch.problems == []
