"""The reader that tests and demo judge by: what it waits for."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from devkit.reader import Reader, ReadError
from tests.support.broker import create_topics, unique
from tests.support.waiting import PATIENCE_S


def test_a_topic_is_stable_once_no_transaction_is_open_in_it(bootstrap: str) -> None:
    """An open one is named by its partitions; after the commit, all that was written can be read."""
    topic = unique("stable")
    create_topics(bootstrap, {topic: 2})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    with Reader(bootstrap) as reader:
        reader.await_stable([topic])
        producer.begin_transaction()
        producer.produce(topic, b"1", partition=1)
        assert producer.flush(PATIENCE_S) == 0
        with pytest.raises(ReadError, match=rf"open for longer than 0 s in \[\('{topic}', 1\)\]"):
            reader.await_stable([topic], timeout_s=0)
        producer.commit_transaction(PATIENCE_S)
        reader.await_stable([topic])
        assert [record.value for record in reader.read([topic])] == [b"1"]
