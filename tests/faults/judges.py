"""Three judges of a run that has ended, none of which asks the worker: Python's verifier, Kafka's console consumer, the audit.

The first two compare with the oracle of the workload, each by records that it has read itself; the audit runs the transform again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from devkit.verify import by_lineage, compare
from spark_batch.model import Depth, ExitCode
from tests.faults.model import Opinion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from devkit.verify import StoredRecord
    from spark_batch.model import Judgement
    from tests.faults.watch import Watch
    from tests.faults.workloads import Line


def verifier(line: Line, watch: Watch) -> Opinion:
    """Sets, order, doubles, receipts and offsets, after the run; and what a concurrent reader saw must be what stands there now."""
    outputs = line.outputs()
    problems = line.problems()
    for topic in (line.sink, line.dead_letters):
        stands: dict[int, list[tuple[int, bytes | None]]] = {}
        for record in outputs:
            if record.topic == topic:
                stands.setdefault(record.partition, []).append((record.offset, record.value))
        for (name, partition), seen in list(watch.seen.items()):
            # A reader may be some records behind; it may not have seen one more, or another, or in another order.
            if name == topic and seen != stands.get(partition, [])[: len(seen)]:
                problems.append(f"{name}[{partition}]: a concurrent reader saw what does not stand there")
    problems += [step for step in watch.steps_back if step.startswith(line.name)]
    return Opinion("verifier", len(outputs), problems)


def console(line: Line, records: Sequence[StoredRecord]) -> Opinion:
    """What Kafka's own consumer saw while the run went on, against the oracle."""
    ours = [record for record in records if record.topic in (line.sink, line.dead_letters)]
    expected = [one for source in line.sources() for one in line.all_expected(source)]
    return Opinion("console consumer", len(ours), compare(expected, ours, by_lineage(line.dead_letters)).lines())


def audit(line: Line, auditor: Callable[[Path, Depth], Judgement]) -> Opinion:
    """Complete, at depth content, of all that the group has committed."""
    judgement = auditor(line.path, Depth.CONTENT)
    problems = [f"{finding}" for finding in judgement.findings[:20]]
    if judgement.exit_code is not ExitCode.COMPLETE:
        problems.append(f"the verdict is {judgement.exit_code.name}")
    return Opinion("audit", sum(judgement.totals.values()), problems)
