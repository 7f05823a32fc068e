"""config/pipelines/orders.yaml does what its comments say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.records import Record
from transforms.loading import load_pipeline

FILE = Path(__file__).parents[3] / "config" / "pipelines" / "orders.yaml"
ORDER: dict[str, Any] = {
    "id": 17,
    "user": "u42",
    "amount": 12.34,
    "currency": "EUR",
    "status": "ok",
    "items": [{"sku": "A-1", "qty": 2}],
    "created_at": "2026-01-31T09:30:00Z",
    "note": "ring twice",
}
CLEAN: dict[str, Any] = {key: value for key, value in ORDER.items() if key not in ("user", "note")}


def test_orders() -> None:
    """Clean ones by amount into two topics, cancelled ones nowhere, the others into the dead letters with their reason."""
    transform = load_pipeline(FILE, {}).transform
    without_amount = {key: value for key, value in ORDER.items() if key != "amount"}
    orders: list[dict[str, Any]] = [
        ORDER,
        {**ORDER, "amount": 1000.01},
        {**ORDER, "amount": 1.15},
        {**ORDER, "amount": 12},
        {**ORDER, "status": "cancelled"},
        {**without_amount, "status": "cancelled"},
        {**ORDER, "amount": 0.0},
        without_amount,
        {**ORDER, "amount": "12.34"},
    ]
    result = transform.run(
        [*(Record(json.dumps(order).encode()) for order in orders), Record(b'{"id": 1'), Record(None)]
    )
    made = [(topic, None if value is None else json.loads(value)) for topic, value, *_ in result.outputs]
    expected = [
        ("shop.orders.clean", {**CLEAN, "amount_cents": 1234, "customer": "u42"}),
        ("shop.orders.large", {**CLEAN, "amount": 1000.01, "amount_cents": 100001, "customer": "u42"}),
        ("shop.orders.clean", {**CLEAN, "amount": 1.15, "amount_cents": 115, "customer": "u42"}),
        ("shop.orders.clean", {**CLEAN, "amount": 12, "amount_cents": 1200, "customer": "u42"}),
        ("shop.orders.clean", None),
        ("shop.orders.large", None),
    ]
    assert expected == made
    assert result.filtered == 3
    failures = [(failure.error_class, failure.message, failure.step, failure.line) for failure in result.failures]
    assert failures == [
        ("CelError", 'no such field: "amount"', "steps[0] filter", 21),
        ("CelError", "no such overload: string > double", "steps[0] filter", 21),
        ("DecodeError", "not JSON: unexpected end of data: line 1 column 9 (char 8)", "decode", 0),
    ]


def test_settings() -> None:
    """The bootstrap servers come from the environment, and have a default for a laptop."""
    assert load_pipeline(FILE, {}).spec.kafka["bootstrap.servers"] == "127.0.0.1:9092"
    assert load_pipeline(FILE, {"RECKON_BOOTSTRAP_SERVERS": "broker:1"}).spec.kafka["bootstrap.servers"] == "broker:1"
