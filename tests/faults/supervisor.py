"""Faults of workers: each slot keeps one instance of one pipeline alive and lets it die, stand still and leave as planned.

A plan becomes a `Fault` only when it is shown to have taken place; a plan whose fault does not come in time is an error of the campaign.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tests.faults.model import Fault, NotProvenError
from tests.faults.requests import ONGOING, transaction_state
from tests.support.pipelines import SHORT, faults
from tests.support.processes import state_of
from tests.support.waiting import await_true
from worker.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from devkit.workers import WorkerProcess
    from tests.faults.workloads import Line

POINTS = (
    "before_begin",
    "after_begin",
    "between_produces",
    "before_offsets",
    "after_offsets",
    "before_commit",
    "inside_commit",
    "after_commit",
)
IN_TRANSACTION = ("before_offsets", "after_offsets", "before_commit")
"""Points at which the coordinator must say that the transaction is open; between_produces it may have heard nothing of it yet."""

SHOWN_S = 1.5
"""How long to ask for an open transaction: before it is ended for its age (tests.support.pipelines.SHORT)."""

PATIENCE_S = 180.0
"""Until a plan has taken place: seconds as a rule, a minute where it has to be tried again or a coordinator is away; three times that
before a busy machine ends a round.
"""
LEAVE_S = 120.0
"""Until a worker that was told to leave is gone; its own grace period is 25 s."""
FENCED_S = 60.0
"""Until one of two twins finds out that it is fenced."""
BEYOND_SESSION_S = 4.0
"""Longer than the session timeout and the transaction timeout of tests.support.pipelines.SHORT."""

AWAKE_S = 5.0
"""How long to look at a zombie that woke up, at least until it commits."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What shall become of one life of a worker. ``after_s``: since its first commit, for what does not happen at a point."""

    kind: str
    phase: str
    passing: int = 1
    after_s: float = 0.0

    @property
    def env(self) -> dict[str, str]:
        names = {"worker kill": "FAULT_KILL", "zombie": "FAULT_STOP"}
        return {names[self.kind]: f"{self.phase}:{self.passing}"} if self.phase in POINTS else {}


def worker_plans(dice: Random, number: int, kinds: Sequence[str]) -> tuple[Plan, ...]:
    """So many plans: the kinds in turn, of each the phases in turn, so that all are met; the rest is thrown.

    Passings begin at two: each life commits something before it ends, so that its recovery can be measured.
    """
    plans = []
    for n in range(number):
        kind, turn = kinds[n % len(kinds)], n // len(kinds)
        stops = tuple(point for point in POINTS if point != "inside_commit")
        points: tuple[str, ...] = {"worker kill": POINTS, "zombie": stops}.get(kind, ())
        phases = (*points, "at random")
        phase = phases[turn % len(phases)]
        passing = dice.randint(350, 700) if phase == "between_produces" else dice.randint(2, 4)
        plans.append(Plan(kind, phase, passing, round(dice.uniform(0.0, 0.6), 3)))
    return tuple(plans)


def settings_of(protocol: str) -> Mapping[str, str]:
    """Of workers under one of the two group protocols, with short timeouts; KIP-848's session is the broker's affair."""
    common = {
        **SHORT,
        "RECKON_CONSUMER_TOPIC_METADATA_REFRESH_INTERVAL_MS": "2000",
        "RECKON_START_TIMEOUT_S": "120",  # whoever starts while a coordinator is away waits, however long that takes here
    }
    if protocol == "classic":
        return common
    refused = ("RECKON_CONSUMER_SESSION_TIMEOUT_MS", "RECKON_CONSUMER_HEARTBEAT_INTERVAL_MS")
    ours = {name: value for name, value in common.items() if name not in refused}
    return {**ours, "RECKON_CONSUMER_GROUP_PROTOCOL": "consumer"}


