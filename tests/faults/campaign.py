"""The campaign: rounds of one workload under many faults, each followed by the judges. A seed names all that was planned.

Times within a run are the machine's; the seed repeats which faults come in which order, not at which microsecond.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from devkit.errors import DevkitError
from tests.faults import judges, recovery
from tests.faults.console import ConsoleError, ConsoleReader
from tests.faults.model import NotProvenError
from tests.faults.outside import OF_BROKERS, OUTSIDE, STORM
from tests.faults.storms import MOST
from tests.faults.supervisor import Crew, Plan, settings_of, worker_plans
from tests.faults.watch import Watch
from tests.faults.workloads import WORKLOADS, Feed, Workload, lines_of
from tests.support.pipelines import last_offsets
from tests.support.waiting import await_true

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from devkit.verify import StoredRecord
    from spark_batch.model import Depth, Judgement
    from tests.faults.arena import Arena
    from tests.faults.model import Fault, Opinion, Stand
    from tests.faults.workloads import Line

SETTLE_S = recovery.NEVER_S
PLAN_S, MORE_S = 30.0, 120.0
"""What a plan may take on average before a round counts as hung, and what comes on top; six times what is usual."""


@dataclass(frozen=True, slots=True)
class Round:
    """What is planned. ``plans``: faults of workers; ``outside``: names of `OUTSIDE`; both in order."""

    number: int
    workload: Workload
    protocol: str
    seed: int
    plans: tuple[Plan, ...]
    outside: tuple[str, ...] = ()
    mutant: str = ""

    @property
    def name(self) -> str:
        what = ", ".join([*sorted({plan.kind for plan in self.plans}), *self.outside])
        return f"{self.number}: {self.workload.name}, {self.protocol} protocol; {what}"


@dataclass(slots=True)
class Result:
    """What took place, and what the judges say."""

    round: Round
    began: float
    took_s: float = 0.0
    sent: int = 0
    """Source records produced at the head of the line."""
    faults: list[Fault] = field(default_factory=list)
    opinions: list[Opinion] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why the round is no proof: a worker's fault that did not come, a worker that hung."""
    unproven: list[str] = field(default_factory=list)
    """Faults from outside that were planned and cannot be shown to have taken place: they do not count."""
    disturbed: list[tuple[float, float]] = field(default_factory=list)
    """When brokers or the way to them were disturbed, shown or not, until all was whole again: seconds of `time.time()`."""
    surprises: list[str] = field(default_factory=list)
    stands: list[Stand] = field(default_factory=list)
    aborts: list[tuple[str, float]] = field(default_factory=list)
    """(transactional id, when) the workload made a transaction fail: seconds of `time.time()`."""
    aborted: int = 0
    """Records of aborted transactions in the outputs."""
    outputs_at: list[float] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems and not any(opinion.problems for opinion in self.opinions)


MENUS: tuple[tuple[str, ...], ...] = (
    ("worker kill",),
    ("worker kill", "worker kill", "worker kill", "SIGTERM", "zombie"),
    ("worker kill", "worker kill", "SIGTERM", "twin"),
)
"""Of the workers' faults, by turns."""
OUTSIDE_EACH = 4


