"""A pipeline's topics on a real broker, written around the worker: what workers would have left, as a plan that plants can spoil.

Order of use: `World(...)` makes the topics, fills the sources (with aborted transactions, markers, tombstones, garbage) and plans every
transaction of several workers from the pipeline's own transform; plants (tests.audit.planting) change the plan; `write` writes it.
"""

from __future__ import annotations

import uuid
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicCollection, TopicPartition

from devkit.admin import admin_client
from devkit.reader import Reader
from tests.support.broker import create_topics, unique
from tests.support.waiting import PATIENCE_S, await_true
from transforms.loading import load_pipeline
from transforms.records import Failure
from worker.dead_letter import dead_letters
from worker.lineage import stamped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from random import Random

    from spark_batch.model import Partition

Place: TypeAlias = "tuple[str, int, int]"
"""(topic, partition, offset)"""

EPOCH_MS = 1_760_000_000_000
WORKERS = ("one", "two", "three")

_YAML = """\
name: {name}
source: {{topics: [{name}.a, {name}.b], start: {start}}}
sink: {{topic: {name}.out}}
steps:
  - filter: n % 10 != 3
  - explode: {{field: each, into: item}}
  - set: {{twice: n * 2}}
  - route: [{{when: item % 7 == 0, to: {name}.large}}, {{to: {name}.out}}]
kafka: {{bootstrap.servers: "{bootstrap}"}}
{more}
"""


@dataclass(eq=False, slots=True)
class Planned:
    """A record to be written to an output topic or the dead letters."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, Any]]
    timestamp_ms: int
    offset: int | None = None
    """Where it was written, by the broker's word."""

    @property
    def place(self) -> Place:
        assert self.offset is not None, f"a record to {self.topic} was never written"
        return self.topic, self.partition, self.offset

    def copy(self) -> Planned:
        return Planned(self.topic, self.partition, self.key, self.value, list(self.headers), self.timestamp_ms)


@dataclass(eq=False, slots=True)
class Fate:
    """A source record and what is to become of it: outputs, or a dead letter, or neither."""

    message: Message
    part: Part
    outputs: list[Planned] = field(default_factory=list)
    letter: Planned | None = None
    diverted: bool = False
    """Its outputs could not be delivered: the dead letter stands in their place."""
    touched: bool = False
    """By a plant."""

    @property
    def place(self) -> Place:
        topic, partition, offset = self.message.topic(), self.message.partition(), self.message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        return topic, partition, offset

    @property
    def filtered(self) -> bool:
        return not self.outputs and self.letter is None


@dataclass(eq=False, slots=True)
class Part:
    """One source partition's share of a transaction: an entry of its receipt."""

    topic: str
    partition: int
    from_: int
    to: int
    fates: list[Fate] = field(default_factory=list)
    messages: list[Planned] = field(default_factory=list)
    read: int = 0
    filtered: int = 0
    dead_lettered: int = 0
    written: Counter[str] = field(default_factory=Counter)
    touched: int = 0
    """Plants on its records."""
    reserved: bool = False
    """A plant that needs this range for itself."""

    @property
    def place(self) -> Partition:
        return self.topic, self.partition

    def count(self) -> None:
        """Figures from what is planned."""
        self.read = len(self.fates)
        self.filtered = sum(fate.filtered for fate in self.fates)
        self.dead_lettered = sum(fate.letter is not None for fate in self.fates)
        self.written = Counter(planned.topic for fate in self.fates for planned in fate.outputs)

    def entry(self, topic_id: str | None) -> dict[str, Any]:
        """As in docs/receipts.md."""
        return {
            "topic": self.topic,
            "topic_id": topic_id,
            "partition": self.partition,
            "from": self.from_,
            "to": self.to,
            "read": self.read,
            "filtered": self.filtered,
            "dead_lettered": self.dead_lettered,
            "written": dict(self.written),
        }


@dataclass(eq=False, slots=True)
class Transaction:
    worker: str
    incarnation: str
    sequence: int
    parts: list[Part]
    aborted_before: bool
    """The same outputs once before, aborted."""
    late: list[Planned] = field(default_factory=list)
    """Written behind the outputs of the parts; not in any figures."""
    receipts: int = 1


