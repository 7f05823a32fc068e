"""Faults that come from outside the workers: brokers, the network, twins of the producer, partitions, the number of workers.

One name for each; calling it does it, heals it, and returns the faults that took place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.faults.arena import Arena
    from tests.faults.model import Fault
    from tests.faults.supervisor import Crew
    from tests.faults.workloads import Line

Outside: TypeAlias = "Callable[[Arena, Crew, Line, Random], list[Fault]]"


def storm(_arena: Arena, crew: Crew, line: Line, _dice: Random) -> list[Fault]:
    """Workers from one or two to six, and back to two."""
    return crew.storm(line)


OUTSIDE: dict[str, Outside] = {"rebalance storm": storm}