def rounds_of(seed: int, plans: int) -> Iterator[Round]:
    """Rounds without end, in an order that meets everything early. ``plans``: faults of workers in each.

    By turns: workers alone; workers, brokers and the network together; brokers and the network alone. Where the number of workers shall
    go from one to six and to two, the source has a partition for each of them, and one worker begins, with the load of one.
    """
    dice, number, told = Random(seed), 0, 0
    outside = sorted(OUTSIDE)
    dice.shuffle(outside)
    while True:
        for workload in WORKLOADS:
            turn = (number + number // len(WORKLOADS)) % 3
            some = OUTSIDE_EACH * turn
            names = tuple(outside[(told + n) % len(outside)] for n in range(some))
            told += some
            protocol = "consumer" if number % 4 == 3 else "classic"
            own = worker_plans(dice, 0 if turn == 2 else plans, MENUS[number // 3 % 3])
            stormy = replace(
                workload,
                partitions=max(MOST, workload.partitions),
                instances=1,
                rate=workload.rate // workload.instances,
            )
            yield Round(number, stormy if STORM in names else workload, protocol, dice.randrange(10**6), own, names)
            number += 1


def play(planned: Round, arena: Arena, folder: Path, auditor: Callable[[Path, Depth], Judgement] | None) -> Result:
    """One round, from empty topics to the verdicts. Without an auditor the audit has no say."""
    result = Result(planned, time.time())
    lines = lines_of(planned.workload, arena.bootstrap, folder, proxied=arena.proxied)
    env = {**settings_of(planned.protocol), **({"FAULT_MUTANT": planned.mutant} if planned.mutant else {})}
    console_records: list[StoredRecord] = []
    with contextlib.ExitStack() as stack:
        for line in lines:
            stack.enter_context(line)  # whatever workers there are, they end before the judges begin
        watch = stack.enter_context(Watch(lines, arena.bootstrap))
        topics = [topic for line in lines for topic in (line.sink, line.dead_letters)]
        reader = stack.enter_context(ConsoleReader(arena.bootstrap, topics, folder))
        feed = stack.enter_context(Feed(lines[0], transactions=not planned.outside))
        crew = stack.enter_context(Crew(lines, planned.plans, watch.committed, env=env, seed=planned.seed))
        load_ended = math.inf
        try:
            assert watch.all_move_on_s(lines[-1], result.began, SETTLE_S), "nothing was ever committed"
            _disturb(result, arena, crew, lines, watch)
            crew.await_done(MORE_S + PLAN_S * len(planned.plans))
            load_ended = time.time()
            feed.stop()
            for line in lines:
                _await_drained(line)
            crew.leave()
            _await_read(lines, reader, watch)
        except Exception as error:  # noqa: BLE001 - a round that goes wrong is a result
            load_ended = min(load_ended, time.time())
            result.problems.append(repr(error))
        try:
            console_records = reader.records()
        except ConsoleError as error:
            result.problems.append(repr(error))
        result.sent = feed.sent
    result.problems += crew.problems + watch.problems
    result.surprises = crew.surprises
    result.stands, result.outputs_at = watch.stands, watch.outputs
    result.aborts = [abort for line in lines for abort in line.injected_aborts()]
    for fault in crew.faults:
        recovery.measure(fault, watch.commits, [*crew.faults, *result.faults], load_ended)
    result.faults += crew.faults
    result.unproven += [f"{planned.number}, {line}" for line in crew.unproven]
    result.problems += recovery.stuck(result.faults)
    try:
        _judge(result, lines, watch, console_records, auditor)
    except Exception as error:  # noqa: BLE001 - as above
        result.problems.append(f"a judge could not judge: {error!r}")
    result.took_s = time.time() - result.began
    return result


def _disturb(result: Result, arena: Arena, crew: Crew, lines: Sequence[Line], watch: Watch) -> None:
    """What comes from outside, one fault after the other; after each all is made whole again."""
    dice = Random(result.round.seed)
    for name in result.round.outside:
        outside: list[Fault] = []
        began = time.time()
        try:
            outside = OUTSIDE[name](arena, crew, lines[0], dice)
        except NotProvenError as error:
            result.unproven.append(f"{result.round.number}, {name}: {error}")
        else:
            if not outside:
                result.unproven.append(f"{result.round.number}, {name}: nothing took place")
        for fault in outside:
            fault.recovery_s = watch.all_move_on_s(lines[-1], fault.at, SETTLE_S)
            if fault.recovery_s is None:
                recovery.never(fault, SETTLE_S)
        result.faults += outside
        arena.heal()
        if name.startswith(OF_BROKERS):
            result.disturbed.append((began, time.time()))
        for fault in outside:
            fault.over_at = time.time()


def _judge(
    result: Result,
    lines: Sequence[Line],
    watch: Watch,
    console_records: Sequence[StoredRecord],
    auditor: Callable[[Path, Depth], Judgement] | None,
) -> None:
    for line in lines:
        verified = judges.verifier(line, watch)
        result.aborted += len(line.outputs(committed=False)) - verified.records
        result.opinions += [verified, judges.console(line, console_records)]
        if auditor is not None:
            result.opinions.append(judges.audit(line, auditor))


def _await_drained(line: Line) -> None:
    """Until the group has committed all that is in the source; its load has ended.

    What is in the source is known once the markers of the last transaction that wrote to it have come, which may be after the worker of
    the line before has committed its offsets.
    """
    line.reader.await_stable(line.topics, SETTLE_S)
    ends = last_offsets(line.sources(), line.partitions)

    def drained() -> bool:
        with contextlib.suppress(KafkaException, DevkitError):  # an answer that comes too late is asked for again
            committed = line.committed()
            return all(committed.get(p, 0) >= end for p, end in ends.items() if end)
        return False

    await_true(drained, f"{ends} committed", SETTLE_S)


def _await_read(lines: Sequence[Line], reader: ConsoleReader, watch: Watch) -> None:
    """Until all that was committed is readable, and the concurrent readers have seen it."""
    for line in lines:
        line.reader.await_stable([line.sink, line.dead_letters, line.receipts], SETTLE_S)
        partitions = line.reader.partitions_of([line.sink, line.dead_letters])
        ends = {p: end for p, end in last_offsets(line.outputs(), partitions).items() if end}
        reader.await_offsets(ends, SETTLE_S)
        await_true(functools.partial(watch.has_seen, ends), "the watch has seen all", SETTLE_S)


def judges_of(results: Sequence[Result]) -> str:
    """Who has judged every pipeline of every round, in words."""
    common = set.intersection(*({opinion.judge for opinion in result.opinions} for result in results))
    names = [name for name in ("verifier", "console consumer", "audit") if name in common]
    return " and ".join(", ".join(names).rsplit(", ", 1)) or "nobody"


def summary(results: Sequence[Result]) -> str:
    """One line: faults by kind, records, verdicts."""
    kinds = Counter(fault.kind for result in results for fault in result.faults)
    total = sum(kinds.values())
    bad = [result.round.name for result in results if not result.ok]
    return (
        f"{total} faults ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}) in {len(results)} rounds, "
        f"{sum(result.sent for result in results):,} source records; "
        + (f"NOT exactly once: {bad}" if bad else f"nothing lost, nothing doubled, order kept, by {judges_of(results)}")
    )
