"""Three judges of a run that has ended, none of which asks the worker: Python's verifier, Kafka's console consumer, the audit.

The first two compare with the oracle of the workload, each by records that it has read itself; the audit runs the transform again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from devkit.verify import DEAD_LETTER, by_lineage, compare
from spark_batch.model import Depth, ExitCode, Verdict
from tests.faults.model import Opinion
from tests.faults.offsets import history, steps_back
from tests.support.pipelines import last_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from devkit.verify import StoredRecord
    from spark_batch.model import Judgement
    from tests.faults.watch import Watch
    from tests.faults.workloads import Line


def verifier(line: Line, watch: Watch) -> Opinion:
    """Sets, order, doubles, receipts and offsets, after the run; and what a concurrent reader saw must be what stands there now."""
    problems = line.problems()  # which waits until all is settled: so before the outputs are read
    outputs = line.outputs()
    for topic in (line.sink, line.dead_letters):
        stands: dict[int, list[tuple[int, bytes | None]]] = {}
        for record in outputs:
            if record.topic == topic:
                stands.setdefault(record.partition, []).append((record.offset, record.value))
        for (name, partition), seen in list(watch.seen.items()):
            # A reader may be some records behind; it may not have seen one more, or another, or in another order.
            if name == topic and seen != stands.get(partition, [])[: len(seen)]:
                problems.append(f"{name}[{partition}]: a concurrent reader saw what does not stand there")
    steps = history(line.bootstrap, line.name)
    problems += steps_back(steps)
    if dict(steps) != line.committed():
        problems.append(f"the log of offsets ends with {dict(steps)}, the group has {line.committed()}")
    return _opinion("verifier", len(outputs), problems)


def console(line: Line, records: Sequence[StoredRecord]) -> Opinion:
    """What Kafka's own consumer saw while the run went on, against the oracle."""
    ours = [record for record in records if record.topic in (line.sink, line.dead_letters)]
    expected = [one for source in line.sources() for one in line.all_expected(source)]
    return _opinion("console consumer", len(ours), compare(expected, ours, by_lineage(line.dead_letters)).lines())


def audit(line: Line, auditor: Callable[[Path, Depth], Judgement]) -> Opinion:
    """Complete, at depth content, and over exactly the records that the oracle knows of."""
    judgement = auditor(line.path, Depth.CONTENT)
    problems = [f"{finding}" for finding in judgement.findings[:20]]
    if judgement.exit_code is not ExitCode.COMPLETE:
        problems.append(f"the verdict is {judgement.exit_code.name}")
    problems += not_as_expected(judgement, line.sources(), line)
    judged = sum(count for verdict, count in judgement.totals.items() if verdict is not Verdict.IN_FLIGHT)
    opinion = _opinion("audit", judged, problems)
    opinion.verdict = judgement.exit_code.name
    opinion.fault_kinds = sorted(kind for kind, count in judgement.finding_counts.items() if kind.is_fault and count)
    return opinion


def not_as_expected(judgement: Judgement, sources: Sequence[StoredRecord], line: Line) -> list[str]:
    """Whether each verdict was given as often as the oracle says, and no record was left in flight.

    Beyond the last record there may be markers and aborted records, whose offsets the audit counts as in flight, because it does not
    read them: exactly those that no worker has passed (DECISIONS 8), and none of a record.
    """
    wanted = Counter[Verdict](verdict_of(source, line) for source in sources)
    ends = last_offsets(sources, line.partitions)
    committed = line.committed()
    beyond = sum(judgement.cut.source_end.get(p, 0) - max(end, committed.get(p, 0)) for p, end in ends.items())
    wanted[Verdict.IN_FLIGHT] = beyond
    found = Counter(judgement.totals)
    return [
        f"{found[verdict]} records are {verdict.value}, not {wanted[verdict]} as by the oracle"
        for verdict in sorted(wanted.keys() | found.keys())
        if found[verdict] != wanted[verdict]
    ]


def verdict_of(source: StoredRecord, line: Line) -> Verdict:
    """What the oracle says of one record."""
    expected = line.all_expected(source)
    if not expected:
        return Verdict.FILTERED
    dead = any(each.output_index == DEAD_LETTER for each in expected)
    return Verdict.DEAD_LETTERED if dead else Verdict.EXACTLY_ONCE


def _opinion(judge: str, records: int, problems: list[str]) -> Opinion:
    """Who has seen nothing has no opinion that counts."""
    return Opinion(judge, records, problems if records else [*problems, "it had no record to judge"])
