"""The records collected for one transaction, by source partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message

    from worker.offsets import Partition


class Batch:
    """Grows while records are collected; partitions that a rebalance takes away are dropped from it (R1, R2, T9)."""

    def __init__(self) -> None:
        self.runs: dict[Partition, list[Message]] = {}
        """Per source partition its records, in order of offset."""
        self.records = 0
        self.bytes = 0
        """Bytes of the values."""

    def __bool__(self) -> bool:
        return bool(self.runs)

    def add(self, partition: Partition, messages: list[Message]) -> None:
        run = self.runs.get(partition)
        if run is None:
            self.runs[partition] = messages
        else:
            run.extend(messages)
        self.records += len(messages)
        self.bytes += sum(map(len, messages))

    def drop(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            run = self.runs.pop(partition, None)
            if run is not None:
                self.records -= len(run)
                self.bytes -= sum(map(len, run))
