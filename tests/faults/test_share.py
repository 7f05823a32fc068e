"""A bounded share of the campaign, whole in itself: workers, brokers and the network fail, and three judges agree that nothing was lost.

The whole is `make faults`.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from tests.faults.campaign import Round, play, rounds_of
from tests.faults.supervisor import IN_TRANSACTION, POINTS, Crew, Plan, _Slot
from tests.faults.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spark_batch.model import Depth, Judgement
    from tests.faults.arena import Arena

pytestmark = pytest.mark.xdist_group("arena")

_PLANS = {
    "aborts": (
        *(Plan("worker kill", point, 500 if point == "between_produces" else 2) for point in POINTS),
        Plan("zombie", "before_begin", 2),
        Plan("SIGTERM", "at random", after_s=0.2),
        Plan("twin", "at random", after_s=0.2),
    ),
    "chain": (Plan("worker kill", "before_commit", 2), Plan("worker kill", "at random", after_s=0.1)),
}
_OUTSIDE = {"aborts": ("hijack", "kill: transaction coordinator"), "chain": ("kill: transaction coordinator",)}


@pytest.mark.timeout(900)  # what hangs, the round itself ends; brokers and Spark may have to start
@pytest.mark.parametrize("name", ["aborts", pytest.param("chain", marks=pytest.mark.long)])
def test_whatever_fails_every_judge_says_exactly_once(
    arena: Arena, auditor: Callable[[Path, Depth], Judgement], tmp_path: Path, name: str
) -> None:
    """Every phase of a transaction is met, and every planned fault took place."""
    workload = next(workload for workload in WORKLOADS if workload.name == name)
    result = play(Round(0, workload, "classic", 1, _PLANS[name], _OUTSIDE[name]), arena, tmp_path, auditor)

    assert result.problems == []
    # What is produced may not have left yet, and while a coordinator is dead nobody can say whether a transaction is open: the plan was
    # tried again.
    assert [line for line in result.unproven if not line.endswith(", not Ongoing")] == []
    assert [(opinion.judge, opinion.problems) for opinion in result.opinions if opinion.problems] == []
    assert {opinion.judge for opinion in result.opinions} == {"verifier", "console consumer", "audit"}
    assert all(opinion.records > 100 for opinion in result.opinions)
    planned = Counter((plan.kind, plan.phase) for plan in _PLANS[name])
    assert planned <= Counter((fault.kind, fault.phase) for fault in result.faults)
    assert len(result.faults) >= len(_PLANS[name]) + len(_OUTSIDE[name])
    inside = [fault.proof for fault in result.faults if fault.phase in IN_TRANSACTION]
    assert inside
    assert all(proof.endswith("its transaction: Ongoing") for proof in inside)
    # The report knows whose transactions were made to fail, and when; not of one whose worker was killed before it could say so.
    workers = {fault.target for fault in result.faults if fault.kind == "worker kill"}
    assert {name for name, _ in result.aborts} <= workers
    told = sum(log.read_text(errors="replace").count("fault: abort\n") for log in tmp_path.glob("*.log"))
    assert told - sum(fault.kind == "worker kill" for fault in result.faults) <= len(result.aborts) <= told
    assert all(result.began < at < result.began + result.took_s for _, at in result.aborts)


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "PrepareAbort", "not known", None])
def test_an_end_inside_a_transaction_that_was_not_open_does_not_count(state: str | None) -> None:
    """It is listed; at other points the state proves nothing and is not asked for."""
    crew = Crew([], (), lambda _: 0, env={})
    slot = _Slot(crew, MagicMock(), 0)
    assert not any(slot._is_shown(Plan("worker kill", point), state) for point in IN_TRANSACTION)
    assert len(crew.unproven) == len(IN_TRANSACTION)
    assert all(slot._is_shown(Plan("zombie", point), "Ongoing") for point in IN_TRANSACTION)
    assert all(
        slot._is_shown(Plan("zombie", point), state) for point in (*POINTS, "at random") if point not in IN_TRANSACTION
    )
    assert len(crew.unproven) == len(IN_TRANSACTION)


def test_a_seed_plans_the_same_rounds() -> None:
    """Another plans others."""

    def first(seed: int) -> list[Round]:
        return list(islice(rounds_of(seed, 5), 7))

    assert first(1) == first(1)
    assert first(1) != first(2)
