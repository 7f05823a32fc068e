"""How long it took until there was output again; where nobody saw it, whether it failed to come or could not be seen. Pure functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.faults.model import Fault, Stand
    from tests.faults.watch import Commit

NEVER_S = 90.0
"""Without output for so long the pipeline counts as stuck, and the round as bad."""

ROUND_OVER, HIT_AGAIN = "the round was over", "it was hit again"

Span: TypeAlias = "tuple[float, float | None]"
"""From when to when; None: nobody saw the end. Seconds of `time.time()`."""


def measure(fault: Fault, commits: Iterable[Commit], hits: Iterable[Fault], load_ended: float) -> None:
    """Of a worker: from its new start, or a zombie's awakening, until a commit could be read that it made before it was hit again.

    Without one, how long one could have been seen: until the worker was hit again by one of ``hits``, or the load had ended. Ends of the
    worker that nobody had planned are no excuse.
    """
    since = fault.healed_at
    if since is None:
        fault.waited_s, fault.why_not, fault.over_at = 0.0, ROUND_OVER, load_ended
        return
    next_hit = min((hit.at for hit in hits if hit.target == fault.target and hit.at >= since), default=math.inf)
    own = (commit for commit in commits if commit.transactional_id == fault.target)
    fault.recovery_s = next((commit.at - since for commit in own if since <= commit.made_at <= next_hit), None)
    if fault.recovery_s is None:
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


def amid(fault: Fault, faults: Iterable[Fault], disturbed: Iterable[Span], aborts: Iterable[tuple[str, float]]) -> bool:
    """Whether a fault of another kind was going on between it and the output after it: what took long is then not its doing alone.

    ``disturbed``: when brokers or the way to them were, whether or not that could be shown. ``aborts``: (transactional id, when) a
    transaction was made to fail; only those of the worker itself count.
    """
    others = ((other.at, other.over_at) for other in faults if other.kind != fault.kind)
    failed = ((at, at) for transactional_id, at in aborts if transactional_id == fault.target)
    return any(_overlap(span, (fault.at, fault.over_at)) for span in (*others, *disturbed, *failed))


def amid_disturbance(stand: Stand, disturbed: Iterable[Span]) -> bool:
    """Whether brokers or the way to them were disturbed while a stable offset stood."""
    return any(_overlap(span, (stand.at, stand.at + stand.lasted_s)) for span in disturbed)


def _overlap(one: Span, other: Span) -> bool:
    return (other[1] is None or one[0] <= other[1]) and (one[1] is None or one[1] >= other[0])


def held(fault: Fault, bound_s: float) -> bool | None:
    """Whether it recovered within the bound; None: it was not watched for so long, so that nobody knows.

    One that was watched for longer than the bound and had not recovered by then has not held, however it would have gone on.
    """
    if fault.recovery_s is not None:
        return fault.recovery_s <= bound_s
    return False if fault.waited_s is not None and fault.waited_s > bound_s else None
