"""The worker with faults in its producer: ``python -m tests.support.faulty_worker run PIPELINE ...``.

The worker's own code runs as it is; confluent-kafka's Producer is replaced by a subclass that fails where the environment says.
Each fault prints one line to stdout when it takes place, so that a test can prove that it did.

- ``FAULT_SEED``: seed of everything random.
- ``FAULT_ABORT_SHARE``: that share of the transactions is told to abort at send_offsets_to_transaction.
- ``FAULT_UNKNOWN_SHARE``: that share of the commits raises a fatal error, half of them after the commit took place.
- ``FAULT_DELAY_MS``: so long each transaction waits before its offsets are sent: work lasts, and stays open. The worker is so much more
  patient with its producer.
- ``FAULT_KILL``: ``point:n``: SIGKILL to itself at the n-th passing (from 1) of a point: before_begin, after_begin, between_produces,
  before_offsets, after_offsets, before_commit, inside_commit, after_commit.
- ``FAULT_STOP``: ``point:n``: SIGSTOP to itself there (inside_commit aside), until somebody sends SIGCONT.
- ``FAULT_ASSIGN_DELAY_MS``: so long the worker hesitates before it looks up where its partitions start.
- ``FAULT_CLOCK_S``: what it reads from its wall clock is wrong by so many seconds, too late and too early by turns.
- ``FAULT_QUIET_S``: stands for worker.loop.PASS_MARKERS_S.
- ``FAULT_MUTANT``: name of a broken variant of the worker (tests.support.mutants), to show that the judges see it.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from itertools import cycle
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

import worker.loop
import worker.source
import worker.transaction
from tests.support.mutants import MUTANTS
from worker.assignment import starting_offsets
from worker.cli import main

_random = random.Random(int(os.environ.get("FAULT_SEED", "0")))
_abort_share = float(os.environ.get("FAULT_ABORT_SHARE", "0"))
_unknown_share = float(os.environ.get("FAULT_UNKNOWN_SHARE", "0"))
_kill_point, _, _kill_count = os.environ.get("FAULT_KILL", "").partition(":")
_stop_point, _, _stop_count = os.environ.get("FAULT_STOP", "").partition(":")
_delay_s = float(os.environ.get("FAULT_DELAY_MS", "0")) / 1000
_assign_delay_s = float(os.environ.get("FAULT_ASSIGN_DELAY_MS", "0")) / 1000
_clock_s = int(os.environ.get("FAULT_CLOCK_S", "0"))
_mutant = os.environ.get("FAULT_MUTANT", "")
_passed: Counter[str] = Counter()


def tell(fault: str) -> None:
    sys.stdout.write(f"fault: {fault}\n")  # in one piece, unlike print: several threads write to this file
    sys.stdout.flush()


def _chance(share: float) -> bool:
    """Draws only where the share is one, so that a seed's draws are those of one kind of fault."""
    return share > 0 and _random.random() < share


def _kill() -> None:
    tell(f"kill at {_kill_point}")
    os.kill(os.getpid(), signal.SIGKILL)


def pass_point(point: str) -> None:
    """Die or stand still here if it is the point and the passing that the environment names."""
    if point not in (_kill_point, _stop_point):
        return
    _passed[point] += 1
    if point == _kill_point and _passed[point] == int(_kill_count):
        _kill()
    if point == _stop_point and _passed[point] == int(_stop_count):
        tell(f"stop at {point}")
        os.kill(os.getpid(), signal.SIGSTOP)
        tell("resumed")


class FaultyProducer(Producer):
    """confluent-kafka's Producer with the faults above."""

    def begin_transaction(self) -> None:
        pass_point("before_begin")
        super().begin_transaction()
        pass_point("after_begin")

    def produce(self, *args: Any, **kwargs: Any) -> None:
        super().produce(*args, **kwargs)
        pass_point("between_produces")

    def send_offsets_to_transaction(self, *args: Any) -> None:
        time.sleep(_delay_s)
        pass_point("before_offsets")
        if _chance(_abort_share):
            tell("abort")
            raise KafkaException(KafkaError(KafkaError._FAIL, "injected abort", False, False, True))
        super().send_offsets_to_transaction(*args)
        pass_point("after_offsets")

    def commit_transaction(self, timeout: float = -1) -> None:
        pass_point("before_commit")
        killer = None
        if _kill_point == "inside_commit" and _passed["inside_commit"] + 1 == int(_kill_count):
            self.flush()
            killer = threading.Timer(0.0005, _kill)
            killer.start()
        _passed["inside_commit"] += 1
        if _chance(_unknown_share):
            took_place = _random.random() < 0.5
            tell(f"unknown outcome, committed: {took_place}")
            if took_place:
                super().commit_transaction(timeout)
            raise KafkaException(KafkaError(KafkaError._FATAL, "injected unknown outcome", True, False, False))
        super().commit_transaction(timeout)
        if killer is not None:
            killer.join()  # it dies here at the latest, also where the timer's thread comes late
        pass_point("after_commit")


def install() -> None:
    """Replace the Producer that the worker uses."""
    setattr(worker.transaction, "Producer", FaultyProducer)  # noqa: B010 - an imported name, which mypy would not let be assigned
    worker.transaction.PATIENCE_S += _delay_s
    if _assign_delay_s:
        look_up = starting_offsets

        def late(*args: Any) -> Any:
            if args[1]:
                tell("late look-up")
                time.sleep(_assign_delay_s)
            return look_up(*args)

        setattr(worker.source, "starting_offsets", late)  # noqa: B010 - as above
    if _clock_s:
        wrong, right = cycle((_clock_s, -_clock_s)), time.time_ns
        setattr(time, "time_ns", lambda: right() + next(wrong) * 1_000_000_000)  # noqa: B010 - as above
    if "FAULT_QUIET_S" in os.environ:
        setattr(worker.loop, "PASS_MARKERS_S", float(os.environ["FAULT_QUIET_S"]))  # noqa: B010 - as above
    if _mutant:
        MUTANTS[_mutant]()


if __name__ == "__main__":
    tell(f"installed at {time.time_ns()}")
    install()
    main()
