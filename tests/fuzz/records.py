"""Random records through every step and pipeline: each is an output, filtered, or a dead letter."""

from __future__ import annotations

import faulthandler
import random
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fuzz import values
from tests.fuzz.judge import complaints
from tests.fuzz.shrink import shrunk
from tests.fuzz.targets import Target, targets
from transforms.samples import Sample
from worker.budget import TimeBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transforms.records import HeaderList, Result

BATCH = 250
"""As the worker's pieces (worker.fill.PIECE)."""
BUDGET_MS = 1000
HANG_S = 180
MEMORY = 2 * 2**30
"""Bytes by which a run's resident memory must not grow: a 10 MB record may become a few hundred MB of Python objects, for a while."""

_KEYS: list[bytes | None] = [
    None,
    b"",
    b"k1",
    b"17",
    b'{"a":1}',
    b"\xff\xfe",
    b"null",
    b"[" * 2000,
    values.SECRET.encode(),
]
_HEADERS: list[HeaderList | None] = [
    None,
    [],
    [("a", b"1")],
    [("a", b"1"), ("a", None), ("h", b"\xff")],
    [("debug", b"x"), ("trace", b"\x00")],
    [("reckon.source", b"in/0/1/0"), ("", b"")],
]
_TIMESTAMPS = [0, 1, -1, 1_700_000_000_000, 253402300799999, 253402300800000, 2**63 - 1, -(2**63)]


@dataclass(slots=True)
class Tally:
    records: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """outputs, filtered, and dead letters by class."""
    slowest: float = 0
    """Seconds that one batch took."""
    failures: list[str] = field(default_factory=list)
    known: set[tuple[str, str]] = field(default_factory=set)
    """What has failed for a pipeline already is told once."""

    def __str__(self) -> str:
        parts = ", ".join(f"{count:,} {what}" for what, count in self.outcomes.most_common())
        return f"{self.records:,} records: {parts}; slowest batch {self.slowest:.2f} s, memory at most {peak() // 2**20} MiB"


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fuzz(count: int, seed: int, *, chosen: Sequence[Target] | None = None, say: Callable[[str], None] = print) -> Tally:
    """Sends `count` records; stops at ten failures. Each batch has a seed of its own, made of `seed` and its number."""
    tally, before = Tally(), peak()  # of the tests that ran before in this process
    chosen = chosen or targets()
    batch = 0
    while tally.records < count and len(tally.failures) < 10:
        rng = random.Random(seed * 1_000_003 + batch)
        target = chosen[batch % len(chosen)]
        records = [_record(rng, target, number) for number in range(min(BATCH, count - tally.records))]
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        _batch(target, records, tally, f"seed {seed}, batch {batch}", say, again=rng.random() < 0.1)
        faulthandler.cancel_dump_traceback_later()
        batch += 1
    if peak() - before > MEMORY:
        tally.failures.append(f"memory: {peak() - before:,} bytes")
    return tally


def _record(rng: random.Random, target: Target, number: int) -> Sample:
    return Sample(
        values.content(rng, target.names, target.bases),
        rng.choice(_KEYS),
        rng.choice(_HEADERS),
        rng.choice(_TIMESTAMPS) if rng.random() < 0.2 else 1_700_000_000_000 + number,
        rng.choice(target.topics),
        rng.randrange(3),
        number,
    )


def _batch(
    target: Target, records: list[Sample], tally: Tally, name: str, say: Callable[[str], None], *, again: bool
) -> None:
    start = time.perf_counter()
    result = run(target, records)
    tally.slowest = max(tally.slowest, time.perf_counter() - start)
    tally.records += len(records)
    tally.outcomes["outputs"] += len(result.outputs)
    tally.outcomes["filtered"] += result.filtered
    tally.outcomes.update(failure.error_class for failure in result.failures)
    wrong = complaints(target, records, result)
    if again and not wrong and not _ran_out(result):
        second = run(target, records)
        if not _ran_out(second) and _plain(second) != _plain(result):
            wrong = [("another result the second time", None)]
    for message, record in wrong:
        if (target.name, message) not in tally.known:
            tally.known.add((target.name, message))
            tally.failures.append(_told(target, name, message, record))
            say(tally.failures[-1])


def run(target: Target, records: Sequence[Sample]) -> Result:
    """As the worker runs them."""
    with TimeBudget(target.transform, BUDGET_MS) as budget:
        return budget.run(records)


def _ran_out(result: Result) -> bool:
    """Of its time: on a busy machine the same record may, or may not."""
    return any(failure.error_class == "TimeBudgetExceeded" for failure in result.failures)


def _plain(result: Result) -> Any:
    failures = [(failure.record, failure.error_class, failure.message, failure.step) for failure in result.failures]
    return result.outputs, failures, result.filtered


def _told(target: Target, name: str, message: str, record: Sample | None) -> str:
    if record is None:
        return f"{name}, {target.name}: {message}"

    def still(content: bytes) -> bool:
        smaller = Sample(content, record.key_, record.headers_, record.timestamp_ms, record.topic_)
        return any(found == message for found, _ in complaints(target, [smaller], run(target, [smaller])))

    content = record.content if record.content is None else shrunk(record.content, still)
    return (
        f"{name}, {target.name}: {message}\n  value {content!r:.2000}\n  key {record.key_!r:.200} headers {record.headers_} "
        f"timestamp {record.timestamp_ms}"
    )


def main(count: int, seed: int) -> int:
    start = time.perf_counter()
    tally = fuzz(count, seed)
    seconds = time.perf_counter() - start
    sys.stdout.write(
        f"{tally}\nseed {seed}, {len(targets())} pipelines, {seconds:.0f} s, {len(tally.failures)} failures\n"
    )
    return 1 if tally.failures else 0
