"""The defect of brokers that README and docs/running.md tell of (KAFKA-20734), brought about: it is true of the pinned version.

When this fails on a newer broker, the defect is mended there: say so, and delete this.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from devkit.reader import Reader
from tests.faults.brokers import any_node, kill_node
from tests.support.broker import create_topics, unique
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from tests.faults.arena import Arena

pytestmark = [pytest.mark.xdist_group("arena"), pytest.mark.long]


def _written(producer: Producer, topic: str, value: bytes) -> None:
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.parametrize("leaderless", [False, True])
def test_what_was_aborted_without_a_leader_is_read_after_the_next_commit(arena: Arena, *, leaderless: bool) -> None:
    """The transaction is aborted while the only copy's broker is dead; the abort is answered, and its marker never written.

    With the leader alive the marker is there, and readers see what was committed and nothing else.
    """
    topic = unique("markers")
    create_topics(arena.bootstrap, {topic: 1}, {"min.insync.replicas": "1"}, replicas=1)
    leader = arena.leader(topic, 0)
    first = Producer({"bootstrap.servers": arena.bootstrap, "transactional.id": unique("first")})
    first.init_transactions(PATIENCE_S)  # before the first there are no coordinators
    names = (f"{topic}-{number}" for number in count())
    name = next(name for name in names if arena.transaction_coordinator(name) != leader)
    producer = Producer({"bootstrap.servers": arena.bootstrap, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    _written(producer, topic, b"aborted")
    if leaderless:
        kill_node(arena, any_node(leader))
        await_true(lambda: arena.leader(topic, 0) == -1, "nobody leads it", PATIENCE_S)
    producer.abort_transaction(PATIENCE_S)
    arena.heal()

    _written(producer, topic, b"committed")
    producer.commit_transaction(PATIENCE_S)
    with Reader(arena.bootstrap) as reader:
        reader.await_stable([topic])
        values = [record.value for record in reader.read([topic])]
    assert values == ([b"aborted", b"committed"] if leaderless else [b"committed"])
