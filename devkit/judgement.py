"""The verdict on a run of the orders pipeline: reads everything, asks the oracle, compares, and says what held."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING

from devkit import oracle
from devkit.verify import DEAD_LETTER, Findings, by_lineage, compare
from devkit.verify_receipts import check_receipts, fates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from devkit.orders import Kind
    from devkit.reader import Reader
    from devkit.verify import ExpectedRecord, StoredRecord

_TOPICS = (*oracle.OUTPUTS, oracle.DEAD_LETTERS)


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must hold, and what speaks against it."""

    title: str
    problems: list[str]

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Judgement:
    """Every check, and the numbers that people want to see beside them."""

    checks: list[Check]
    outputs: int
    dead_letters: int
    receipts: int
    aborted: int
    """Records of aborted transactions in the sink topics: read_committed readers never saw them."""

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def judge(reader: Reader, produced: Mapping[Kind, int], orphan: Sequence[StoredRecord] = ()) -> Judgement:
    """The verdict, after the workers have drained the source. ReadError where a topic cannot be read.

    `produced`: what the generator says that it made. `orphan`: records of a killed worker's transaction, which nobody may see.
    """
    gc.disable()  # it would walk over half a million records again and again: a third of the time
    try:
        return _judge(reader, produced, orphan)
    finally:
        gc.enable()


def _judge(reader: Reader, produced: Mapping[Kind, int], orphan: Sequence[StoredRecord]) -> Judgement:
    sources = reader.read([oracle.SOURCE])
    actual = reader.read(_TOPICS)
    receipts = reader.read([oracle.RECEIPTS])
    everything = reader.read(_TOPICS, committed=False)
    expected = [record for source in sources for record in oracle.expected(source)]
    identify = by_lineage(oracle.DEAD_LETTERS)
    findings = compare(expected, actual, identify)

    partitions = reader.partitions_of([oracle.SOURCE])
    ends = reader.end_offsets(partitions)
    committed = reader.committed_offsets(oracle.GROUP, partitions)
    receipt_errors = check_receipts(
        receipts,
        reader.begin_offsets(partitions),
        committed,
        found=fates(sources, actual, identify),
        dead_letter_topic=oracle.DEAD_LETTERS,
    )
    undrained = [f"{p}: {committed.get(p, 0)} of {end}" for p, end in ends.items() if committed.get(p, 0) != end]
    visible = {record.position for record in actual} & {record.position for record in orphan}
    checks = [
        Check("the source holds what was generated", _source_problems(produced, sources, expected)),
        Check("the group has consumed all of it", undrained),
        *_checks(findings),
        Check("receipts tile the source, and their counts are true", receipt_errors),
    ]
    if orphan:
        seen = [f"{len(visible)} of them can be read, e.g. {min(visible)}"] if visible else []
        checks.append(Check("nobody sees the killed worker's records", seen))
    dead_letters = sum(record.topic == oracle.DEAD_LETTERS for record in actual)
    return Judgement(
        checks, len(actual) - dead_letters, dead_letters, len(receipts), aborted=len(everything) - len(actual)
    )


def _checks(findings: Findings) -> list[Check]:
    """The findings by what a person would ask, those on dead letters apart."""
    dead = [entry for entry in findings.duplicated if entry[0][1] == DEAD_LETTER]
    dead_altered = [entry for entry in findings.altered if entry[0][1] == DEAD_LETTER]
    once = Findings(
        missing=findings.missing,
        duplicated=[entry for entry in findings.duplicated if entry not in dead],
        unexpected=findings.unexpected,
        misrouted=findings.misrouted,
    )
    letters = Findings(
        dead_letters_missing=findings.dead_letters_missing,
        dead_letters_extra=findings.dead_letters_extra,
        duplicated=dead,
        altered=dead_altered,
    )
    unaltered = Findings(altered=[entry for entry in findings.altered if entry not in dead_altered])
    in_order = Findings(reordered=findings.reordered, scattered=findings.scattered)
    return [
        Check("every valid order exactly once, in its topic", once.lines()),
        Check("values, keys, headers and timestamps are right", unaltered.lines()),
        Check("in order per key and partition", in_order.lines()),
        Check("every bad order once in the dead letters, no other", letters.lines()),
    ]


def _source_problems(
    produced: Mapping[Kind, int], sources: Sequence[StoredRecord], expected: Sequence[ExpectedRecord]
) -> list[str]:
    """The generator's own account against the oracle's reading of the stored bytes: two that do not know each other."""
    dead = sum(record.output_index == DEAD_LETTER for record in expected)
    made = (
        sum(produced.values()),
        produced.get("malformed", 0) + produced.get("rejected", 0),
        produced.get("ok", 0) + produced.get("tombstone", 0) * len(oracle.OUTPUTS),
    )
    read = (len({(record.key, record.timestamp_ms) for record in sources}), dead, len(expected) - dead)
    if made == read and len(sources) == made[0]:
        return []
    return [f"records, bad ones, outputs due: generated {made}, stored {read} in {len(sources)} records"]
