"""Which source offsets one audit judges, and what the cut and the last audit's state say before anything is read. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spark_batch.context import Begin
from spark_batch.model import Finding, Kind, Range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_batch.context import Sequences
    from spark_batch.model import Cut, OpenTransaction, Partition
    from spark_batch.state import State


@dataclass(frozen=True, slots=True)
class Scope:
    """See Context, which has the same fields."""

    audited: dict[Partition, Range]
    begin: dict[Partition, Begin]
    outputs_from: dict[Partition, int]
    findings: tuple[Finding, ...]
    unknown: frozenset[Partition]
    recreated: frozenset[str]
    previous: Sequences | None
    seen: dict[Partition, int]
    marks: dict[Partition, int]


def scope_of(cut: Cut, state: State | None, since: Mapping[Partition, int] | None = None) -> Scope:
    """`state`: the last audit's, None to begin at the beginning. `since`: begin there instead (offsets by time; a partition without
    a record so late is absent). Outputs are read from their first record then: they may be younger than their source's timestamp says.
    """
    recreated = frozenset(
        topic for topic, known in cut.topic_ids.items() if state and state.topic_ids.get(topic, known) != known
    )
    before = {p: c for p, c in state.committed.items() if p[0] not in recreated} if state and since is None else {}
    findings = [_recreated(topic) for topic in sorted(recreated)] + [_open(each) for each in cut.open_transactions]
    audited, begin, unknown = {}, {}, set()
    for partition, start in sorted(cut.source_start.items()):
        end, last = cut.committed.get(partition), before.get(partition)
        if problem := _doubt(end, last, cut.source_end[partition]):
            unknown.add(partition)
            findings.append(Finding(Kind.OFFSETS_UNKNOWN, *partition, end, detail=f"group {cut.group}: {problem}"))
        if end is None:
            continue
        if since is not None:
            first, begin[partition] = max(start, since.get(partition, end)), Begin.SINCE
        elif last is not None:
            first, begin[partition] = last, Begin.CONTINUED
        else:
            first, begin[partition] = start, Begin.BEGINNING
        audited[partition] = Range(min(first, end), end)
    known = state.outputs_from if state and since is None else {}
    return Scope(
        audited=audited,
        begin=begin,
        outputs_from={p: 0 if p[0] in recreated else known.get(p, 0) for p in cut.outputs},
        findings=tuple(findings),
        unknown=frozenset(unknown),
        recreated=recreated,
        previous=state.sequences if state and since is None else None,
        # A partition that was added since is new from its first record on. Of a topic that was none of the pipeline's then nobody knows
        # since when its records are there.
        seen={p: state.outputs_end.get(p, 0) for p in cut.outputs if p[0] in state.topic_ids.keys() - recreated}
        if state and since is None
        else {},
        marks={p: mark for p, mark in before.items() if p in cut.source_start},
    )


def _doubt(committed: int | None, last: int | None, source_end: int) -> str | None:
    """Why a partition's committed offset cannot be believed (A11); None where it can."""
    if committed is None:
        return None if last is None else f"its offset is gone (expired or deleted); it was audited up to {last}"
    if committed > source_end:
        return f"its offset {committed} lies beyond the partition's end {source_end}"
    if last is not None and committed < last:
        return f"its offset {committed} was reset backwards; it was audited up to {last}"
    return None


def _recreated(topic: str) -> Finding:
    return Finding(
        Kind.TOPIC_RECREATED,
        topic,
        0,
        None,
        detail="deleted and created again since the last audit: its offsets do not mean what they meant then",
    )


def _open(transaction: OpenTransaction) -> Finding:
    since = datetime.fromtimestamp(transaction.since_ms / 1000, UTC).isoformat(timespec="seconds")
    who = f"producer {transaction.producer_id}, epoch {transaction.epoch}"
    if transaction.transactional_id is not None:
        who += f", transactional id {transaction.transactional_id}"
    hanging = transaction.coordinator_state is None
    state = (
        "its coordinator does not list it: it hangs"
        if hanging
        else f"its coordinator says {transaction.coordinator_state}"
    )
    return Finding(
        Kind.HANGING_TRANSACTION if hanging else Kind.OPEN_TRANSACTION,
        transaction.topic,
        transaction.partition,
        transaction.start_offset,
        detail=f"{who}: last write {since}; {state}",
    )
