"""The report for machines: `audit.json`, described by audit.schema.json beside this file."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from spark_batch.report.words import headline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_batch.model import Cut, Finding, Judgement, OpenTransaction, Partition, Range

SCHEMA = 1


def encode(judgement: Judgement) -> bytes:
    """The document, UTF-8, indented: people read it too."""
    return orjson.dumps(document(judgement), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def document(judgement: Judgement) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "pipeline": judgement.pipeline,
        "transform": judgement.transform,
        "depth": judgement.depth.value,
        "exit_code": int(judgement.exit_code),
        "verdict": judgement.exit_code.name.lower().replace("_", " "),
        "headline": headline(judgement),
        "took_s": judgement.took_s,
        "totals": {verdict.value: count for verdict, count in judgement.totals.items()},
        "finding_counts": {kind.value: count for kind, count in judgement.finding_counts.items()},
        "findings": [_finding(finding) for finding in judgement.findings],
        "notes": list(judgement.notes),
        "cut": _cut(judgement.cut),
        "audited": _ranges(judgement.audited),
        "stretches": [
            {**asdict(stretch), "counts": {verdict.value: count for verdict, count in stretch.counts.items()}}
            for stretch in judgement.stretches
        ],
        "ledger": [asdict(row) for row in judgement.ledger],
        "balances": [asdict(balance) for balance in judgement.balances],
        "latency": [asdict(row) for row in judgement.latency],
        "disorder": [asdict(row) for row in judgement.disorder],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    source = finding.source and dict(zip(("topic", "partition", "offset"), finding.source, strict=True))
    return {**asdict(finding), "kind": finding.kind.value, "source": source}


def _cut(cut: Cut) -> dict[str, Any]:
    return {
        "taken_ms": cut.taken_ms,
        "group": cut.group,
        "committed": _offsets(cut.committed),
        "source_start": _offsets(cut.source_start),
        "source_end": _offsets(cut.source_end),
        "outputs": _ranges(cut.outputs),
        "topic_ids": dict(sorted(cut.topic_ids.items())),
        "compacted": sorted(cut.compacted),
        "waited_s": cut.waited_s,
        "open_transactions": [_open(transaction) for transaction in cut.open_transactions],
    }


def _open(transaction: OpenTransaction) -> dict[str, Any]:
    return {**asdict(transaction), "hanging": transaction.coordinator_state is None}


def _offsets(offsets: Mapping[Partition, int]) -> list[dict[str, Any]]:
    return [{"topic": t, "partition": p, "offset": offset} for (t, p), offset in sorted(offsets.items())]


def _ranges(ranges: Mapping[Partition, Range]) -> list[dict[str, Any]]:
    return [{"topic": t, "partition": p, "start": r.start, "end": r.end} for (t, p), r in sorted(ranges.items())]
