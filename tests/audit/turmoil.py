"""A pipeline that is running: load, aborts, commits of unknown outcome, SIGKILLs, and rebalances from one worker to three and back.

Everything is made by the real worker; what took place is counted, so that a test can prove that it did.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Self

from tests.support.pipelines import Scene, events, faults
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from pathlib import Path

    from devkit.workers import WorkerProcess

_CHUNK = 200


@dataclass(slots=True)
class Turns:
    """What took place."""

    aborts: int = 0
    unknown_outcomes: int = 0
    kills: int = 0
    rebalances: int = 0
    """Assignments and revocations that a worker was told of, after its first one."""
    records: int = 0
    """Source records produced, those of aborted transactions aside."""


@dataclass(slots=True)
class _Slot:
    instance: str
    worker: WorkerProcess | None = None
    stops_at: float = 0.0


class Turmoil:
    """A context manager: workers, load and faults from entering to leaving, in threads and processes of its own.

    `rate`: source records per second; `change_s`: seconds between two changes of the number of workers, about.
    """

    def __init__(self, bootstrap: str, folder: Path, seed: int, *, rate: float = 300, change_s: float = 4.0) -> None:
        # One for each thread: what one of them draws does not depend on how far the other has come.
        self._feeding, self._disturbing = Random(f"{seed} feeding"), Random(f"{seed} disturbing")
        self._rate, self._change_s = rate, change_s
        self.scene = Scene(bootstrap, folder, partitions=4, sinks=3, records=60)
        self.turns = Turns()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._feed, self._disturb)]
        self._problems: list[str] = []
        self._slots = [_Slot(name) for name in ("one", "two", "three")]

    def __enter__(self) -> Self:
        # The pipeline file refers to it; workers get it from the scene, an audit in this process from here.
        os.environ["RECKON_BOOTSTRAP_SERVERS"] = self.scene.bootstrap
        try:
            self.scene.produce(1000)
            self._start(self._slots[0])
            await_true(lambda: sum(self.scene.committed().values()) >= 100, "the first worker is at work", PATIENCE_S)
        except BaseException as error:
            for worker in self.scene.workers:
                worker.kill()
                error.add_note(worker.tail())
            os.environ.pop("RECKON_BOOTSTRAP_SERVERS", None)
            raise
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        # Not before: the threads read the environment for the workers that they start.
        os.environ.pop("RECKON_BOOTSTRAP_SERVERS", None)
        self.count()
        self.check()

    def _end(self) -> None:
        """No more load or faults, and no worker."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for worker in self.scene.workers:
            worker.kill()

    def check(self) -> None:
        """AssertionError where load or faults have come to an end by themselves."""
        assert not self._problems, self._problems

    def count(self) -> Turns:
        """What has taken place until now, from the workers' logs."""
        told = [fault for worker in self._lives() for fault in faults(worker)]
        self.turns.aborts = told.count("abort")
        self.turns.unknown_outcomes = sum(fault.startswith("unknown outcome") for fault in told)
        kinds = ("assigned", "revoked", "lost")
        self.turns.rebalances = sum(
            max(0, sum(len(events(worker, kind)) for kind in kinds) - 1) for worker in self._lives()
        )
        return self.turns

    def settle(self) -> None:
        """No more load or faults; what killed workers left open is aborted, and one worker without faults works off what is left."""
        self._end()
        self.check()
        self.scene.settle()
        self.scene.drain("settler")

    def _lives(self) -> list[WorkerProcess]:
        return [worker for worker in self.scene.workers if worker.instance_id != "settler"]

    def _start(self, slot: _Slot) -> None:
        chances = {"FAULT_ABORT_SHARE": "0.15", "FAULT_UNKNOWN_SHARE": "0.03", "FAULT_DELAY_MS": "20"}
        slot.worker = self.scene.worker(
            slot.instance, faults={**chances, "FAULT_SEED": str(self._disturbing.randrange(10**6))}
        )

    def _feed(self) -> None:
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                # Plain records, and transactions of which some are aborted: markers and gaps in the source.
                if self._feeding.random() < 0.5:
                    self.scene.produce(_CHUNK)
                else:
                    self.scene.produce_in_transactions(_CHUNK, aborted_every=2, size=50)
                self.turns.records += _CHUNK
                self._stop.wait(max(0.0, _CHUNK / self._rate - (time.monotonic() - began)))
        except Exception as error:  # noqa: BLE001 - told by the thread that leaves
            self._problems.append(f"feeding: {error!r}")

    def _disturb(self) -> None:
        """Wanted numbers of workers 1, 3, 1, 3, ...; workers leave in order or by SIGKILL, the first one by SIGKILL; the dead come back."""
        wanted, before = 1, -1
        try:
            while not self._stop.wait(self._change_s * (0.5 + self._disturbing.random())):
                self._await_rebalance(before)
                before = self.count().rebalances
                wanted = 4 - wanted
                for slot in self._slots[:wanted]:
                    if slot.worker is None or not slot.worker.alive:
                        self._start(slot)
                    elif wanted == 3 and self._disturbing.random() < 0.3:
                        self._kill(slot)
                        self._start(slot)
                for slot in self._slots[wanted:]:
                    if slot.worker is not None and slot.worker.alive:
                        self._leave(slot)
        except Exception as error:  # noqa: BLE001 - told by the thread that leaves
            self._problems.append(f"disturbing: {error!r}")

    def _await_rebalance(self, before: int) -> None:
        """Until the last change has shown: on a busy machine workers would else be gone again before they had joined."""
        deadline = time.monotonic() + PATIENCE_S
        while self.count().rebalances <= before and time.monotonic() < deadline and not self._stop.wait(0.5):
            pass

    def _leave(self, slot: _Slot) -> None:
        assert slot.worker is not None
        if self.turns.kills == 0 or self._disturbing.random() < 0.5:
            self._kill(slot)
        else:
            slot.worker.terminate()

    def _kill(self, slot: _Slot) -> None:
        assert slot.worker is not None
        slot.worker.kill()
        self.turns.kills += 1
