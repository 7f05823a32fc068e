"""Judgements as they may come out of an audit, for tests of the report and for looking at it: python -m tests.audit.samples OUTDIR."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from spark_batch.model import (
    FINDINGS_SHOWN,
    Balance,
    Cut,
    Depth,
    Disorder,
    Finding,
    Judgement,
    Kind,
    LatencyRow,
    LedgerRow,
    OpenTransaction,
    Partition,
    Range,
    Stretch,
    Verdict,
)
from spark_batch.report import write_report

HOUR = 3_600_000
T0 = 1_767_225_600_000
"""2026-01-01 00:00 UTC"""

Counts = dict[Verdict, int]


def cut(partitions: int, each: int, *, topics: tuple[str, ...] = ("shop.orders",), **fields: object) -> Cut:
    source = [(topic, p) for topic in topics for p in range(partitions)]
    outputs: dict[Partition, Range] = {("shop.priced", p): Range(0, each + 7) for p in range(partitions)}
    outputs |= {("orders.dead-letters", 0): Range(0, 33), ("orders.receipts", 0): Range(0, 4200)}
    values: dict[str, object] = {
        "taken_ms": T0 + 26 * HOUR,
        "group": "orders",
        "committed": dict.fromkeys(source, 1000 + each),
        "source_start": dict.fromkeys(source, 1000),
        "source_end": dict.fromkeys(source, 1000 + each + 250),
        "outputs": outputs,
        "topic_ids": {t: f"T{t.title().replace('.', '')[:9]}-Qm3Ux2W1aA" for t in (*topics, *{o for o, _ in outputs})},
        "compacted": frozenset(),
        "waited_s": 0.052,
    }
    return Cut(**(values | fields))  # type: ignore[arg-type]


def stretches(topic: str, partition: int, each: int, pieces: int = 200, seed: int = 0) -> list[Stretch]:
    """A healthy partition: some records filtered, now and then a dead letter."""
    chance = random.Random(f"{topic}/{partition}/{seed}")
    size = each // pieces
    found = []
    for n in range(pieces):
        filtered, dead = chance.randint(0, size // 3), int(chance.random() < 0.05)
        counts = {Verdict.EXACTLY_ONCE: size - filtered - dead, Verdict.FILTERED: filtered, Verdict.DEAD_LETTERED: dead}
        found.append(Stretch(topic, partition, 1000 + n * size, 1000 + (n + 1) * size, counts))
    return found


def planted(stretch: Stretch, verdict: Verdict, count: int = 1) -> Stretch:
    counts = dict(stretch.counts)
    counts[Verdict.EXACTLY_ONCE] -= count
    counts[verdict] = counts.get(verdict, 0) + count
    return Stretch(stretch.topic, stretch.partition, stretch.start, stretch.end, counts)


def totals(pieces: list[Stretch]) -> Counts:
    summed: Counts = {}
    for piece in pieces:
        for verdict, count in piece.counts.items():
            summed[verdict] = summed.get(verdict, 0) + count
    return summed


def latencies(hours: int, records: int = 1_248_000) -> tuple[LatencyRow, ...]:
    chance = random.Random(7)
    rows = []
    for n in range(hours):
        p50 = 40 + 25 * chance.random() + (900 if n == 9 else 0)
        rows.append(LatencyRow(T0 + n * HOUR, records // hours, p50, p50 * 2.5, p50 * (4 + 12 * chance.random())))
    return tuple(rows)


def judgement(pieces: list[Stretch], at: Cut, **fields: object) -> Judgement:
    ledger = [
        LedgerRow(
            topic,
            p,
            "receipts" if topic.endswith("receipts") else "dead letters" if "dead" in topic else "output",
            r.start,
            r.end,
            r.end - r.start - 7,
            3,
            4,
            12 if topic == "shop.priced" else 0,
            0,
        )
        for (topic, p), r in at.outputs.items()
    ]
    summed = totals(pieces)
    values: dict[str, object] = {
        "pipeline": "orders",
        "transform": "sha256:4f1c8b0de1f0a7c93a55b1d24e6f7788990011223344556677889900aabbccdd",
        "depth": Depth.RECORDS,
        "cut": at,
        "audited": {key: Range(1000, c) for key, c in at.committed.items()},
        "stretches": tuple(pieces),
        "findings": (),
        "finding_counts": {},
        "ledger": tuple(ledger),
        "balances": (
            Balance("shop.priced", "output", summed.get(Verdict.EXACTLY_ONCE, 0), summed.get(Verdict.EXACTLY_ONCE, 0)),
            Balance("orders.dead-letters", "dead letters", 26, 26),
            Balance("orders.receipts", "receipts", 4193, 4193),
        ),
        "latency": latencies(26),
        "disorder": (Disorder("shop.orders", 1_248_000, 3_112, 94_000),),
        "took_s": 41.7,
        "totals": summed,
    }
    return Judgement(**(values | fields))  # type: ignore[arg-type]


def complete() -> Judgement:
    at = cut(6, 208_000)
    pieces = [piece for p in range(6) for piece in stretches("shop.orders", p, 208_000)]
    found = judgement(pieces, at)
    found.totals[Verdict.IN_FLIGHT] = 1500
    return found


DETAIL = {
    Kind.MISSING: "Receipt 5f0c…/17 claims this record; no output of it lies in shop.priced.",
    Kind.DUPLICATE: "Second output with index 0 of this source record; the first lies at shop.priced/1 offset 18,004.",
    Kind.ALTERED: "The value differs from what the transform gives, first at byte 17.",
    Kind.MISROUTED: "Expected in shop.priced, found here.",
    Kind.REORDERED: "Stands behind an output of shop.orders/2 offset 31,007.",
    Kind.ORPHAN: "Names offset 900,001, which is beyond the source's end.",
    Kind.RECEIPT_MISSING: "No receipt covers these 250 offsets.",
    Kind.RECEIPT_OVERLAP: "Claimed by orders-a (sequence 17) and orders-b (sequence 3).",
    Kind.RECEIPT_MISMATCH: "The receipt says 250 read, the source holds 249.",
    Kind.LEDGER: "Receipts claim 208,000 outputs, 207,998 were found.",
    Kind.HANGING_TRANSACTION: "Producer 4711, epoch 3, since 2026-01-01 20:14 UTC; no coordinator lists it.",
    Kind.OPEN_TRANSACTION: "orders-b, since 4 s.",
    Kind.SOURCE_EXPIRED: "Retention removed 4,000 records.",
    Kind.COMPACTED: "cleanup.policy=compact: 31 offsets hold no record.",
    Kind.TOPIC_RECREATED: "The receipts name another topic id.",
    Kind.OTHER_TRANSFORM: "Written under sha256:77aa….",
    Kind.OFFSETS_UNKNOWN: "The group has no committed offset here.",
}


def finding(kind: Kind, n: int) -> Finding:
    at_source = kind in {
        Kind.MISSING,
        Kind.RECEIPT_MISSING,
        Kind.RECEIPT_OVERLAP,
        Kind.RECEIPT_MISMATCH,
        Kind.OTHER_TRANSFORM,
    }
    if not kind.is_fault and kind is not Kind.OTHER_TRANSFORM:
        topic = "shop.priced" if "transaction" in kind.value else "shop.orders"
        return Finding(kind, topic, n % 6, None, detail=DETAIL[kind])
    offset = 1000 + n * 977
    ranged = kind in {Kind.RECEIPT_MISSING, Kind.RECEIPT_OVERLAP, Kind.RECEIPT_MISMATCH, Kind.OTHER_TRANSFORM}
    if kind is Kind.LEDGER:
        return Finding(kind, "shop.priced", n % 6, None, detail=DETAIL[kind])
    return Finding(
        kind,
        "shop.orders" if at_source else "shop.priced",
        n % 6,
        offset,
        offset + 250 if ranged else None,
        None if at_source else ("shop.orders", n % 6, offset + 31),
        DETAIL[kind],
    )


def of_all_kinds() -> Judgement:
    at = cut(
        6,
        208_000,
        waited_s=60.0,
        open_transactions=(
            OpenTransaction("shop.priced", 3, 4711, 3, 207_200, T0 + 20 * HOUR, None, None),
            OpenTransaction("orders.receipts", 0, 4712, 0, 4190, T0 + 26 * HOUR, "Ongoing", "orders-b"),
        ),
        compacted=frozenset({"shop.orders"}),
    )
    pieces = [piece for p in range(6) for piece in stretches("shop.orders", p, 208_000)]
    verdicts = (
        Verdict.MISSING,
        Verdict.DUPLICATE,
        Verdict.ALTERED,
        Verdict.ORPHAN,
        Verdict.EXPIRED,
        Verdict.UNVERIFIABLE,
    )
    for n, verdict in enumerate((*verdicts, Verdict.UNKNOWN)):
        where = 200 * (n % 5) + 23 * n + 9
        pieces[where] = planted(pieces[where], verdict, 1 + n)
    pieces[700:720] = [planted(piece, Verdict.MISSING, 600) for piece in pieces[700:720]]
    findings = [finding(kind, n) for kind in Kind for n in range(3 if kind.is_fault else 1)]
    counts = {kind: sum(f.kind is kind for f in findings) for kind in Kind}
    found = judgement(
        pieces,
        at,
        findings=tuple(findings),
        finding_counts=counts,
        depth=Depth.CONTENT,
        notes=("Receipts before 2025-12-30 have expired: 4,000 records below offset 1,000 cannot be judged.",),
    )
    rows = list(found.ledger)
    rows[2] = LedgerRow("shop.priced", 2, "output", 0, 208_007, 207_998, 3, 4, 12, 0)
    balances = (Balance("shop.priced", "output", 1_120_000, 1_119_998), *found.balances[1:])
    return judgement(pieces, at, **_fields(found) | {"ledger": tuple(rows), "balances": balances})


def _fields(of: Judgement) -> dict[str, object]:
    return {name: getattr(of, name) for name in ("findings", "finding_counts", "depth", "notes", "totals")}


def cannot_judge() -> Judgement:
    hanging = OpenTransaction("shop.priced", 3, 4711, 3, 207_200, T0 + 20 * HOUR, None, None)
    at = cut(6, 208_000, waited_s=60.0, open_transactions=(hanging,))
    pieces = [piece for p in range(6) for piece in stretches("shop.orders", p, 208_000)]
    pieces[799] = planted(pieces[799], Verdict.UNKNOWN, 600)
    return judgement(
        pieces,
        at,
        findings=(finding(Kind.HANGING_TRANSACTION, 3),),
        finding_counts={Kind.HANGING_TRANSACTION: 1},
        latency=latencies(1),
    )


def empty() -> Judgement:
    at = cut(0, 0, outputs={}, topic_ids={})
    return judgement([], at, latency=(), disorder=(), balances=(), ledger=(), took_s=3.1)


def offsets_depth() -> Judgement:
    at = cut(2, 208_000)
    pieces = [Stretch("shop.orders", p, 1000, 209_000, {Verdict.CLAIMED: 208_000}) for p in range(2)]
    none: dict[str, object] = {"ledger": (), "balances": (), "latency": (), "disorder": ()}
    return judgement(pieces, at, depth=Depth.OFFSETS, took_s=9.0, **none)


def many_partitions(partitions: int = 48, findings: int = 3) -> Judgement:
    at = cut(partitions, 208_000)
    pieces = [piece for p in range(partitions) for piece in stretches("shop.orders", p, 208_000)]
    for n in range(0, len(pieces), max(len(pieces) // max(findings, 1), 1)):
        pieces[n] = planted(pieces[n], Verdict.MISSING)
    all_of_them = tuple(finding(Kind.MISSING, n) for n in range(min(findings, FINDINGS_SHOWN)))
    return judgement(
        pieces,
        at,
        findings=all_of_them,
        finding_counts={Kind.MISSING: findings} if findings else {},
        latency=latencies(720),
    )


def huge() -> Judgement:
    """200 partitions, 30,000 findings of all kinds of faults, of which as many are shown as a judgement may hold."""
    found = many_partitions(200, 30_000)
    faults = [kind for kind in Kind if kind.is_fault]
    shown = tuple(finding(faults[n % len(faults)], n) for n in range(FINDINGS_SHOWN))
    counts = dict.fromkeys(faults, 30_000 // len(faults))
    return judgement(list(found.stretches), found.cut, findings=shown, finding_counts=counts, latency=latencies(720))


SAMPLES = {
    "complete": complete,
    "all-kinds": of_all_kinds,
    "cannot-judge": cannot_judge,
    "empty": empty,
    "offsets": offsets_depth,
    "48-partitions": many_partitions,
    "huge": huge,
}


def main() -> None:
    out = Path(sys.argv[1])
    for name, make in SAMPLES.items():
        paths = write_report(make(), out / name, None, bootstrap="broker-1:9092")
        print(f"{paths.page}: {paths.page.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
