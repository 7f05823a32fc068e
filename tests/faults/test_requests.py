"""What the coordinator says of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests.faults.requests import ONGOING, transaction_state
from tests.support.broker import unique
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.faults.arena import Arena


@pytest.mark.xdist_group("arena")
def test_a_transaction_from_its_first_record_to_its_end(arena: Arena) -> None:
    """It is open once a record of it was delivered, and not when the client alone knows of it; others' addresses do not answer for it."""
    topic, name = unique("open"), unique("owner")
    arena.create_topics({topic: 1})
    addresses = arena.bootstrap.split(",")
    other = Producer({"bootstrap.servers": arena.bootstrap, "transactional.id": unique("other")})
    other.init_transactions(PATIENCE_S)  # before the first there are no coordinators
    assert transaction_state(addresses, name, PATIENCE_S) == "not known"
    producer = Producer({"bootstrap.servers": arena.bootstrap, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    assert transaction_state(addresses, name, PATIENCE_S) == "Empty"
    producer.produce(topic, b"one")
    assert producer.flush(PATIENCE_S) == 0
    assert transaction_state(addresses, name, PATIENCE_S) == ONGOING
    coordinator = arena.node(arena.transaction_coordinator(name)).address
    assert transaction_state([coordinator], name, PATIENCE_S) == ONGOING
    assert transaction_state([each for each in addresses if each != coordinator], name) is None
    producer.abort_transaction(PATIENCE_S)
    assert transaction_state(addresses, name, PATIENCE_S) in ("PrepareAbort", "CompleteAbort")


def test_nobody_there_says_nothing() -> None:
    assert transaction_state(["127.0.0.1:1"], "owner") is None