class World:
    """The topics of one pipeline. `records`: source records over all partitions, about; `window`: records per receipt entry, at most."""

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        dice: Random,
        *,
        records: int = 1500,
        partitions: int = 3,
        window: int = 60,
        start: str = "earliest",
        skip: int = 0,
        more: str = "",
        source_config: dict[str, str] | None = None,
        apart: bool = False,
    ) -> None:
        """`skip`: offsets before the group's beginning, never claimed (`start: latest`). `apart`: no two plants in one receipt's range."""
        self.bootstrap, self.dice = bootstrap, dice
        self.name = unique("w")
        self.sources = [(f"{self.name}.{letter}", number) for letter in "ab" for number in range(partitions)]
        self.sinks = {f"{self.name}.out": 3, f"{self.name}.large": 1}
        self.out, self.large = self.sinks
        self.letters, self.receipts = f"{self.name}.dead-letters", f"{self.name}.receipts"
        self.path = folder / f"{self.name}.yaml"
        self.path.write_text(_YAML.format(name=self.name, start=start, bootstrap=bootstrap, more=more))
        self.loaded = load_pipeline(self.path)
        self.admin = admin_client(bootstrap)
        create_topics(bootstrap, {f"{self.name}.{letter}": partitions for letter in "ab"}, source_config)
        create_topics(bootstrap, {**self.sinks, self.letters: 2, self.receipts: 2})
        self.topic_ids: dict[str, str | None] = {**topic_ids(bootstrap, [f"{self.name}.a", f"{self.name}.b"])}
        self.begins = dict.fromkeys(self.sources, skip)
        self._window, self._apart = window, apart
        self._sow(records)
        with Reader(bootstrap) as reader:
            # The plan depends on the sources' ends: before the last markers have landed they would not be those of the seed.
            reader.await_stable([f"{self.name}.{letter}" for letter in "ab"])
        messages = self._harvest()
        self.fates: dict[Place, Fate] = {}
        self.gaps: dict[Partition, list[int]] = {}
        self.transactions: list[Transaction] = []
        self.intact = list(self.sources)
        """Source partitions that no scene spoils as a whole."""
        self.unborn: list[Fate] = []
        """Of source records that the workers do not reach."""
        self._plan(messages)
        self.pool = list(self.fates.values())
        dice.shuffle(self.pool)

    # Sources

    def _sow(self, records: int) -> None:
        """First what lies before the group's beginning; then an idempotent producer, transactions, aborted transactions in turn."""
        plain = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        in_transactions = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": unique("feed")})
        in_transactions.init_transactions(PATIENCE_S)
        for topic, number in self.sources:
            for _ in range(self.begins[topic, number]):
                plain.produce(topic, b"{}", partition=number, timestamp=EPOCH_MS)
            assert plain.flush(PATIENCE_S) == 0
        episodes = 8
        share = max(1, records // len(self.sources) // episodes)
        numbers = iter(range(10**9))
        for episode in range(episodes):
            transactional = episode % 2 == 1
            producer = in_transactions if transactional else plain
            if transactional:
                producer.begin_transaction()
            for place in self.sources:
                for _ in range(max(1, share + self.dice.randint(-share // 3, share // 3))):
                    _feed(producer, place, next(numbers), self.dice)
            if transactional:
                producer.commit_transaction(PATIENCE_S)
                in_transactions.begin_transaction()
                for place in self.sources:
                    for _ in range(self.dice.randint(1, 5)):
                        _feed(producer, place, -1, self.dice)
                assert in_transactions.flush(PATIENCE_S) == 0
                in_transactions.abort_transaction(PATIENCE_S)
            assert plain.flush(PATIENCE_S) == 0

    def _harvest(self) -> dict[Partition, list[Message]]:
        """What a worker would read: the committed records, in order."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": unique("harvest"),
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        found: dict[Partition, list[Message]] = {place: [] for place in self.sources}
        try:
            self.ends = {
                place: consumer.get_watermark_offsets(TopicPartition(*place), PATIENCE_S)[1] for place in self.sources
            }
            consumer.assign([TopicPartition(*place, self.begins[place]) for place in self.sources])
            left = set(self.sources)
            while left:
                for message in consumer.consume(10_000, 0.1):
                    place = message.topic() or "", message.partition() or 0
                    error = message.error()
                    if error is None:
                        found[place].append(message)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        left.discard(place)
                    else:
                        raise AssertionError(str(error))
                    if not left:
                        break
        finally:
            consumer.close()
        return found

    # The plan

    def _plan(self, messages: dict[Partition, list[Message]]) -> None:
        windows = {place: self._cut(place, messages[place]) for place in self.sources}
        for place in self.sources:
            there = {message.offset() for message in messages[place]}
            end = windows[place][-1].to
            self.gaps[place] = [n for n in range(self.begins[place], end) if n not in there]
        incarnations = {worker: str(uuid.uuid4()) for worker in WORKERS}
        sequences = Counter[str]()
        while any(windows.values()):
            worker = self.dice.choice(WORKERS)
            if self.dice.random() < 0.05:  # restarted
                incarnations[worker], sequences[worker] = str(uuid.uuid4()), 0
            open_places = [place for place in self.sources if windows[place]]
            chosen = self.dice.sample(open_places, min(len(open_places), self.dice.randint(1, 4)))
            sequences[worker] += 1
            parts = [windows[place].pop(0) for place in chosen]
            aborted = self.dice.random() < 0.15
            self.transactions.append(
                Transaction(worker, incarnations[worker], sequences[worker], parts, aborted_before=aborted)
            )

    def _cut(self, place: Partition, messages: list[Message]) -> list[Part]:
        """Receipt ranges of one source partition, tiling it; in the end one that passes the markers behind the last record."""
        parts, begin, at = [], self.begins[place], 0
        while at < len(messages):
            piece = messages[at : at + self.dice.randint(max(2, self._window // 4), self._window)]
            at += len(piece)
            to = (piece[-1].offset() or 0) + 1
            parts.append(self._part(Part(*place, begin, to), piece))
            begin = to
        if begin < self.ends[place] and self.dice.random() < 0.5:
            parts.append(Part(*place, begin, self.ends[place]))
        return parts

    def _part(self, part: Part, messages: list[Message]) -> Part:
        divert = {id(m) for m in messages if self.dice.random() < 0.02}
        result = self.loaded.transform.run(messages)  # type: ignore[arg-type]  # as worker/fill.py: headers are a list
        fates = {id(message): Fate(message, part) for message in messages}
        for output, message in zip(result.outputs, stamped(*part.place, result.outputs), strict=True):
            to, value, key, _, _, _, timestamp, headers = message
            fate = fates[id(output[5])]
            if id(output[5]) in divert:
                fate.diverted = True
                continue
            planned = Planned(to, self.home(to, key), key, value, list(headers or ()), timestamp)
            fate.outputs.append(planned)
            part.messages.append(planned)
        refused = [
            Failure(fate.message, "UndeliverableOutput", "MSG_SIZE_TOO_LARGE", "sink", 0)  # type: ignore[arg-type]
            for fate in fates.values()
            if fate.diverted
        ]
        for failure in [*result.failures, *refused]:
            ((to, value, key, _, _, _, timestamp, headers),) = dead_letters(self.letters, [failure])
            letter = Planned(to, self.home(to, key), key, value, list(headers or ()), timestamp)
            fates[id(failure.record)].letter = letter
            part.messages.append(letter)
        part.fates = list(fates.values())
        self.fates |= {fate.place: fate for fate in part.fates}
        part.count()
        return part

    def home(self, topic: str, key: bytes | None) -> int:
        """The partition of a key; any for none."""
        count = self.sinks.get(topic, 2)
        return self.dice.randrange(count) if key is None else zlib.crc32(key) % count

    def transaction_of(self, part: Part) -> Transaction:
        return next(t for t in self.transactions if part in t.parts)

    # For plants

    def pick(self, wanted: Callable[[Fate], bool]) -> Fate:
        """A source record that no plant has touched; it is touched from now on. LookupError where there is none."""
        for fate in self.pool:
            if not fate.part.reserved and not (self._apart and fate.part.touched) and wanted(fate):
                self.take(fate)
                return fate
        raise LookupError("no source record is left for this plant: make the world larger")

    def take(self, fate: Fate) -> None:
        """A plant touches this source record."""
        self.pool.remove(fate)
        fate.touched = True
        fate.part.touched += 1

    def pick_part(self, wanted: Callable[[Part], bool] = lambda _: True) -> Part:
        """A receipt's entry that no plant has touched; its records are out of reach for others from now on."""
        parts = [p for t in self.transactions for p in t.parts if not p.touched and not p.reserved and wanted(p)]
        if not parts:
            raise LookupError("no receipt is left for this plant: make the world larger")
        part = self.dice.choice(parts)
        part.reserved = True
        return part

    def pick_transaction(self) -> Transaction:
        """One with records whose parts no plant has touched; all of them are out of reach from now on."""
        free = [t for t in self.transactions if all(p.fates and not p.touched and not p.reserved for p in t.parts)]
        if not free:
            raise LookupError("no transaction is left for this plant: make the world larger")
        chosen = self.dice.choice(free)
        for part in chosen.parts:
            part.reserved = True
        return chosen

    def pick_neighbours(self, wanted: Callable[[Part, Part], bool]) -> tuple[Part, Part]:
        """Two receipt entries of which the second begins where the first ends, neither of them touched."""
        free = [p for p in self.parts() if not p.touched and not p.reserved]
        pairs = [(a, b) for a in free for b in free if a.place == b.place and a.to == b.from_ and wanted(a, b)]
        if not pairs:
            raise LookupError("no neighbouring receipts are left for this plant: make the world larger")
        chosen = self.dice.choice(pairs)
        for part in chosen:
            part.reserved = True
        return chosen

    def reserve(self, place: Partition) -> None:
        """Take a whole source partition out of the reach of plants."""
        self.intact.remove(place)
        for part in self.parts():
            part.reserved |= part.place == place

    def pick_gap(self) -> tuple[Place, Part]:
        """An offset that holds a marker or an aborted record, and the receipt entry that covers it."""
        place = self.dice.choice([place for place in self.intact if self.gaps[place]])
        offset = self.gaps[place].pop(self.dice.randrange(len(self.gaps[place])))
        part = next(p for p in self.parts() if p.place == place and p.from_ <= offset < p.to)
        if part.reserved or (self._apart and part.touched):
            return self.pick_gap()
        part.touched += 1
        return (*place, offset), part

    def pick_model(self) -> Planned:
        """Any output, to make another one like it."""
        return next(fate.outputs[0] for fate in self.pool if fate.outputs)

    def some_part(self) -> Part:
        """A receipt's entry with records that is not reserved."""
        return self.dice.choice([p for p in self.parts() if p.fates and not p.reserved])

    @property
    def committed(self) -> dict[Partition, int]:
        """C: what the group commits in the end."""
        found: dict[Partition, int] = {}
        for part in self.parts():
            found[part.place] = max(part.to, found.get(part.place, 0))
        return found

    def parts(self) -> Iterator[Part]:
        for transaction in self.transactions:
            yield from transaction.parts

    # Writing

    def write(self, begin: int = 0, end: int | None = None) -> None:
        """The plan's transactions, in order, with aborted copies and foreign records among them; or those of [begin, end).

        On return all of it can be read, and the group's offsets are those of the last transaction.
        """
        producers = {worker: self._producer(worker) for worker in WORKERS}
        foreign = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5})
        group = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.loaded.spec.group})
        try:
            # A group without members takes offsets from a producer that has no membership: it stands for all the workers.
            metadata = group.consumer_group_metadata()
            for number, transaction in enumerate(self.transactions[begin:end]):
                producer = producers[transaction.worker]
                if transaction.aborted_before:
                    producer.begin_transaction()
                    self._produce(producer, [p.copy() for p in self._messages(transaction)])
                    assert producer.flush(PATIENCE_S) == 0
                    producer.abort_transaction(PATIENCE_S)
                producer.begin_transaction()
                self._produce(producer, self._messages(transaction))
                for _ in range(transaction.receipts):
                    producer.produce(self.receipts, self.receipt(transaction), f"{self.name}-{transaction.worker}")
                offsets = [TopicPartition(*part.place, part.to) for part in transaction.parts]
                producer.send_offsets_to_transaction(offsets, metadata, PATIENCE_S)
                producer.commit_transaction(PATIENCE_S)
                if number % 10 == 3:
                    foreign.produce(self.out, b"somebody else's", b"foreign", headers=[("trace", b"x")])
            assert foreign.flush(PATIENCE_S) == 0
        finally:
            group.close()
        self._await_written(self.transactions[begin:end])

    def _await_written(self, transactions: list[Transaction]) -> None:
        offsets = {part.place: part.to for transaction in transactions for part in transaction.parts}
        with Reader(self.bootstrap) as reader:
            reader.await_stable([*self.sinks, self.letters, self.receipts])
            await_true(
                lambda: reader.committed_offsets(self.loaded.spec.group, offsets) == offsets,
                f"the group has committed {offsets}",
                PATIENCE_S,
            )

    def _producer(self, worker: str) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": f"{self.name}-{worker}",
                "linger.ms": 2,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        producer.init_transactions(PATIENCE_S)
        return producer

    def _messages(self, transaction: Transaction) -> list[Planned]:
        return [planned for part in transaction.parts for planned in part.messages] + transaction.late

    def _produce(self, producer: Producer, messages: list[Planned]) -> None:
        for planned in messages:
            producer.produce(
                planned.topic,
                planned.value,
                planned.key,
                planned.partition,
                on_delivery=partial(_delivered, planned),
                timestamp=planned.timestamp_ms,
                headers=planned.headers,
            )

    def receipt(self, transaction: Transaction) -> bytes:
        return orjson.dumps(
            {
                "schema": 1,
                "pipeline": self.name,
                "transactional_id": f"{self.name}-{transaction.worker}",
                "incarnation": transaction.incarnation,
                "sequence": transaction.sequence,
                "transform": self.loaded.transform.digest,
                "worker": "0.1.0",
                "time_ms": EPOCH_MS + 3_600_000 + 100 * self.transactions.index(transaction),
                "lineage": self.loaded.spec.lineage,
                "partitions": [part.entry(self.topic_ids[part.topic]) for part in transaction.parts],
            }
        )


