"""What must come out of config/pipelines/orders.yaml, worked out in plain Python, without the worker and without transforms.

It is a second implementation of that one pipeline, made to be compared with the first: when the file changes, this changes too. It knows
the values that devkit.orders makes; of JSON's darker corners (lone surrogates, integers beyond 64 bits) it knows nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from devkit.verify import DEAD_LETTER, ExpectedRecord

if TYPE_CHECKING:
    from devkit.verify import StoredRecord

GROUP = "orders"
SOURCE = "shop.orders"
CLEAN = "shop.orders.clean"
LARGE = "shop.orders.large"
DEAD_LETTERS = "orders.dead-letters"
RECEIPTS = "orders.receipts"

OUTPUTS = (CLEAN, LARGE)


def _refuse(constant: str) -> NoReturn:
    """Python's json takes NaN and Infinity, which are no JSON."""
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class _Bad(Exception):  # noqa: N818 - not an error of ours: the record's
    """The record cannot be processed."""


def expected(source: StoredRecord) -> list[ExpectedRecord]:
    """The records that must exist because of this one: outputs, a dead letter, or none where it is filtered."""
    if source.value is None:
        return [_record(source, index, topic, None) for index, topic in enumerate(OUTPUTS)]
    try:
        order = _order(source.value)
        if order["status"] == "cancelled" or _number(order["amount"]) <= 0:
            return []
        cents = int(float(order["amount"]) * 100.0 + 0.5)
        customer = order["user"]
    except (_Bad, KeyError):
        return [_record(source, DEAD_LETTER, DEAD_LETTERS, source.value)]
    kept = {name: value for name, value in order.items() if name not in ("user", "note")}
    value = _ENCODER.encode(kept | {"amount_cents": cents, "customer": customer})
    return [_record(source, 0, LARGE if cents > 100_000 else CLEAN, value.encode())]


def _record(source: StoredRecord, index: int, topic: str, value: bytes | None) -> ExpectedRecord:
    return ExpectedRecord(source.position, index, topic, source.key, value, source.headers, source.timestamp_ms)


def _order(value: bytes) -> dict[str, Any]:
    try:
        order = _DECODER.decode(value.decode("utf-8"))
    except ValueError as error:
        raise _Bad from error
    if not isinstance(order, dict):
        raise _Bad
    return order


def _number(amount: object) -> float:
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise _Bad
    return amount
