"""What the judgement says of whole stretches and of all there is, from what the stages counted. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from spark_batch.model import Kind, Stretch, Verdict
from spark_batch.tiling import width

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spark_batch.context import Context
    from spark_batch.model import Finding, Partition, Range
    from spark_batch.planning import Aside
    from spark_batch.work import Work


def stretches_of(audited: Mapping[Partition, Range], aside: Aside, work: Work) -> tuple[Stretch, ...]:
    rows = []
    for partition, span in sorted(audited.items()):
        if partition in aside:
            if span.end > span.start:
                verdict, _, records = aside[partition]
                rows.append(Stretch(*partition, span.start, span.end, {verdict: records or span.end - span.start}))
            continue
        step, at = width(span.start, span.end), span.start
        while at < span.end:
            end = min((at // step + 1) * step, span.end)
            rows.append(Stretch(*partition, at, end, work.counts.get(partition, {}).get(at, {})))
            at = end
    return tuple(rows)


def totals_of(context: Context, stretches: Iterable[Stretch], findings: Iterable[Finding]) -> dict[Verdict, int]:
    totals = Counter[Verdict]()
    for stretch in stretches:
        totals.update(stretch.counts)
    starts, committed = context.cut.source_start, context.cut.committed
    doubted = {(each.topic, each.partition) for each in findings if each.kind is Kind.OFFSETS_UNKNOWN}
    for partition, end in context.cut.source_end.items():
        # Offsets, not records: nobody has read them, and markers may be among them. Where the group's offset is gone, they may be done.
        gone = partition in doubted and partition not in committed
        totals[Verdict.UNKNOWN if gone else Verdict.IN_FLIGHT] += max(
            0, end - committed.get(partition, starts[partition])
        )
    return dict(+totals)
