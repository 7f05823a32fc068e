"""Defects of whole partitions and topics: offsets reset, sources truncated or compacted, topics recreated, transactions that never end.

Each is a `Scene`: `before` changes a world's plan and takes its partition out of other plants' reach, `after` damages what was written and
returns the findings that must come of it, on top of those of other plants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from devkit.reader import Reader
from spark_batch.model import Kind
from tests.audit.hanging import hang
from tests.audit.planting import Expected
from tests.support.broker import create_topics, unique
from tests.support.topics import add_partitions, set_topic
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_batch.model import Partition
    from tests.audit.world import Part, World

OPEN: list[Producer] = []
"""Producers with open transactions: held, so that nobody ends them."""


@dataclass(frozen=True, slots=True)
class Scene:
    name: str
    after: Callable[[World, Partition], list[Expected]]
    before: Callable[[World, Partition], None] = lambda world, place: world.reserve(place)
    offsets_depth: bool = True
    """Whether depth offsets finds the same."""
    leaves_some: bool = True
    """Whether anything is left that can be judged, so that other defects can be found beside it."""
    hides: bool = False
    """Whether outputs may hide behind it: one that is not found is unknown then, and not missing."""


def _parts(world: World, place: Partition) -> list[Part]:
    return [part for part in world.parts() if part.place == place]


# The group's offsets


def set_offset(world: World, place: Partition, offset: int) -> None:
    """As a hand would: kafka-consumer-groups.sh --reset-offsets."""
    group = Consumer({"bootstrap.servers": world.bootstrap, "group.id": world.loaded.spec.group})
    try:
        group.commit(offsets=[TopicPartition(*place, offset)], asynchronous=False)
    finally:
        group.close()


def _back_to_a_boundary(world: World, place: Partition) -> list[Expected]:
    part = _parts(world, place)[-3]
    set_offset(world, place, part.from_)
    return [Expected(Kind.OFFSETS_UNKNOWN, *place, part.from_)]


def _back_into_a_receipt(world: World, place: Partition) -> list[Expected]:
    part = next(p for p in reversed(_parts(world, place)) if len(p.fates) > 2)
    offset = part.fates[1].place[2]
    set_offset(world, place, offset)
    return [Expected(Kind.OFFSETS_UNKNOWN, *place, offset)]


def _leave_a_rest(world: World, place: Partition) -> None:
    """The last ranges are not worked off."""
    world.reserve(place)
    for part in _parts(world, place)[-4:]:
        world.transaction_of(part).parts.remove(part)
        for fate in part.fates:
            world.unborn.append(world.fates.pop(fate.place))
    world.transactions = [transaction for transaction in world.transactions if transaction.parts]


def _forward(world: World, place: Partition) -> list[Expected]:
    """Records are passed over: nobody claims them, and their outputs are missing."""
    claimed = _parts(world, place)[-1].to
    left = sorted((f for f in world.unborn if f.place[:2] == place), key=lambda f: f.place)
    passed = left[: len(left) // 2]
    to = passed[-1].place[2] + 1
    set_offset(world, place, to)
    world.fates |= {fate.place: fate for fate in passed}
    lost = [Expected(Kind.MISSING, *fate.place) for fate in passed if not fate.filtered]
    return [Expected(Kind.RECEIPT_MISSING, *place, claimed, to), *lost]


def _beyond_the_end(world: World, place: Partition) -> list[Expected]:
    offset = world.ends[place] + 1000
    set_offset(world, place, offset)
    return [Expected(Kind.OFFSETS_UNKNOWN, *place, offset)]


def _group_deleted(world: World, _: Partition) -> list[Expected]:
    for future in world.admin.delete_consumer_groups([world.loaded.spec.group]).values():
        future.result(PATIENCE_S)
    return [Expected(Kind.OFFSETS_UNKNOWN, *place, None) for place in world.sources]


# Sources and receipts that are gone


def delete_records(world: World, place: Partition, before: int) -> None:
    for future in world.admin.delete_records([TopicPartition(*place, before)]).values():
        future.result(PATIENCE_S)


def _truncated(world: World, place: Partition) -> list[Expected]:
    """In the middle of a receipt's range."""
    parts = [part for part in _parts(world, place) if len(part.fates) > 2]
    cut = parts[len(parts) // 2].fates[1].place[2]
    delete_records(world, place, cut)
    return [Expected(Kind.SOURCE_EXPIRED, *place, world.begins[place], cut)]


# Transactions that do not end


def open_transaction(world: World, topic: str, partition: int, timeout_s: int = 600) -> Expected:
    """A worker that stands still in the middle of a transaction."""
    producer = Producer(
        {
            "bootstrap.servers": world.bootstrap,
            "transactional.id": unique("stalled"),
            "transaction.timeout.ms": timeout_s * 1000,
        }
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    offsets: list[int] = []
    producer.produce(
        topic, b"open", partition=partition, on_delivery=lambda _, message: offsets.append(message.offset() or 0)
    )
    assert producer.flush(PATIENCE_S) == 0
    OPEN.append(producer)
    return Expected(Kind.OPEN_TRANSACTION, topic, partition, offsets[0])


def end_open_transactions() -> None:
    while OPEN:
        OPEN.pop().abort_transaction(PATIENCE_S)


def _open(world: World, _: Partition) -> list[Expected]:
    """Behind everything that the group has committed: nothing judged hides behind it."""
    return [open_transaction(world, world.out, 1)]


def _hanging(world: World, _: Partition) -> list[Expected]:
    """No coordinator knows of it: nobody will ever end it. Its offset is the end of its partition until then."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    with Reader(world.bootstrap) as reader:
        end = reader.end_offsets([(world.out, 1)], committed=False)[world.out, 1]
    hang(spark, world.bootstrap, world.out, 1)
    return [Expected(Kind.HANGING_TRANSACTION, world.out, 1, end)]


# Topics that are others now


def recreate(world: World, topic: str, partitions: int, config: dict[str, str] | None = None) -> None:
    world.admin.delete_topics([topic])[topic].result(PATIENCE_S)
    # The broker hears of it after the controller: until then it would show the former topic for the new one.
    await_true(lambda: topic not in world.admin.list_topics(timeout=PATIENCE_S).topics, f"{topic} is gone", PATIENCE_S)
    create_topics(world.bootstrap, {topic: partitions}, config)


def add_partition(world: World, topic: str) -> int:
    """The new partition's number, once the broker knows it."""
    world.sinks[topic] += 1
    number = world.sinks[topic]
    add_partitions(world.bootstrap, topic, number)
    return number - 1


def _source_recreated(world: World, place: Partition) -> list[Expected]:
    """The same name and as many records; the group commits as before. Receipts know the former topic's id."""
    topic = place[0]
    kin = [each for each in world.sources if each[0] == topic]
    recreate(world, topic, len(kin))
    producer = Producer({"bootstrap.servers": world.bootstrap})
    for each in kin:
        for _ in range(world.ends[each]):
            producer.produce(topic, b'{"n": 1, "each": [1]}', partition=each[1])
    assert producer.flush(PATIENCE_S) == 0
    for each in kin:
        set_offset(world, each, world.committed[each])
    return [Expected(Kind.TOPIC_RECREATED, *each, None) for each in kin]


def _source_compacted(world: World, place: Partition) -> list[Expected]:
    """Whether anything was removed already cannot be known."""
    set_topic(world.bootstrap, place[0], {"cleanup.policy": "compact"})
    return [Expected(Kind.COMPACTED, place[0], 0, None)]


def _reserve_topic(world: World, place: Partition) -> None:
    for each in world.sources:
        if each[0] == place[0]:
            world.reserve(each)


SCENES = [
    Scene("offset set back to a boundary", _back_to_a_boundary),
    Scene("offset set back into a receipt", _back_into_a_receipt),
    Scene("offset set forward", _forward, _leave_a_rest, offsets_depth=False),
    Scene("offset set beyond the end", _beyond_the_end),
    Scene("group deleted", _group_deleted, leaves_some=False),
    Scene("source truncated", _truncated),
    Scene("open transaction", _open, lambda *_: None, hides=True),
    Scene("hanging transaction", _hanging, lambda *_: None, hides=True),
    Scene("source recreated", _source_recreated, _reserve_topic),
    Scene("source compacted", _source_compacted, _reserve_topic),
]
