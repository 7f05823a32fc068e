"""The folder in which one audit leaves to the next where it got to: a Parquet file of one row, replaced as a whole.

Columns: schema, pipeline, group, depth, taken_ms, committed, outputs_from and outputs_end (lists of topic, partition, offset), topic_ids
(a map), sequences (list of transactional_id, incarnation, sequence).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from spark_batch.errors import BadArgumentsError
from spark_batch.model import Depth

if TYPE_CHECKING:
    from pathlib import Path

    from spark_batch.context import Sequences
    from spark_batch.model import Partition

FILE = "state.parquet"
SCHEMA = 1
_OFFSETS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]))
_SEQUENCES = pa.list_(
    pa.struct([("transactional_id", pa.string()), ("incarnation", pa.string()), ("sequence", pa.int64())])
)
_COLUMNS = pa.schema(
    [
        ("schema", pa.int32()),
        ("pipeline", pa.string()),
        ("group", pa.string()),
        ("depth", pa.string()),
        ("taken_ms", pa.int64()),
        ("committed", _OFFSETS),
        ("outputs_from", _OFFSETS),
        ("topic_ids", pa.map_(pa.string(), pa.string())),
        ("sequences", _SEQUENCES),
        ("outputs_end", _OFFSETS),
    ]
)
_DEPTHS = list(Depth)


@dataclass(frozen=True, slots=True)
class State:
    """What an audit leaves to the next one."""

    pipeline: str
    group: str
    depth: Depth
    """How deep the audits looked that led here."""
    taken_ms: int
    committed: dict[Partition, int]
    """C of the last cut: everything below it was judged."""
    outputs_from: dict[Partition, int]
    """See Judged."""
    topic_ids: dict[str, str]
    sequences: Sequences
    outputs_end: dict[Partition, int] = field(default_factory=dict)
    """Where each partition of outputs, dead letters and receipts was pinned: what stands there or beyond came later."""


def load(folder: Path) -> State | None:
    """The state in a folder, None where there is none yet; BadArgumentsError where something else is in its place."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        (row,) = pq.read_table(path, schema=_COLUMNS).to_pylist()
        if row["schema"] != SCHEMA:
            raise BadArgumentsError(f"{path}: state of schema {row['schema']}, {SCHEMA} was expected")
        return State(
            pipeline=row["pipeline"],
            group=row["group"],
            depth=Depth(row["depth"]),
            taken_ms=row["taken_ms"],
            committed=_offsets(row["committed"]),
            outputs_from=_offsets(row["outputs_from"]),
            topic_ids=dict(row["topic_ids"]),
            sequences={(s["transactional_id"], s["incarnation"]): s["sequence"] for s in row["sequences"]},
            outputs_end=_offsets(row["outputs_end"]),
        )
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise BadArgumentsError(f"{path}: not a state of an audit ({error}); name another folder by --state") from error


def check(state: State, folder: Path, pipeline: str, group: str, depth: Depth) -> None:
    """Refuse to go on from a state of something else (BadArgumentsError): a wrong beginning would pass over records in silence."""
    for what, theirs, ours in (("pipeline", state.pipeline, pipeline), ("group", state.group, group)):
        if theirs != ours:
            raise BadArgumentsError(
                f"{folder}: the state belongs to {what} {theirs}, this is {what} {ours}; name another folder by --state"
            )
    if _DEPTHS.index(depth) > _DEPTHS.index(state.depth):
        raise BadArgumentsError(
            f"{folder}: the audits before looked at {state.depth} only; to look at {depth} name another folder by --state, "
            "or begin with --from-beginning"
        )


def save(folder: Path, state: State) -> None:
    """Put a state in the place of the last one: as a whole, or, if this process dies, not at all."""
    row = {
        "schema": SCHEMA,
        "pipeline": state.pipeline,
        "group": state.group,
        "depth": state.depth.value,
        "taken_ms": state.taken_ms,
        "committed": _rows(state.committed),
        "outputs_from": _rows(state.outputs_from),
        "topic_ids": list(state.topic_ids.items()),
        "sequences": [
            {"transactional_id": identity, "incarnation": incarnation, "sequence": sequence}
            for (identity, incarnation), sequence in sorted(state.sequences.items())
        ],
        "outputs_end": _rows(state.outputs_end),
    }
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{FILE}.{os.getpid()}"  # the dot keeps Spark from reading it with the folder
    try:
        with partial.open("wb") as file:
            pq.write_table(pa.Table.from_pylist([row], schema=_COLUMNS), file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(folder / FILE)
    finally:
        partial.unlink(missing_ok=True)


def _offsets(rows: list[dict[str, Any]]) -> dict[Partition, int]:
    return {(row["topic"], row["partition"]): row["offset"] for row in rows}


def _rows(offsets: dict[Partition, int]) -> list[dict[str, Any]]:
    return [{"topic": t, "partition": p, "offset": offset} for (t, p), offset in sorted(offsets.items())]
