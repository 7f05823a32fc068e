"""How long it took until there was output again; where nobody saw it, whether it failed to come or could not be seen. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.faults.model import Fault, Stand
    from tests.faults.watch import Commit

NEVER_S = 90.0
"""Without output for so long the pipeline counts as stuck, and the round as bad."""

ROUND_OVER, HIT_AGAIN = "the round was over", "it was hit again"

OF_BROKERS = frozenset(
    {
        "black hole",
        "broker kill",
        "broker pause",
        "broker stop",
        "connections cut",
        "disk full",
        "rolling restart",
        "slow network",
    }
)
"""Kinds of faults that hit brokers or the way to them: meanwhile nobody may be there to end a transaction."""


def measure(fault: Fault, commits: Iterable[Commit], hits: Iterable[Fault], load_ended: float) -> None:
    """Of a worker: from its new start, or a zombie's awakening, until a commit that it made since could be read.

    Without one, how long one could have been seen: until the worker was hit again by one of ``hits``, or the load had ended. Ends of the
    worker that nobody had planned are no excuse.
    """
    since = fault.healed_at
    if since is None:
        fault.waited_s, fault.why_not, fault.over_at = 0.0, ROUND_OVER, load_ended
        return
    own = (commit for commit in commits if commit.transactional_id == fault.target)
    fault.recovery_s = next((commit.at - since for commit in own if commit.made_at >= since), None)
    if fault.recovery_s is None:
        next_hit = min((hit.at for hit in hits if hit.target == fault.target and hit.at >= since), default=load_ended)
        fault.why_not = HIT_AGAIN if next_hit < load_ended else ROUND_OVER
        never(fault, max(0.0, min(next_hit, load_ended) - since))
    fault.over_at = since + (fault.recovery_s or fault.waited_s or 0.0)


def never(fault: Fault, waited_s: float) -> None:
    """It did not recover for so long as one could look."""
    fault.waited_s = waited_s
    if waited_s >= NEVER_S:
        fault.why_not = f"no output within {NEVER_S:g} s"


def stuck(faults: Sequence[Fault]) -> list[str]:
    """What makes a round bad: output that never came."""
    return [
        f"no output within {NEVER_S:g} s after {fault.kind} ({fault.phase}) of {fault.target}"
        for fault in faults
        if fault.waited_s is not None and fault.waited_s >= NEVER_S
    ]


def amid(fault: Fault, faults: Iterable[Fault]) -> bool:
    """Whether a fault of another kind was going on between it and the output after it: what took long is then not its doing alone."""
    return any(other.kind != fault.kind and _overlap(other, fault.at, fault.over_at) for other in faults)


def amid_faults_of_brokers(stand: Stand, faults: Iterable[Fault]) -> bool:
    """Whether a broker, or the way to it, was disturbed while a stable offset stood."""
    return any(other.kind in OF_BROKERS and _overlap(other, stand.at, stand.at + stand.lasted_s) for other in faults)


def _overlap(fault: Fault, begin: float, end: float | None) -> bool:
    """A fault of which nobody saw the end goes on."""
    return (end is None or fault.at <= end) and (fault.over_at is None or fault.over_at >= begin)


def held(fault: Fault, bound_s: float) -> bool | None:
    """Whether it recovered within the bound; None: it was not watched for so long, so that nobody knows.

    One that was watched for longer than the bound and had not recovered by then has not held, however it would have gone on.
    """
    if fault.recovery_s is not None:
        return fault.recovery_s <= bound_s
    return False if fault.waited_s is not None and fault.waited_s > bound_s else None
