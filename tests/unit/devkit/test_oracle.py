"""The oracle says by hand-made examples what the orders pipeline must do; one test holds it against the pipeline file's topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from devkit import oracle
from devkit.verify import DEAD_LETTER, StoredRecord

PIPELINE = Path(__file__).parents[3] / "config/pipelines/orders.yaml"
ORDER = {"id": 17, "user": "u42", "amount": 12.34, "status": "ok", "items": [{"sku": "a", "qty": 2}], "note": "n"}


def stored(value: bytes | None) -> StoredRecord:
    return StoredRecord(oracle.SOURCE, 3, 99, b"u42", value, (("trace", b"t"), ("trace", None)), 1_234)


def fate(change: dict[str, Any]) -> tuple[str, int] | None:
    """(topic, amount_cents) of an order with a change; the dead-letter topic with -1; None where it is filtered."""
    order = {name: value for name, value in (ORDER | change).items() if value is not ...}
    records = oracle.expected(stored(json.dumps(order).encode()))
    if not records:
        return None
    (record,) = records
    dead = record.output_index == DEAD_LETTER
    return record.topic, -1 if dead else json.loads(record.value or b"")["amount_cents"]


def test_a_good_order_is_cleaned_and_keeps_key_headers_and_timestamp() -> None:
    (record,) = oracle.expected(stored(json.dumps(ORDER).encode()))
    assert record._replace(value=None) == (
        (oracle.SOURCE, 3, 99),
        0,
        oracle.CLEAN,
        b"u42",
        None,
        (("trace", b"t"), ("trace", None)),
        1_234,
    )
    assert json.loads(record.value or b"") == {
        "id": 17,
        "amount": 12.34,
        "status": "ok",
        "items": [{"sku": "a", "qty": 2}],
        "amount_cents": 1234,
        "customer": "u42",
    }


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"amount": 1.15}, (oracle.CLEAN, 115)),
        ({"amount": 12}, (oracle.CLEAN, 1200)),
        ({"amount": 1000.0}, (oracle.CLEAN, 100_000)),
        ({"amount": 1000.01}, (oracle.LARGE, 100_001)),
        ({"note": ...}, (oracle.CLEAN, 1234)),
        ({"status": "cancelled"}, None),
        ({"status": "cancelled", "amount": "12.34"}, None),
        ({"amount": 0}, None),
        ({"amount": -5.0}, None),
        ({"amount": "12.34"}, (oracle.DEAD_LETTERS, -1)),
        ({"amount": True}, (oracle.DEAD_LETTERS, -1)),
        ({"amount": None}, (oracle.DEAD_LETTERS, -1)),
        ({"amount": ...}, (oracle.DEAD_LETTERS, -1)),
        ({"user": ...}, (oracle.DEAD_LETTERS, -1)),
        ({"status": ...}, (oracle.DEAD_LETTERS, -1)),
    ],
)
def test_orders(change: dict[str, Any], expected: tuple[str, int] | None) -> None:
    assert fate(change) == expected


@pytest.mark.parametrize("value", [b"", b"{", b"null", b"[]", b'{"id":\xff}', b'{"amount":NaN}', b"\xef\xbb\xbf{}"])
def test_what_is_no_json_object_becomes_a_dead_letter_as_it_is(value: bytes) -> None:
    (record,) = oracle.expected(stored(value))
    assert (record.output_index, record.topic, record.value) == (DEAD_LETTER, oracle.DEAD_LETTERS, value)


def test_a_tombstone_goes_to_both_topics() -> None:
    """The key may be in either."""
    found = [(record.output_index, record.topic, record.value) for record in oracle.expected(stored(None))]
    assert found == [(0, oracle.CLEAN, None), (1, oracle.LARGE, None)]


def test_the_names_are_those_of_the_pipeline_file() -> None:
    spec = yaml.safe_load(PIPELINE.read_text())
    routes = [route["to"] for step in spec["steps"] for route in step.get("route", ())]
    assert (spec["name"], spec["source"]["topics"]) == (oracle.GROUP, [oracle.SOURCE])
    assert {spec["sink"]["topic"], *routes} == set(oracle.OUTPUTS)
    assert (spec["dead_letters"]["topic"], spec["receipts"]) == (oracle.DEAD_LETTERS, oracle.RECEIPTS)