class Crew:
    """Workers of some lines under one queue of plans. A context manager: entering starts them, leaving kills what is left.

    ``committed``: how many transactions of a transactional id were seen committed; ``env``: settings of the workers (`settings_of`).
    """

    def __init__(
        self,
        lines: Sequence[Line],
        plans: Sequence[Plan],
        committed: Callable[[str], int],
        *,
        env: Mapping[str, str],
        seed: int = 0,
    ) -> None:
        self.faults: list[Fault] = []
        self.problems: list[str] = []
        self.surprises: list[str] = []
        """Ends of workers that nobody had planned, with their exit codes: nothing may be lost by them, but people want to know."""
        self.unproven: list[str] = []
        """Ends of workers at a point in an open transaction of which the coordinator did not say that it was open: they do not count."""
        self._guests: list[WorkerProcess] = []
        """Workers that a storm has left behind."""
        self._plans: queue.SimpleQueue[Plan] = queue.SimpleQueue()
        for plan in plans:
            self._plans.put(plan)
        self._committed = committed
        self._env = env
        self._seed = seed
        self._stop = threading.Event()
        self._slots = [_Slot(self, line, number) for line in lines for number in range(line.workload.instances)]

    def __enter__(self) -> Self:
        for slot in self._slots:
            slot.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for slot in self._slots:
            slot.thread.join()
            if slot.worker is not None:
                slot.worker.kill()

    def await_done(self, timeout_s: float) -> None:
        """Until every plan has been carried out."""
        await_true(
            lambda: self.problems or (self._plans.empty() and not any(slot.busy for slot in self._slots)),
            f"all plans carried out; {self._plans.qsize()} are left",
            timeout_s,
        )

    @property
    def ids(self) -> list[str]:
        """Transactional ids of the workers that are kept alive."""
        return [slot.id for slot in self._slots]

    def at_work(self, line: Line) -> list[str]:
        """Transactional ids of the instances that have committed something."""
        return [slot.id for slot in self._slots if slot.line is line and self._committed(slot.id)]

    def guest(self, line: Line, number: int) -> WorkerProcess:
        """One more worker, without plans; it leaves with the crew if not before."""
        worker = line.worker(f"w{number}", short=False, env={"RECKON_BOOTSTRAP_SERVERS": line.proxied, **self._env})
        self._guests.append(worker)
        return worker

    def await_commits(self, transactional_ids: Sequence[str]) -> None:
        """Until each of them has committed something more. NotProvenError naming those that have not."""
        before = {name: self._committed(name) for name in transactional_ids}

        def idle() -> list[str]:
            return [name for name, count in before.items() if self._committed(name) == count]

        if not until(lambda: not idle(), time.monotonic() + PATIENCE_S):
            raise NotProvenError(f"{idle()} committed nothing within {PATIENCE_S:g} s")

    def terminate(self, transactional_ids: Sequence[str], phase: str) -> list[Fault]:
        """SIGTERMs, before whatever else is planned; each once the worker has committed something more. Returns when all took place.

        One that is named more often is told to leave so often. NotProvenError where not all of them took place.
        """
        taken: list[Fault] = []
        slots = {slot.id: slot for slot in self._slots}
        for name in transactional_ids:
            slots[name].orders.put((Plan("SIGTERM", phase), taken))
        deadline = time.monotonic() + PATIENCE_S * (1 + len(transactional_ids))
        if not until(lambda: len(taken) == len(transactional_ids) or bool(self.problems), deadline):
            raise NotProvenError(f"{len(taken)} of {len(transactional_ids)} SIGTERMs took place")
        return taken

    def leave(self) -> None:
        """SIGTERM for all; each ends with exit code 0."""
        self._stop.set()
        for slot in self._slots:
            slot.thread.join()
        for slot in self._slots:
            if slot.worker is not None:
                self._leave(slot.worker)
        for guest in self._guests:
            self._leave(guest)

    def _leave(self, worker: WorkerProcess) -> None:
        if worker.alive:
            worker.resume()
            worker.terminate()
            code = worker.wait(LEAVE_S)
            if code != 0:
                self.surprises.append(f"{worker.instance_id} ended with {code} at SIGTERM")


