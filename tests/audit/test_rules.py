"""Facts A5 to A13 that are not shown elsewhere: the ledger, late markers, real compaction, topics made anew, nulls and filtered records.

Elsewhere: A1, A2, A3, A4, A8, A9, A10, A11, A12 in test_cut.py; A1 and A4 with broken audits in test_specificity.py; A7, A8, A10, A11 as
planted defects in test_sensitivity.py.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from devkit.reader import Reader, read
from spark_batch.cut import Topics, take_cut
from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.model import Depth, ExitCode, Kind, Verdict
from tests.audit.auditor import Auditor
from tests.audit.planting import Expected, found
from tests.audit.scenes import recreate
from tests.audit.world import World
from tests.support.broker import create_topics, unique
from tests.support.topics import set_broker, set_topic
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from devkit import Cluster
    from spark_batch.model import Judgement

SEED = 20263


@pytest.fixture(scope="module")
def auditor(spark: SparkSession) -> Auditor:
    return Auditor(spark)


@pytest.fixture(scope="module")
def sound(auditor: Auditor, bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Judgement]:
    """A world without defects, and what an audit at depth records says of it."""
    world = World(bootstrap, tmp_path_factory.mktemp("sound"), Random(SEED), records=800)
    world.write()
    return world, auditor(world.path)


def test_a5_every_offset_of_every_output_partition_is_accounted_for(sound: tuple[World, Judgement]) -> None:
    """Committed + aborted + markers = offsets, each as an independent reader counts it."""
    world, judgement = sound
    topics = [*world.sinks, world.letters, world.receipts]
    with Reader(world.bootstrap) as reader:
        ends = reader.end_offsets(reader.partitions_of(topics))
    committed = Counter((r.topic, r.partition) for r in read(world.bootstrap, topics))
    there = Counter((r.topic, r.partition) for r in read(world.bootstrap, topics, committed=False))
    rows = {(row.topic, row.partition): row for row in judgement.ledger}
    assert rows.keys() == ends.keys()
    expected = {p: (0, end, committed[p], there[p] - committed[p], end - there[p]) for p, end in ends.items()}
    assert expected == {p: (r.start, r.end, r.committed, r.aborted, r.markers) for p, r in rows.items()}
    assert sum(row.aborted for row in rows.values()) > 0 < sum(row.markers for row in rows.values())
    foreign = Counter((r.topic, r.partition) for r in read(world.bootstrap, world.sinks) if r.key == b"foreign")
    assert foreign == +Counter({p: row.foreign for p, row in rows.items()})


def test_a13_nulls_are_records_and_filtered_ones_are_told_from_lost_ones(sound: tuple[World, Judgement]) -> None:
    world, judgement = sound
    fates = world.fates.values()
    expected = {
        Verdict.EXACTLY_ONCE: sum(bool(fate.outputs) for fate in fates),
        Verdict.FILTERED: sum(fate.filtered for fate in fates),
        Verdict.DEAD_LETTERED: sum(fate.letter is not None for fate in fates),
    }
    assert sum(fate.message.value() is None and bool(fate.outputs) for fate in fates) > 5
    assert min(expected.values()) > 5
    assert expected == {verdict: n for verdict, n in judgement.totals.items() if verdict is not Verdict.IN_FLIGHT}
    assert (judgement.exit_code, judgement.findings) == (ExitCode.COMPLETE, ())


def test_dead_letters_of_undeliverable_outputs_stand_behind_the_others_and_are_no_disorder(
    sound: tuple[World, Judgement],
) -> None:
    """The worker writes them last, whatever their offsets (worker/fill.py): the order of dead letters is promised to nobody."""
    world, judgement = sound
    late = 0
    for part in world.parts():
        places = [(f.letter.place, f.place) for f in part.fates if f.letter is not None]
        in_partition = {n: [source for (_, p, _), source in sorted(places) if p == n] for n in (0, 1)}
        late += sum(sources != sorted(sources) for sources in in_partition.values())
    assert late > 0, "no dead letters out of order: this shows nothing"
    assert judgement.finding_counts == {}


def test_a6_markers_that_land_after_the_commit_returned_are_waited_for(spark: SparkSession, bootstrap: str) -> None:
    """A cut right after a commit ends behind all of its records, though their markers may not be there yet."""
    topic, source = unique("late"), unique("source")
    create_topics(bootstrap, {topic: 8, source: 1})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(PATIENCE_S)
    with KafkaAdmin(spark, {"bootstrap.servers": bootstrap}) as admin:
        for turn in range(1, 21):
            producer.begin_transaction()
            for number in range(8):
                producer.produce(topic, b"x", partition=number)
            producer.commit_transaction(PATIENCE_S)
            cut = take_cut(admin, Topics((source,), (topic,)), "nobody", PATIENCE_S)
            assert cut.open_transactions == ()
            # `turn` records, and their markers but the last one, which the high watermark may not yet hold.
            assert {2 * turn - 1, 2 * turn} >= {span.end for span in cut.outputs.values()}


def test_a7_a_source_from_which_compaction_removed_records_is_never_complete(
    auditor: Auditor, cluster: Cluster, tmp_path: Path
) -> None:
    """Really removed: the gaps look like those of markers, so nothing is said of the whole topic."""
    world = World(cluster.bootstrap, tmp_path, Random(SEED + 1), records=600)
    world.write()
    topic = world.sources[0][0]
    before = len(read(cluster.bootstrap, [topic]))
    set_broker(cluster.bootstrap, {"log.cleaner.backoff.ms": "100"})
    fast = {"min.cleanable.dirty.ratio": "0.001", "segment.ms": "10", "max.compaction.lag.ms": "1"}
    set_topic(cluster.bootstrap, topic, {"cleanup.policy": "compact", **fast})
    producer = Producer({"bootstrap.servers": cluster.bootstrap})

    def removed() -> bool:
        for place in world.sources:  # a segment is closed, and can be cleaned, when another record comes
            if place[0] == topic:
                producer.produce(topic, b'{"n": 3}', b"later", place[1])
        assert producer.flush(PATIENCE_S) == 0
        with contextlib.suppress(Exception):
            return len(read(cluster.bootstrap, [topic])) < before // 2
        return False

    await_true(removed, "records are compacted away", 2 * PATIENCE_S)
    judgement = auditor(world.path)
    assert found(judgement.findings) == [Expected(Kind.COMPACTED, topic, 0, None)]
    assert judgement.exit_code is ExitCode.CANNOT_JUDGE
    verdicts = {v for s in judgement.stretches if s.topic == topic for v in s.counts}
    assert verdicts == {Verdict.UNVERIFIABLE}


def test_a10_an_output_topic_made_anew_since_the_last_audit_is_told_and_its_records_are_not_missing(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    world = World(bootstrap, tmp_path, Random(SEED + 2), records=400)
    half = len(world.transactions) // 2
    state = tmp_path / "state"
    world.write(0, half)
    assert auditor(world.path, Depth.RECORDS, state=state).exit_code is ExitCode.COMPLETE
    recreate(world, world.large, 1)
    world.write(half)
    judgement = auditor(world.path, Depth.RECORDS, state=state)
    assert found(judgement.findings) == [Expected(Kind.TOPIC_RECREATED, world.large, 0, None)]
    assert judgement.exit_code is ExitCode.CANNOT_JUDGE
