"""What a cluster refuses before anything is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devkit import Cluster, DevkitError

if TYPE_CHECKING:
    from pathlib import Path


def test_one_or_three_nodes() -> None:
    """Two nodes have no majority when one fails, four need more machines: refused."""
    with pytest.raises(DevkitError, match="a cluster has 1 or 3 nodes, not 2"):
        Cluster(2)


def test_start_leaves_nothing_when_java_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error on entering comes out as it is, and the data folder was not touched."""

    def missing() -> Path:
        raise DevkitError("no java")

    monkeypatch.setattr("devkit.java.find_java", missing)
    with pytest.raises(DevkitError, match="no java"), Cluster(data=tmp_path / "data"):
        pass
    assert not (tmp_path / "data").exists()
