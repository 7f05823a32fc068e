"""The receipts' judge is shown to fail on every kind of fault."""

from __future__ import annotations

import json
from typing import Any

from devkit.verify import StoredRecord, by_lineage
from devkit.verify_receipts import Fates, check_receipts, fates

DEAD = "orders.dead"
START = {("orders", 0): 0, ("orders", 1): 5}
COMMITTED = {("orders", 0): 6, ("orders", 1): 7}

FATES: dict[tuple[str, int, int], list[str]] = {
    ("orders", 0, 0): ["clean"],
    ("orders", 0, 1): [],
    ("orders", 0, 2): ["large"],
    ("orders", 0, 4): ["clean"],
    ("orders", 0, 5): [DEAD],
    ("orders", 1, 5): [],
    ("orders", 1, 6): ["clean", "clean"],
}
"""Offset 3 of partition 0 is a commit marker's."""


def part(partition: int, start: int, end: int, counts: tuple[int, int, int], **written: int) -> dict[str, Any]:
    read, filtered, dead = counts
    return {
        "topic": "orders",
        "partition": partition,
        "from": start,
        "to": end,
        "read": read,
        "filtered": filtered,
        "dead_lettered": dead,
        "written": written,
    }


def receipt(sequence: int, *parts: dict[str, Any], incarnation: str = "i", schema: int = 1) -> dict[str, Any]:
    return {
        "schema": schema,
        "pipeline": "orders",
        "transactional_id": "orders/a",
        "incarnation": incarnation,
        "sequence": sequence,
        "transform": "sha256:0",
        "worker": "0",
        "time_ms": 1,
        "partitions": list(parts),
    }


FIRST = receipt(1, part(0, 0, 3, (3, 1, 0), clean=1, large=1), part(1, 5, 7, (2, 1, 0), clean=2))
SECOND = receipt(2, part(0, 3, 6, (2, 0, 1), clean=1))


def check(*receipts: dict[str, Any], found: Fates = FATES) -> list[str]:
    records = [
        StoredRecord("orders.receipts", 0, n, b"orders/a", json.dumps(value).encode(), (), 0)
        for n, value in enumerate(receipts)
    ]
    return check_receipts(records, START, COMMITTED, found=found, dead_letter_topic=DEAD)


def test_good_receipts_in_any_order_have_no_errors() -> None:
    assert check(SECOND, FIRST) == []


def test_a_restarted_worker_counts_from_one_again() -> None:
    assert check(FIRST, SECOND | {"incarnation": "j", "sequence": 1}) == []


def test_a_missing_receipt_in_the_middle() -> None:
    """Its range stands without a receipt."""
    third = receipt(2, part(0, 5, 6, (1, 0, 1)))
    assert check(FIRST, third) == ["orders/0: offsets [3, 5) have no receipt"]


def test_missing_receipts_at_the_start_and_at_the_end() -> None:
    middle = receipt(1, part(0, 1, 5, (3, 1, 0), clean=1, large=1))
    assert check(middle) == [
        "orders/0: offsets [0, 1) have no receipt",
        "orders/0: offsets [5, 6) have no receipt",
        "orders/1: offsets [5, 7) have no receipt",
    ]


def test_a_receipt_twice() -> None:
    assert check(FIRST, SECOND, SECOND) == [
        "orders/0: offsets [3, 6) have more than one receipt",
        "orders/a, incarnation i: sequence numbers are not 1 to 3 once each",
    ]


def test_overlapping_receipts() -> None:
    overlapping = receipt(2, part(0, 2, 6, (3, 0, 1), clean=1, large=1))
    assert check(FIRST, overlapping) == ["orders/0: offsets [2, 3) have more than one receipt"]


def test_a_receipt_inside_another_hides_no_gap_and_makes_none() -> None:
    inside = receipt(3, part(0, 1, 2, (1, 1, 0)))
    assert check(FIRST, SECOND, inside) == ["orders/0: offsets [1, 2) have more than one receipt"]


def test_a_receipt_beyond_what_is_committed() -> None:
    beyond = receipt(2, part(0, 3, 8, (2, 0, 1), clean=1))
    assert check(FIRST, beyond) == ["orders/0: receipts reach offset 8, but 6 is committed"]


def test_a_receipt_of_a_partition_that_nobody_committed() -> None:
    stranger = receipt(3, part(2, 0, 4, (0, 0, 0)))
    assert check(FIRST, SECOND, stranger) == ["orders/2: receipts reach offset 4, but 0 is committed"]


def test_an_empty_range() -> None:
    empty = receipt(3, part(0, 6, 6, (0, 0, 0)))
    assert check(FIRST, SECOND, empty) == ["orders/0, offsets [6, 6): an empty range"]


def test_a_count_that_is_not_what_the_topics_hold() -> None:
    """Here one output was lost after the receipt had been written."""
    assert check(FIRST, SECOND, found=FATES | {("orders", 0, 4): []}) == [
        (
            "orders/0, offsets [3, 6): the receipt says 2 read, 0 filtered, 1 dead letters, outputs: 1 in clean; "
            "the topics hold 2 read, 1 filtered, 1 dead letters, outputs: none"
        ),
    ]


def test_a_missing_sequence_number() -> None:
    """A transaction whose receipt covers nothing that another does not cover still leaves a hole in the numbers."""
    assert check(FIRST, SECOND | {"sequence": 3}) == [
        "orders/a, incarnation i: sequence numbers are not 1 to 2 once each"
    ]


def test_receipts_that_cannot_be_read() -> None:
    no_count = part(0, 3, 6, (2, 0, 1), clean=1)
    del no_count["read"]
    errors = check(FIRST, SECOND, receipt(3, schema=2), receipt(3, no_count))
    assert errors[:2] == [
        "unreadable receipt at ('orders.receipts', 0, 2): ValueError('schema 2, 1 was expected')",
        "unreadable receipt at ('orders.receipts', 0, 3): KeyError('read')",
    ]


def test_fates_tell_by_source_record_where_something_stands() -> None:
    sources = [StoredRecord("orders", 0, n, b"k", b"{}", (), n) for n in range(2)]
    outputs = [
        StoredRecord("clean", 0, 0, b"k", b"{}", (("reckon.source", b"orders/0/1/0"),), 1),
        StoredRecord("large", 0, 0, b"k", b"{}", (("reckon.source", b"orders/0/1/1"),), 1),
        StoredRecord("clean", 0, 1, b"k", b"{}", (("reckon.source", b"elsewhere/0/1/0"),), 1),
    ]
    expected = {("orders", 0, 0): [], ("orders", 0, 1): ["clean", "large"]}
    assert expected == fates(sources, outputs, by_lineage(DEAD))
