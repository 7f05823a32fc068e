"""Fills an open transaction with what a batch becomes: outputs, dead letters, and the figures for the receipt."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from transforms.records import Failure, Result
from worker.dead_letter import dead_letters
from worker.errors import UndeliverableError, WorkerError, remedy
from worker.lineage import Message, stamped, unstamped
from worker.receipt import PartitionReceipt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from transforms.records import Output, SourceRecord
    from worker.batch import Batch
    from worker.diversions import Diversions
    from worker.offsets import Partition
    from worker.settings import Settings
    from worker.transaction import TransactionalProducer

PIECE = 250
"""Records that are transformed and produced together. Small enough for the processor's caches (DECISIONS.md, 11)."""

Refused = dict[tuple[str, int, int], str]


@dataclass(frozen=True, slots=True)
class Filled:
    """What a transaction holds, its receipt aside."""

    parts: tuple[PartitionReceipt, ...]
    example: Failure | None
    """The last of the failures."""
    refused: Refused
    """Inputs with an output that the client refuses for ever: this transaction must not commit (T5)."""


class Filler:
    """``transform``: from a run of records of one source partition to its Result."""

    def __init__(
        self,
        settings: Settings,
        transform: Callable[[Sequence[SourceRecord]], Result],
        producer: TransactionalProducer,
        diversions: Diversions,
    ) -> None:
        self._settings = settings
        self._transform = transform
        self._producer = producer
        self._diversions = diversions

    def fill(self, batch: Batch, ranges: Mapping[Partition, tuple[int, int]], topic_ids: Mapping[str, str]) -> Filled:
        """Transform and produce the batch, piece by piece, and let go of each piece of the batch: an abort rewinds, it needs no copy.

        A partition without records in the batch but with a range has passed commit markers.
        """
        parts = []
        refused: Refused = {}
        example: Failure | None = None
        for partition, (start, end) in ranges.items():
            # The cast: a consumed message's headers are a list, though confluent-kafka's type also allows what produce() takes.
            records = cast("list[SourceRecord]", batch.runs.get(partition, []))
            read, filtered, dead = len(records), 0, 0
            written: Counter[str] = Counter()
            while records:
                piece = records[:PIECE]
                del records[:PIECE]
                result = self._transformed(partition, piece)
                refused |= self._produce(partition, result)
                written.update(map(itemgetter(0), result.outputs))
                filtered += result.filtered
                dead += len(result.failures)
                example = result.failures[-1] if result.failures else example
            topic_id = topic_ids.get(partition[0])
            parts.append(PartitionReceipt(*partition, start, end, read, filtered, dead, dict(written), topic_id))
        return Filled(tuple(parts), example, refused)

    def _transformed(self, partition: Partition, records: Sequence[SourceRecord]) -> Result:
        """The transform's result; diverted inputs are failures without being transformed."""
        reasons = self._diversions.reasons
        if not reasons:
            return self._transform(records)
        result = self._transform([r for r in records if (*partition, r.offset()) not in reasons])
        diverted = [
            Failure(record, "UndeliverableOutput", reasons[*partition, record.offset() or 0], "sink", 0)
            for record in records
            if (*partition, record.offset()) in reasons
        ]
        return Result(result.outputs, [*result.failures, *diverted], result.filtered)

    def _produce(self, partition: Partition, result: Result) -> Refused:
        """Produce outputs and dead letters of one source partition. Returns the inputs with refused outputs."""
        messages = stamped(*partition, result.outputs) if self._settings.lineage else unstamped(result.outputs)
        refused = {_coordinates(result.outputs[index]): reason for index, reason in self._deliver(messages).items()}
        if refused and self._diversions.careful:
            raise UndeliverableError(refused, next(iter(refused.values())))  # the refusal has failed the transaction
        letters = dead_letters(self._settings.dead_letter_topic, result.failures)
        for index, reason in self._deliver(letters).items():
            record = result.failures[index].record
            raise WorkerError(
                f"the dead letter of {record.topic()}[{record.partition()}] offset {record.offset()} cannot be delivered to "
                f"{self._settings.dead_letter_topic}: {reason}{remedy(reason)}"
            )
        return refused

    def _deliver(self, messages: list[Message]) -> dict[int, str]:
        if self._diversions.careful:
            return self._producer.produce_one_by_one(messages)
        return self._producer.produce(messages)


def _coordinates(output: Output) -> tuple[str, int, int]:
    record = output[5]
    topic, partition, offset = record.topic(), record.partition(), record.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return topic, partition, offset
