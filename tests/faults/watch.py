"""What can be seen from outside while a run goes on: committed records as they become readable, and stable offsets.

Independent of the worker: read_committed consumers and offset requests, straight to the brokers.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from devkit.errors import DevkitError
from devkit.reader import Reader
from tests.faults.model import Stand
from tests.support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from devkit.verify import Partition
    from tests.faults.workloads import Line

_LOOK_S = 0.5
"""Between two looks at the ends of the partitions: what a `Stand` may be short of, and the time that the answers took."""
STANDS_S = 1.0
"""A stable offset that moves on sooner is not told of."""


class Commit(NamedTuple):
    """A receipt that became readable. Times are seconds of `time.time()`."""

    at: float
    made_at: float
    """When the worker wrote it: tells the commits of two lives apart, of which one becomes readable when the other has begun."""
    transactional_id: str
    sources: frozenset[Partition]


class Watch:
    """A context manager: watches from entering to leaving."""

    def __init__(self, lines: Sequence[Line], bootstrap: str) -> None:
        self.commits: list[Commit] = []
        self.seen: dict[Partition, list[tuple[int, bytes | None]]] = defaultdict(list)
        """Per output partition (offset, value) of what came, in the order in which it came."""
        self.outputs: list[float] = []
        """When each output became readable, for the timeline."""
        self.stands: list[Stand] = []
        """Last stable offsets that stood below the high watermark, for STANDS_S or longer."""
        self.problems: list[str] = []
        """Why it is blind."""
        self._bootstrap = bootstrap
        self._counts: dict[str, int] = defaultdict(int)
        self._receipts = {line.receipts for line in lines}
        self._outputs = [topic for line in lines for topic in (line.sink, line.dead_letters)]
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(run,), daemon=True) for run in (self._read, self._look_at_ends)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def committed(self, transactional_id: str) -> int:
        """How many of its transactions were seen."""
        return self._counts[transactional_id]

    def has_seen(self, ends: Mapping[Partition, int]) -> bool:
        """Whether all records below these ends came; an end is the offset after a record."""
        return all(self.seen[partition] and self.seen[partition][-1][0] + 1 >= end for partition, end in ends.items())

    def all_move_on_s(self, line: Line, since: float, timeout_s: float) -> float | None:
        """Until each source partition stands in a receipt made after ``since``: how long that took; None where time was up."""
        wanted = set(line.partitions)
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            firsts: dict[Partition, float] = {}
            for commit in reversed(self.commits[:]):
                if commit.at < since:
                    break
                if commit.made_at >= since:
                    firsts |= dict.fromkeys(commit.sources, commit.at)
            if wanted <= firsts.keys():
                return max(firsts[partition] for partition in wanted) - since
            time.sleep(0.05)
        return None

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:  # noqa: BLE001 - told by the round
            self.problems.append(f"the watch is blind: {error!r}")

    def _read(self) -> None:
        with Reader(self._bootstrap) as reader:
            partitions = reader.partitions_of([*self._outputs, *self._receipts])
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": unique("watch"),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "error_cb": lambda _: None,
            }
        )
        consumer.assign([TopicPartition(*partition, 0) for partition in partitions])
        while not self._stop.is_set():
            for message in consumer.consume(5000, 0.1):
                if message.error() is not None:
                    continue
                topic, partition, offset, value = (
                    message.topic(),
                    message.partition(),
                    message.offset(),
                    message.value(),
                )
                assert topic is not None
                assert partition is not None
                assert offset is not None
                if topic in self._receipts:
                    self._note(value or b"")
                else:
                    self.seen[topic, partition].append((offset, value))
                    self.outputs.append(time.time())
        # Not closed, as it belongs to no group: after brokers' failures close() was seen to hang for ever (confluent-kafka-python #1667).

    def _note(self, receipt: bytes) -> None:
        told = json.loads(receipt)
        sources = frozenset((part["topic"], part["partition"]) for part in told["partitions"])
        self.commits.append(Commit(time.time(), told["time_ms"] / 1000, told["transactional_id"], sources))
        self._counts[told["transactional_id"]] += 1

    def _look_at_ends(self) -> None:
        """While brokers change no answer may come: what stood still before and after it stood still in between."""
        standing: dict[Partition, tuple[int, Stand]] = {}
        with Reader(self._bootstrap) as reader:
            partitions = reader.partitions_of([*self._outputs, *self._receipts])
            while not self._stop.wait(_LOOK_S):
                asked = time.time()
                try:
                    stable = reader.end_offsets(partitions)
                    high = reader.end_offsets(partitions, committed=False)
                except (KafkaException, DevkitError):
                    continue
                answered = time.time()
                for partition, end in stable.items():
                    at, stand = standing.pop(partition, (-1, None))
                    if end >= high[partition]:
                        continue
                    if stand is None or at != end:
                        stand = Stand(f"{partition[0]}[{partition[1]}] at {end}", answered, 0.0)
                    before, stand.lasted_s = stand.lasted_s, max(0.0, asked - stand.at)
                    if before < STANDS_S <= stand.lasted_s:
                        self.stands.append(stand)
                    standing[partition] = end, stand
