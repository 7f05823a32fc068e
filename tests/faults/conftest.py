"""One arena and one Spark session for all tests that need them: they carry `pytest.mark.xdist_group("arena")`, so that one process
runs them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.__main__ import PROPERTIES, auditor_here
from tests.faults.arena import Arena

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from spark_batch.model import Depth, Judgement


@pytest.fixture(scope="session")
def _shared_arena() -> Iterator[Arena]:
    with Arena(PROPERTIES) as arena:
        yield arena


@pytest.fixture
def arena(_shared_arena: Arena) -> Arena:
    """Three brokers that a test may treat as it likes: whole again and in sync for the next one."""
    _shared_arena.heal()
    return _shared_arena


@pytest.fixture(scope="session")
def _shared_auditor() -> Callable[[Path, Depth], Judgement]:
    return auditor_here()


@pytest.fixture
def auditor(
    arena: Arena, _shared_auditor: Callable[[Path, Depth], Judgement], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path, Depth], Judgement]:
    """The audit in this process, of the arena's pipelines."""
    monkeypatch.setenv("RECKON_BOOTSTRAP_SERVERS", arena.bootstrap)
    return _shared_auditor
