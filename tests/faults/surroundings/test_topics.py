"""Topics that are missing: the worker's own at the start, and each kind while it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests.faults.surroundings.trouble import delete_topic, ending, text
from tests.support.broker import create_topics
from tests.support.pipelines import Scene, events
from tests.support.topics import set_topic, settings_of
from tests.support.waiting import await_true
from worker.topics import DEAD_LETTER_CONFIG, RECEIPT_CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = pytest.mark.long

PATIENCE_S = 120.0
"""For whatever must come: nothing here waits so long unless it fails."""

QUICKLY = {
    "RECKON_KAFKA_TOPIC_METADATA_REFRESH_INTERVAL_MS": "1000",
    "RECKON_KAFKA_TOPIC_METADATA_PROPAGATION_MAX_MS": "1500",
}
"""librdkafka believes that a topic is gone after 1.5 s instead of 30."""


@pytest.fixture
def scene(bootstrap: str, tmp_path: Path) -> Iterator[Scene]:
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1, records=50) as scene:
        yield scene


def test_the_workers_own_topics_are_created(scene: Scene) -> None:
    """Dead letters with as many partitions as the source, and receipts; both take what they are given, whatever time it has.

    The sink does not take a record of the day after tomorrow (KIP-937): it is a dead letter, with its time.
    """
    own = [scene.dead_letters, scene.receipts]
    for topic in own:
        delete_topic(scene.bootstrap, topic)
    await_true(lambda: not {*own} & scene.reader.topics(), "both are gone")
    scene.produce(200)
    worker = scene.drain()
    assert [(topic, 1) for topic in own] == [(e["topic"], e["partitions"]) for e in events(worker, "created")]
    assert settings_of(scene.bootstrap, scene.dead_letters) == DEAD_LETTER_CONFIG
    assert settings_of(scene.bootstrap, scene.receipts) == RECEIPT_CONFIG
    assert scene.problems() == []

    set_topic(scene.bootstrap, scene.source, DEAD_LETTER_CONFIG)
    ahead_ms = round(time.time() * 1000) + 2 * 86_400_000
    producer = Producer({"bootstrap.servers": scene.bootstrap})
    for number, value in enumerate((b"no json", b'{"n": 1}')):
        producer.produce(scene.source, value, b"key", 0, timestamp=ahead_ms + number)
    assert producer.flush(PATIENCE_S) == 0
    scene.drain()
    dead = [record for record in scene.outputs() if record.timestamp_ms >= ahead_ms]
    assert [(record.topic, record.timestamp_ms) for record in dead] == [(own[0], ahead_ms), (own[0], ahead_ms + 1)]
    classes = [dict(record.headers)["reckon.error.class"] for record in dead]
    assert classes == [b"DecodeError", b"UndeliverableOutput"]


@pytest.mark.parametrize(
    "kind", ["sink", pytest.param("receipts", marks=LONG), pytest.param("dead_letters", marks=LONG)]
)
def test_a_topic_that_is_deleted_while_the_worker_runs(scene: Scene, kind: str) -> None:
    """It tries again and again; nothing is committed, and no good record goes to the dead letters. When the
    topic is there again it goes on by itself."""
    topic, partitions = {
        "sink": (scene.sink, 1),
        "receipts": (scene.receipts, 1),
        "dead_letters": (scene.dead_letters, 2),
    }[kind]
    worker = scene.worker(env=QUICKLY)
    worker.wait_for_log("assigned", PATIENCE_S)
    delete_topic(scene.bootstrap, topic)
    scene.produce(200)
    await_true(lambda: len(events(worker, "aborting")) >= 4, "it tries again and again", PATIENCE_S)
    assert worker.alive
    assert len(text(worker).splitlines()) < 100
    if kind != "dead_letters":  # without them the batches before the first bad record go through
        assert scene.committed() == {}

    create_topics(scene.bootstrap, {topic: partitions})
    await_true(lambda: sum(scene.committed().values()) >= 200, "it goes on", PATIENCE_S)
    worker.terminate()
    assert worker.wait(PATIENCE_S) == 0
    assert scene.problems() == []


@LONG
def test_a_source_that_is_deleted_and_made_anew(scene: Scene) -> None:
    """The worker says that it is not available, waits, and reads the new one from its beginning: with the topic Kafka deleted the group's
    offsets, too."""
    worker = scene.worker(env=QUICKLY)
    worker.wait_for_log("assigned", PATIENCE_S)
    delete_topic(scene.bootstrap, scene.source)
    await_true(lambda: f"Subscribed topic not available: {scene.source}" in text(worker), "it is missed", PATIENCE_S)
    create_topics(scene.bootstrap, {scene.source: 1})
    scene.produce(200)
    await_true(lambda: sum(scene.committed().values()) >= 200, "it goes on", PATIENCE_S)
    worker.terminate()
    assert worker.wait(PATIENCE_S) == 0
    assert scene.problems() == []


@LONG
def test_a_source_that_is_missing_at_the_start_and_made_then(scene: Scene) -> None:
    """Exit code 2; started again it works."""
    delete_topic(scene.bootstrap, scene.source)
    await_true(lambda: scene.source not in scene.reader.topics(), "it is gone")
    code, message = ending(scene.worker())
    assert (code, message) == (
        2,
        f"source topic {scene.source} does not exist on {scene.bootstrap}: create it first",
    )
    create_topics(scene.bootstrap, {scene.source: 1})
    scene.produce(200)
    scene.drain()
    assert scene.problems() == []
