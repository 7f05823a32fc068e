"""Faults that come from outside the workers: brokers, the network, a thief of the transactional.id, partitions, the number of workers.

One name for each. Calling it does it and returns what took place; a broken broker stays broken until the campaign heals the arena.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tests.faults import brokers, storms

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.faults.arena import Arena
    from tests.faults.brokers import Target
    from tests.faults.model import Fault
    from tests.faults.supervisor import Crew
    from tests.faults.workloads import Line

Outside: TypeAlias = "Callable[[Arena, Crew, Line, Random], list[Fault]]"
_Choose: TypeAlias = "Callable[[Arena, Line, Random], Target]"

STORM = "rebalance storm"
"""It needs a source with many partitions: see `storms.MOST`."""

OF_BROKERS = (
    "kill",
    "stop",
    "pause",
    "hiccup",
    "disk full",
    "rolling restart",
    "slow network",
    "connections cut",
    "black hole",
)
"""How the names begin of those that hit brokers, or the way to them."""

PAUSE_S = 5.0
"""Longer than a broker's session: others lead meanwhile."""
HICCUP_S = 1.5


def _source(arena: Arena, line: Line, dice: Random) -> Target:
    return brokers.leader_of(arena, "source", *dice.choice(line.partitions))


def _sink(arena: Arena, line: Line, dice: Random) -> Target:
    return brokers.leader_of(arena, "sink", line.sink, dice.randrange(line.workload.sinks))


def _group(arena: Arena, line: Line, _dice: Random) -> Target:
    return brokers.group_coordinator(arena, line.name)


def _transactions(arena: Arena, line: Line, dice: Random) -> Target:
    return brokers.transaction_coordinator(arena, line.id_of(dice.randrange(line.workload.instances)))


def _any(_arena: Arena, _line: Line, dice: Random) -> Target:
    return brokers.any_node(dice.randint(1, 3))


def _on(choose: _Choose, do: Callable[[Arena, Target], Fault]) -> Outside:
    return lambda arena, _crew, line, dice: [do(arena, choose(arena, line, dice))]


def _pause(seconds: float) -> Callable[[Arena, Target], Fault]:
    return lambda arena, target: brokers.pause_node(arena, target, seconds)


def _hijack(arena: Arena, crew: Crew, line: Line, dice: Random) -> list[Fault]:
    return [brokers.hijack(arena.bootstrap, dice.choice(crew.at_work(line)))]


def _partitions(arena: Arena, _crew: Crew, line: Line, _dice: Random) -> list[Fault]:
    fewer = len(line.partitions)
    fault = brokers.add_partitions(arena.bootstrap, line.source, fewer + 2)
    line.partitions += [(line.source, number) for number in range(fewer, fewer + 2)]
    return [fault]


OUTSIDE: dict[str, Outside] = {
    "kill: leader of the source": _on(_source, brokers.kill_node),
    "kill: leader of the sink": _on(_sink, brokers.kill_node),
    "kill: group coordinator": _on(_group, brokers.kill_node),
    "kill: transaction coordinator": _on(_transactions, brokers.kill_node),
    "stop: leader of the sink": _on(_sink, brokers.stop_node),
    "stop: any node": _on(_any, brokers.stop_node),
    "pause: leader of the source": _on(_source, _pause(PAUSE_S)),
    "pause: group coordinator": _on(_group, _pause(PAUSE_S)),
    "pause: transaction coordinator": _on(_transactions, _pause(PAUSE_S)),
    "hiccup: any node": _on(_any, _pause(HICCUP_S)),
    "disk full: any node": _on(_any, brokers.fill_disk),
    "rolling restart": lambda arena, crew, _line, _dice: [brokers.rolling_restart(arena), *storms.rolling(crew)],
    "slow network": lambda arena, _crew, _line, dice: [
        brokers.slow_network(arena, PAUSE_S, latency_s=dice.uniform(0.05, 0.2))
    ],
    "connections cut": lambda arena, _crew, _line, _dice: [brokers.cut_connections(arena)],
    "black hole": lambda arena, _crew, line, dice: [
        brokers.black_hole(arena, PAUSE_S, [_source(arena, line, dice).number])  # one that is talked to
    ],
    "hijack": _hijack,
    "partitions added": _partitions,
    STORM: lambda _arena, crew, line, _dice: storms.rebalances(crew, line),
    "SIGTERM storm": lambda _arena, crew, _line, _dice: storms.sigterms(crew),
}