def topic_ids(bootstrap: str, topics: list[str]) -> dict[str, str]:
    """In the form of Kafka's own tools: base64 for URLs, where librdkafka has the usual one."""
    admin = admin_client(bootstrap)  # held: a client that is collected cancels what it was asked
    found = admin.describe_topics(TopicCollection(topics))
    ids = {topic: str(future.result(PATIENCE_S).topic_id) for topic, future in found.items()}
    return {topic: each.translate(str.maketrans("+/", "-_")) for topic, each in ids.items()}


def _delivered(planned: Planned, error: KafkaError | None, message: Message) -> None:
    assert error is None, f"a planned record to {planned.topic} was not delivered: {error}"
    planned.offset = message.offset()


def _feed(producer: Producer, place: Partition, n: int, dice: Random) -> None:
    """One source record; the kinds of trouble that a worker takes in its stride. n < 0: belongs to an aborted transaction."""
    # Several outputs of one record, some of them alike; and lists that yield none.
    each = [n, n + 1, n + 2, n + 2] if n % 11 == 0 else [] if n % 17 == 4 else [n]
    value: bytes | None = orjson.dumps({"n": n, "note": "ü", "each": each})
    if n % 31 == 7:
        value = None
    elif n % 29 == 5:
        value = b"no json" if n % 2 else b""
    headers: list[tuple[str, Any]] = []
    if n % 5 == 0:
        headers = [("trace", str(n)), ("empty", None), ("trace", b"twice"), ("blank", b"")]
    if n % 13 == 0:  # an upstream pipeline's: this one was its output, or its dead letter
        headers += [("reckon.source", f"upstream/0/{n}/0"), ("reckon.source.topic", b"upstream")]
        headers += [("reckon.source.partition", b"0"), ("reckon.source.offset", str(n).encode())]
    key = None if n % 37 == 0 else b"" if n % 43 == 0 else f"k{dice.randrange(40)}"
    producer.produce(place[0], value, key, place[1], timestamp=EPOCH_MS + max(n, 0) * 1000, headers=headers)
