"""Kills a worker inside a transaction, and shows by the broker's own word that it was inside.

A stopped process commits nothing more. Records of its inputs that stand in the sink topics behind the last stable offset, while the
group's offset of these inputs is not committed, are an open transaction's; when that stays so, it is this process's. Killed then, it
leaves an orphan: a transaction that nobody will end until a restart with the same transactional.id, or the broker's timeout, does.
(confluent-kafka has no describe_transactions; Kafka's Java tool takes seconds to start.)
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from devkit import oracle
from devkit.verify import by_lineage
from devkit.workers import WorkerError

if TYPE_CHECKING:
    from devkit.reader import Reader
    from devkit.verify import Partition, StoredRecord
    from devkit.workers import WorkerProcess

TOPICS = (*oracle.OUTPUTS, oracle.DEAD_LETTERS)

_SETTLE_S = 1.0
"""A commit that was on its way when the process stopped is through long before: it takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """What a killed worker's open transaction left in the logs."""

    records: list[StoredRecord]
    """Written, never committed."""
    stable: dict[Partition, int]
    """The partitions that it holds back: the last stable offset, beyond which read_committed readers do not see."""
    attempts: int
    """How often the worker was stopped until it was inside."""

    def released(self, reader: Reader) -> bool:
        """Whether readers go on: every last stable offset lies behind the orphan's records."""
        ends = reader.end_offsets({(r.topic, r.partition) for r in self.records})
        return all(record.offset < ends[record.topic, record.partition] for record in self.records)


def kill_inside_transaction(worker: WorkerProcess, reader: Reader, member: str, timeout_s: float = 60.0) -> Orphan:
    """Stop the worker again and again until it is inside, then SIGKILL. `member`: its client.id in the group.

    Where a commit that was on its way took longer than _SETTLE_S on a busy machine, the worker is started again and the search goes on.
    WorkerError when it ends by itself, or is never found inside while there is work for it.
    """
    deadline = time.monotonic() + timeout_s
    attempts = 0
    while attempts == 0 or time.monotonic() < deadline:
        if not worker.alive:
            raise WorkerError(f"worker {worker.instance_id} ended before it was killed\n{worker.tail()}")
        attempts += 1
        inputs = reader.assignment(oracle.GROUP).get(member, frozenset())
        worker.pause()
        if _open_records(reader, inputs):
            time.sleep(_SETTLE_S)
            if _open_records(reader, inputs):
                worker.kill()
                if records := _open_records(reader, inputs):
                    held = {(record.topic, record.partition) for record in records}
                    return Orphan(records, reader.end_offsets(held), attempts)
                worker.start()
        worker.resume()
        time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 - so as not to fall into step with its transactions
    raise WorkerError(
        f"worker {worker.instance_id} was stopped {attempts} times within {timeout_s:g} s and was never inside a transaction"
    )


def _open_records(reader: Reader, inputs: frozenset[Partition]) -> list[StoredRecord]:
    """Records behind a last stable offset that come from uncommitted offsets of these source partitions."""
    partitions = reader.partitions_of(TOPICS)
    stable = reader.end_offsets(partitions)
    if not inputs or stable == reader.end_offsets(partitions, committed=False):
        return []
    committed = reader.committed_offsets(oracle.GROUP, inputs)
    identify = by_lineage(oracle.DEAD_LETTERS)
    found = []
    for record in reader.read(TOPICS, committed=False, starts=stable):
        identity = identify(record)
        if identity is None:
            continue
        (topic, partition, offset), _ = identity
        if (topic, partition) in inputs and offset >= committed.get((topic, partition), 0):
            found.append(record)
    return found
