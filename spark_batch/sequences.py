"""The sequence numbers of receipts, per incarnation of a worker: 1, 2, 3, ... without a hole (docs/receipts.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from spark_batch.plan import output_ranges
from spark_batch.receipts import truncated
from spark_batch.tasks import in_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_batch.context import Context
    from spark_batch.plan import Plan

HOLES = (
    "transactional_id string, incarnation string, last bigint, hole bigint, at_partition int, at_offset bigint, flying bigint, "
    "first_flying bigint"
)
_HOLES_ARROW = pa.schema(
    [
        ("transactional_id", pa.string()),
        ("incarnation", pa.string()),
        ("last", pa.int64()),
        ("hole", pa.int64()),
        ("at_partition", pa.int32()),
        ("at_offset", pa.int64()),
        ("flying", pa.int64()),
        ("first_flying", pa.int64()),
    ]
)


def sequences(context: Context, plan: Plan, entries: DataFrame) -> DataFrame:
    """Rows as in HOLES, per (transactional id, incarnation) and partition of the receipts: one, unless partitions were added.

    last: highest sequence of a receipt wholly below C, or the one before the first that was looked at. hole: sequence of the first receipt
    that is missing, or null; at_partition: of the receipts; at_offset: of the receipt behind the hole. flying: receipts that claim offsets
    at or beyond C, where it is in doubt beyond what audits have judged; first_flying: where they begin.
    """
    ends = zip(plan.sources, plan.committed, strict=True)
    committed = {f"{topic}/{partition}": offset for (topic, partition), offset in ends}
    previous = dict(context.previous or {})
    # Sequences may go on from what nobody has read: it expired, or lies before where an audit without a former one begins.
    unread = truncated(context) or (context.previous is None and _begins_late(context))

    def look(table: pa.Table) -> pa.Table:
        where = zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True)
        c = np.array([committed.get(f"{topic}/{partition}", -1) for topic, partition in where], np.int64)
        sequence = table["sequence"].to_numpy()
        flying = np.isin(sequence, sequence[table["to"].to_numpy() > c])
        name = table["transactional_id"][0].as_py(), table["incarnation"][0].as_py()
        distinct, first = np.unique(sequence, return_index=True)
        before = max(previous.get(name, 0), int(distinct[0]) - 1 if unread else 0)
        last = int(sequence[~flying].max(initial=before))
        known = distinct > before
        distinct, first = np.concatenate(([before], distinct[known])), first[known]
        wrong = np.flatnonzero(np.diff(distinct) > 1)
        hole, behind = (int(distinct[wrong[0]]) + 1, int(first[wrong[0]])) if len(wrong) else (None, -1)
        rows = []
        partitions, offsets = table["at_partition"].to_numpy(), table["at_offset"].to_numpy()
        for partition in np.unique(partitions).tolist():
            here = np.unique(offsets[flying & (partitions == partition)])
            mine = behind >= 0 and partitions[behind] == partition
            found = (hole, partition, int(offsets[behind])) if mine else (None, partition, None)
            rows.append((*name, last, *found, len(here), int(here[0]) if len(here) else None))
        columns = zip(*rows, strict=True)
        return pa.table([pa.array(x, f.type) for x, f in zip(columns, _HOLES_ARROW, strict=True)], schema=_HOLES_ARROW)

    return in_groups(entries.groupBy("transactional_id", "incarnation"), look, HOLES)


def _begins_late(context: Context) -> bool:
    ranges = output_ranges(context, context.loaded.spec.receipts_topic)
    return any(bounds.start > context.cut.outputs[partition].start for partition, bounds in ranges.items())
