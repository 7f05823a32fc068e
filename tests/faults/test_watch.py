"""What is watched from outside is seen: a stable offset that stands."""

from __future__ import annotations

import time
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from tests.faults.watch import STANDS_S, Watch
from tests.support.broker import create_topics, unique
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.faults.model import Stand


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
    slow: list[str] = []
    with Watch([line], bootstrap) as watch:
        for quick in range(20):
            began = time.monotonic()
            producer.begin_transaction()
            _write(producer, line.sink, [b"a"])
            producer.commit_transaction()
            await_true(partial(_has_seen, watch, quick + 1), "it moves on", PATIENCE_S)
            if time.monotonic() - began < STANDS_S:
                break
            slow.append(f"{line.sink}[0] at {2 * quick}")  # by the machine's doing, and told of, as it may be
        else:
            pytest.fail(f"no transaction of twenty took less than {STANDS_S:g} s")
        began = time.monotonic()
        producer.begin_transaction()
        _write(producer, line.sink, [b"b", b"c"])
        place = f"{line.sink}[0] at {2 * (quick + 1)}"  # behind the records before, each with its marker
        await_true(lambda: any(_stood(s, place, 2 * STANDS_S) for s in watch.stands), "it is seen to stand", PATIENCE_S)
        producer.commit_transaction()
        await_true(partial(_has_seen, watch, quick + 3), "it moves on", PATIENCE_S)
        stood_s = time.monotonic() - began
    (stand,) = [stand for stand in watch.stands if stand.where not in slow]
    assert stand.where == place
    assert 2 * STANDS_S < stand.lasted_s < stood_s
    assert watch.problems == []


def _has_seen(watch: Watch, outputs: int) -> bool:
    return len(watch.outputs) == outputs


def _stood(stand: Stand, place: str, seconds: float) -> bool:
    return stand.where == place and stand.lasted_s > seconds
