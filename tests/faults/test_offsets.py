"""The history of a group's offsets: whole, and a step back is seen however short it lasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.faults.offsets import Step, history, steps_back
from tests.support.broker import unique
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.faults.arena import Arena


@pytest.mark.xdist_group("arena")
def test_every_commit_of_a_group_and_of_no_other(arena: Arena) -> None:
    """Also one that was overtaken at once, also by a transaction; of an aborted transaction none."""
    topic, group = unique("committed"), unique("group")
    arena.create_topics({topic: 2})
    for name in (group, f"{group}-other"):
        consumer = Consumer({"bootstrap.servers": arena.bootstrap, "group.id": name})
        for offset in (3, 7, 5) if name == group else (9, 1):
            consumer.commit(offsets=[TopicPartition(topic, 1, offset)], asynchronous=False)
        if name == group:
            producer = Producer({"bootstrap.servers": arena.bootstrap, "transactional.id": unique("t")})
            producer.init_transactions(PATIENCE_S)
            for offset, end in ((2, producer.abort_transaction), (8, producer.commit_transaction)):
                producer.begin_transaction()
                metadata = consumer.consumer_group_metadata()
                producer.send_offsets_to_transaction([TopicPartition(topic, 1, offset)], metadata, PATIENCE_S)
                end(PATIENCE_S)
        consumer.close()
    steps = history(arena.bootstrap, group)
    assert steps == [((topic, 1), offset) for offset in (3, 7, 5, 8)]
    assert steps_back(steps) == [f"{topic}[1]: the group's offset went from 7 to 5"]


def test_a_deleted_offset_is_a_step_back_and_the_same_again_is_none() -> None:
    assert steps_back([Step(("t", 0), 5), Step(("t", 0), 5), Step(("t", 1), 0)]) == []
    assert steps_back([Step(("t", 0), 5), Step(("t", 0), None)]) == ["t[0]: the group's offset went from 5 to None"]
