"""Faults of the whole crew: workers come and go in numbers."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

from tests.faults.model import Fault, NotProvenError
from tests.faults.supervisor import LEAVE_S, PATIENCE_S, until
from tests.support.pipelines import events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devkit.workers import WorkerProcess
    from tests.faults.supervisor import Crew
    from tests.faults.workloads import Line

MOST, LEAST = 6, 2
"""Workers at the height of a rebalance storm, and after it."""

SIGTERMS = 3
"""How often each worker is told to leave in a storm of them."""


def rebalances(crew: Crew, line: Line) -> list[Fault]:
    """Workers join one after the other until there are `MOST`, and leave until there are `LEAST`. Each change is a fault.

    NotProvenError where there are not that many partitions, where at the height not all of them commit something, and where in the end
    the ones that stay do not.
    """
    first = line.workload.instances
    if len(line.partitions) < MOST:
        raise NotProvenError(f"{len(line.partitions)} partitions are not enough for {MOST} workers")
    ids = [line.id_of(number) for number in range(MOST)]
    extra: list[WorkerProcess] = []
    changes: list[Fault] = []
    for number in range(first, MOST):
        at = time.time()
        worker = crew.guest(line, number)
        extra.append(worker)
        if not until(functools.partial(_is_given, worker), time.monotonic() + PATIENCE_S):
            raise NotProvenError(f"{worker.instance_id} was given no partition\n{worker.tail(40)}")
        changes.append(Fault("rebalance", "join", worker.instance_id, at, f"was assigned {_given(worker)}"))
    crew.await_commits(ids)
    changes[-1].proof += f"; then each of {MOST} workers committed"
    for worker in reversed(extra[LEAST - first :]):
        at = time.time()
        worker.terminate()
        code = worker.wait(LEAVE_S)
        if code != 0:
            raise NotProvenError(f"{worker.instance_id} ended with {code} at SIGTERM\n{worker.tail(40)}")
        changes.append(Fault("rebalance", "leave", worker.instance_id, at, "exit code 0"))
    crew.await_commits(ids[:LEAST])
    changes[-1].proof += f"; then each of {LEAST} workers committed"
    return changes


def sigterms(crew: Crew) -> list[Fault]:
    """All workers are told to leave at a time, and again when they are back: `SIGTERMS` times."""
    return crew.terminate(crew.ids * SIGTERMS, "storm")


def rolling(crew: Crew) -> list[Fault]:
    """One worker after the other is told to leave; the next one when this one is back and has committed."""
    taken: list[Fault] = []
    for name in crew.ids:
        taken += crew.terminate([name], "rolling restart")
        crew.await_commits([name])
    return taken


def _is_given(worker: WorkerProcess) -> bool:
    return bool(_given(worker))


def _given(worker: WorkerProcess) -> Sequence[str]:
    """The partitions of its latest assignment; empty before it, and where it got none."""
    assigned = events(worker, "assigned")
    return assigned[-1]["partitions"] if assigned else []
