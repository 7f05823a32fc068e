"""Names and ids of topics; what needs a broker is in tests/kafka."""

from __future__ import annotations

from dataclasses import replace

from confluent_kafka import Uuid

from tests.unit.worker.fakes import settings
from worker.topics import as_kafka_prints, source_topics


def test_topic_ids_read_as_kafka_prints_them() -> None:
    """org.apache.kafka.common.Uuid: base64 for URLs, without padding."""
    assert as_kafka_prints(Uuid(0x1234567890ABCDEF, -77)) == "EjRWeJCrze__________sw"


def test_a_pattern_takes_what_exists_and_matches() -> None:
    """Sorted; without a pattern the topics are those of the file."""
    assert source_topics(settings(topics=("b", "a")), ["c"]) == ("b", "a")
    pattern = replace(settings(topics=()), pattern="^shop[.]")
    assert source_topics(pattern, ["shop.b", "shops", "my.shop.c", "shop.a"]) == ("shop.a", "shop.b")
