"""The clusters of these tests. Each test file's mark keeps its tests in one xdist worker, so that each cluster is started once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devkit import Cluster
from tests.faults.surroundings.secured import SecuredCluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package")
def secured() -> Iterator[SecuredCluster]:
    with SecuredCluster() as cluster:
        yield cluster


@pytest.fixture(scope="package")
def three() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        yield cluster
