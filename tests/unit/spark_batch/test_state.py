"""The state folder: what one audit leaves to the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from spark_batch import state
from spark_batch.errors import BadArgumentsError
from spark_batch.model import Depth
from spark_batch.state import State

if TYPE_CHECKING:
    from typing import BinaryIO

STATE = State(
    pipeline="shop",
    group="g",
    depth=Depth.RECORDS,
    taken_ms=1_769_860_800_000,
    committed={("in", 0): 5, ("in", 1): 2**40},
    outputs_from={("out", 0): 7, ("shop.receipts", 0): 0},
    topic_ids={"in": "id-1", "out": "id-2"},
    sequences={("shop-one", "a-b"): 3, ("shop-two", "c"): 1},
    outputs_end={("out", 0): 9, ("shop.receipts", 0): 4},
)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    assert state.load(folder) is None
    state.save(folder, STATE)
    assert state.load(folder) == STATE
    later = replace(STATE, committed={("in", 0): 6}, sequences={})
    state.save(folder, later)
    assert state.load(folder) == later
    assert [path.name for path in folder.iterdir()] == ["state.parquet"]


def test_an_audit_that_dies_while_it_writes_leaves_the_last_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a new state is written, then the process ends; and once more just before the new file takes the old one's place."""
    state.save(tmp_path, STATE)
    later = replace(STATE, committed={("in", 0): 6})

    def half(_table: object, file: BinaryIO, **_options: object) -> None:
        file.write(b"PAR1 half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", half)
        with pytest.raises(KeyboardInterrupt):
            state.save(tmp_path, later)
    assert state.load(tmp_path) == STATE

    def killed(_path: Path, _target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        patch.setattr(Path, "unlink", lambda *_a, **_k: None)  # SIGKILL runs no cleaning up
        with pytest.raises(KeyboardInterrupt):
            state.save(tmp_path, later)
    assert state.load(tmp_path) == STATE


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / state.FILE).write_bytes(b"no parquet")
    with pytest.raises(BadArgumentsError, match="not a state of an audit"):
        state.load(tmp_path)


@pytest.mark.parametrize(
    ("pipeline", "group", "depth", "message"),
    [
        (
            "other",
            "g",
            Depth.RECORDS,
            "f: the state belongs to pipeline shop, this is pipeline other; name another folder by --state",
        ),
        (
            "shop",
            "h",
            Depth.RECORDS,
            "f: the state belongs to group g, this is group h; name another folder by --state",
        ),
        (
            "shop",
            "g",
            Depth.CONTENT,
            (
                "f: the audits before looked at records only; to look at content name another folder by --state, "
                "or begin with --from-beginning"
            ),
        ),
    ],
)
def test_a_state_of_something_else_is_refused(pipeline: str, group: str, depth: Depth, message: str) -> None:
    """Going on from it would pass over records in silence."""
    with pytest.raises(BadArgumentsError) as caught:
        state.check(STATE, Path("f"), pipeline, group, depth)
    assert str(caught.value) == message


@pytest.mark.parametrize("depth", [Depth.OFFSETS, Depth.RECORDS])
def test_its_own_state_is_taken(depth: Depth) -> None:
    state.check(STATE, Path("f"), "shop", "g", depth)
