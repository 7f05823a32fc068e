"""Storms over the whole crew: so many changes as are told, and none told where nothing changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from tests.faults.campaign import Round, play, rounds_of
from tests.faults.model import NotProvenError
from tests.faults.outside import STORM
from tests.faults.storms import LEAST, MOST, SIGTERMS, rebalances
from tests.faults.supervisor import Crew
from tests.faults.workloads import WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.arena import Arena


def test_every_rebalance_storm_that_is_planned_goes_from_one_to_six() -> None:
    """With a partition for each of the workers; rounds without one have the workload as it is."""
    rounds = list(islice(rounds_of(1, 5), 60))
    stormy = [each.workload for each in rounds if STORM in each.outside]
    assert len(stormy) > 5
    assert {workload.instances for workload in stormy} == {1}
    assert all(workload.partitions >= MOST for workload in stormy)
    assert all(each.workload in WORKLOADS for each in rounds if STORM not in each.outside)


def test_a_storm_without_partitions_for_it_is_unproven() -> None:
    """It would change nothing."""
    line = MagicMock(partitions=[("p.in", 0), ("p.in", 1)], workload=replace(WORKLOADS[0], instances=1))
    crew = Crew([], (), lambda _: 0, env={})
    with pytest.raises(NotProvenError, match="2 partitions are not enough for 6 workers"):
        rebalances(crew, line)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("arena")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_one_six_two_and_sigterms_over_all(arena: Arena, tmp_path: Path, protocol: str) -> None:
    """Five join, four leave, the ones that stay are ended with the round; each worker of the crew gets its SIGTERMs; exactly once."""
    workload = replace(WORKLOADS[0], partitions=MOST, instances=1)
    result = play(Round(0, workload, protocol, 1, (), (STORM, "SIGTERM storm")), arena, tmp_path, None)

    assert result.problems == result.unproven == []
    assert [problem for opinion in result.opinions for problem in opinion.problems] == []
    assert Counter((fault.kind, fault.phase) for fault in result.faults) == {
        ("rebalance", "join"): MOST - 1,
        ("rebalance", "leave"): MOST - LEAST,
        ("SIGTERM", "storm"): SIGTERMS,
    }
    proofs = [fault.proof for fault in result.faults]
    assert proofs[MOST - 2].endswith(f"; then each of {MOST} workers committed")
    assert proofs[2 * MOST - LEAST - 2].endswith(f"; then each of {LEAST} workers committed")
