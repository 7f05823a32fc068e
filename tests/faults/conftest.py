"""One arena for all tests that need one: they carry `pytest.mark.xdist_group("arena")`, so that one process runs them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.arena import Arena

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def _shared_arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena


@pytest.fixture
def arena(_shared_arena: Arena) -> Arena:
    """Three brokers that a test may treat as it likes: whole again and in sync for the next one."""
    _shared_arena.heal()
    return _shared_arena