class _Slot:
    """One instance. All of it runs in its thread."""

    def __init__(self, crew: Crew, line: Line, number: int) -> None:
        self._crew, self.line, self._instance = crew, line, f"w{number}"
        self.id = line.id_of(number)
        self.worker: WorkerProcess | None = None
        self.busy = False
        self.orders: queue.SimpleQueue[tuple[Plan, list[Fault]]] = queue.SimpleQueue()
        """What comes before the plans, and where to tell that it took place."""
        self._told = crew.faults
        """Where to tell of what takes place now."""
        self._unproven = False
        """Whether this life ends by a fault that could not be shown."""
        self._lives = 0
        self._ended: Fault | None = None
        """The fault that ended the last life, until the next one begins."""
        self.thread = threading.Thread(target=self._run, name=self.id, daemon=True)

    def _run(self) -> None:
        try:
            while not self._crew._stop.is_set():
                self.busy = True
                try:
                    plan = self._next()
                except queue.Empty:
                    self.busy = False
                    self._keep_alive()
                    self._crew._stop.wait(0.1)
                else:
                    self._carry_out(plan)
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            tail = self.worker.tail(60) if self.worker else ""
            self._crew.problems.append(f"{self.id}: {error!r}\n{tail}")
        finally:
            self.busy = False

    def _next(self) -> Plan:
        try:
            plan, self._told = self.orders.get_nowait()
        except queue.Empty:
            self._told = self._crew.faults
            plan = self._crew._plans.get_nowait()
        return plan

    def _start(self, env: Mapping[str, str]) -> WorkerProcess:
        self._lives += 1
        self._unproven = False
        seed = str(self._crew._seed * 1000 + self._lives)
        if self._ended is not None:
            self._ended.healed_at, self._ended = time.time(), None
        self.worker = self.line.worker(
            self._instance,
            faults={**self.line.workload.faults, "FAULT_SEED": seed, **env},
            short=False,
            env={"RECKON_BOOTSTRAP_SERVERS": self.line.proxied, **self._crew._env},
        )
        return self.worker

    def _keep_alive(self) -> None:
        if self.worker is None or not self.worker.alive:
            if self.worker is not None and self._ended is None:
                self._surprise(self.worker)
            self._start({})

    def _surprise(self, worker: WorkerProcess) -> None:
        if self._unproven:
            return
        code = worker.wait()
        last = (worker.tail(1).splitlines() or [""])[-1][:300]
        self._crew.surprises.append(f"{self.id} ended by itself with {code}: {last}")

    def _carry_out(self, plan: Plan) -> None:
        """One life, or one more thing in a life, until its fault is proven."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            worker = self.worker
            if worker is not None and worker.alive and plan.env:
                self._kill_now(worker)
            if worker is None or not worker.alive:
                worker = self._start(plan.env)
            act = {"worker kill": self._kill, "zombie": self._zombie, "twin": self._twin, "SIGTERM": self._terminate}
            if act[plan.kind](worker, plan, deadline):
                return
            if not worker.alive and self._ended is None:
                self._surprise(worker)
        raise NotProvenError(f"{plan} did not take place within {PATIENCE_S:g} s")

    def _took_place(self, fault: Fault, *, ended: bool) -> bool:
        self._told.append(fault)
        if ended:
            self._ended = fault
        return True

    def _await_commit(self, worker: WorkerProcess, deadline: float, more: int = 1) -> bool:
        """Until this instance has committed so many more; False where the worker ended or time is up."""
        before = self._crew._committed(self.id)
        while self._crew._committed(self.id) < before + more:
            if not worker.alive or time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _kill(self, worker: WorkerProcess, plan: Plan, deadline: float) -> bool:
        if plan.phase not in POINTS:
            if not self._await_commit(worker, deadline):
                return False
            time.sleep(plan.after_s)
            return self._kill_now(worker)
        if not until(lambda: not worker.alive, deadline):
            return False
        told, code = faults(worker), worker.wait()
        if code != -signal.SIGKILL or told[-1:] != [f"kill at {plan.phase}"]:
            return False
        at, state = time.time(), self._transaction(plan)
        if not self._is_shown(plan, state):
            return False
        proof = f"its last word: {told[-1]}; ended by signal {-code}; its transaction: {state}"
        return self._took_place(Fault(plan.kind, plan.phase, self.id, at, proof), ended=True)

    def _transaction(self, plan: Plan) -> str | None:
        """What the coordinator says of it, while its worker is dead or stands still and its successor has not begun."""
        patience_s = SHOWN_S if plan.phase in IN_TRANSACTION else 0.0
        return transaction_state(self.line.bootstrap.split(","), self.id, patience_s)

    def _is_shown(self, plan: Plan, state: str | None) -> bool:
        """Whether the transaction was open where it must have been. If not, the plan is tried again, in another life."""
        if plan.phase not in IN_TRANSACTION or state == ONGOING:
            return True
        self._unproven = True
        self._crew.unproven.append(
            f"{plan.kind} of {self.id} at {plan.phase}: its transaction is {state}, not {ONGOING}"
        )
        return False

    def _kill_now(self, worker: WorkerProcess) -> bool:
        at = time.time()
        worker.kill()
        code = worker.wait()
        if code != -signal.SIGKILL:
            return False
        state = transaction_state(self.line.bootstrap.split(","), self.id)
        proof = f"ended by signal {-code}; its transaction: {state}"
        return self._took_place(Fault("worker kill", "at random", self.id, at, proof), ended=True)

    def _zombie(self, worker: WorkerProcess, plan: Plan, deadline: float) -> bool:
        """Stands still beyond the session and the transaction timeout, and wakes up."""
        if not self._stand_still(worker, plan, deadline):
            return False
        at, state = time.time(), self._transaction(plan)
        shown = self._is_shown(plan, state)
        time.sleep(BEYOND_SESSION_S)
        if state_of(worker.pid) != "T":
            return False
        worker.resume()
        woke = time.time()
        # What it does now is the point: it may not be killed before it has done it. Without a partition it will commit nothing.
        self._await_commit(worker, time.monotonic() + AWAKE_S)
        if not shown:
            worker.kill()
            return False
        proof = f"stood still (state T) for {woke - at:.1f} s; its transaction: {state}"
        return self._took_place(Fault(plan.kind, plan.phase, self.id, at, proof, healed_at=woke), ended=False)

    def _twin(self, worker: WorkerProcess, plan: Plan, deadline: float) -> bool:
        """While it stands still its successor starts and works. When it wakes up, one of the two must find itself fenced and end."""
        if not self._stand_still(worker, plan, deadline):
            return False
        at, state = time.time(), self._transaction(plan)
        heir = self._start({})
        self._await_commit(heir, deadline)
        woke = time.time()
        worker.resume()
        if not until(lambda: not (worker.alive and heir.alive), time.monotonic() + FENCED_S):
            worker.kill()
            raise NotProvenError(f"two workers as {self.id} live on side by side\n{worker.tail(40)}\n{heir.tail(40)}")
        loser = heir if worker.alive else worker
        code = loser.wait()
        worker.kill()
        if code != ExitCode.FENCED.value:
            raise NotProvenError(
                f"a twin of {self.id} ended with {code}, not {ExitCode.FENCED.value}\n{loser.tail(40)}"
            )
        proof = f"the {'heir' if loser is heir else 'zombie'} ended with exit code {code}; the zombie's transaction: {state}"
        return self._took_place(Fault(plan.kind, plan.phase, self.id, at, proof, healed_at=woke), ended=False)

    def _terminate(self, worker: WorkerProcess, plan: Plan, deadline: float) -> bool:
        if not self._await_commit(worker, deadline):
            return False
        time.sleep(plan.after_s)
        at = time.time()
        worker.terminate()
        if not until(lambda: not worker.alive, deadline) or worker.wait() != 0:
            return False
        fault = Fault(plan.kind, plan.phase, self.id, at, f"exit code 0 after {time.time() - at:.2f} s")
        return self._took_place(fault, ended=True)

    def _stand_still(self, worker: WorkerProcess, plan: Plan, deadline: float) -> bool:
        if plan.phase in POINTS:
            stops = f"stop at {plan.phase}"
            return (
                until(lambda: stops in faults(worker) or not worker.alive, deadline)
                and until(lambda: state_of(worker.pid) == "T" or not worker.alive, deadline)
                and worker.alive
            )
        if not self._await_commit(worker, deadline):
            return False
        time.sleep(plan.after_s)
        worker.pause()
        return True


def until(condition: Callable[[], bool], deadline: float) -> bool:
    """Wait for a condition; whether it came before the deadline, of time.monotonic()."""
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
