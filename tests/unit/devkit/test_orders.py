"""The orders are realistic, and the same wherever they are made."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from itertools import islice

from devkit.orders import FIRST_CREATED_AT, SHARES, OrderRecord, orders

ORDERS = list(orders(20_000, seed=7))


def parsed(order: OrderRecord) -> object:
    """The JSON value; None where there is none."""
    try:
        return json.loads(order.value or b"")
    except ValueError:
        return None


def test_the_same_seed_gives_the_same_bytes_on_every_machine() -> None:
    """A digest, because reports and bug fixes compare runs that lie months apart."""
    digest = hashlib.sha256()
    for order in ORDERS:
        digest.update(repr((order.key, order.value, order.headers, order.timestamp_ms, order.kind)).encode())
    assert digest.hexdigest() == "e9fb984e2e1a8538b19d2f5afd029b54e01822e4033822c45d53e5b27e9c6aa2"


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    assert list(orders(500, seed=7)) == ORDERS[:500]
    assert list(islice(orders(1, seed=8), 1)) != ORDERS[:1]


def test_the_kinds_come_in_their_shares() -> None:
    counts = Counter(order.kind for order in ORDERS)
    assert set(counts) == {*SHARES, "ok"}
    for kind, share in SHARES.items():
        assert 0.6 * share < counts[kind] / len(ORDERS) < 1.4 * share


def test_a_good_order_looks_like_one() -> None:
    order = next(order for order in ORDERS if order.kind == "ok")
    value = json.loads(order.value or b"")
    assert list(value) == ["id", "user", "amount", "currency", "status", "items", "created_at", "note"]
    assert value["status"] == "ok"
    assert value["user"].encode() == order.key
    assert value["created_at"].startswith("2026-01-05T08:00:00.")


def test_values_are_about_two_hundred_bytes() -> None:
    sizes = [len(order.value or b"") for order in ORDERS if order.kind == "ok"]
    assert 200 < sum(sizes) / len(sizes) < 300


def test_kinds_are_what_they_say() -> None:
    for order_id, order in enumerate(ORDERS):
        value = parsed(order)
        match order.kind:
            case "tombstone":
                assert order.value is None
            case "malformed":
                assert order.value is not None
                assert not isinstance(value, dict)
            case "rejected":
                assert isinstance(value, dict)
                assert isinstance(value.get("amount", ""), str)
            case _:
                assert isinstance(value, dict)
                assert (value["id"], value["status"]) == (order_id, order.kind)


def test_malformed_values_are_broken_in_many_ways() -> None:
    """An empty value is not a tombstone, bytes may be no UTF-8, and JSON need not be an object."""
    values = {order.value for order in ORDERS if order.kind == "malformed"}
    assert b"" in values
    assert b"<order/>" in values
    assert any(b"\xff" in (value or b"") for value in values)
    assert any((value or b"").startswith(b"[") for value in values)


def test_users_differ_in_popularity() -> None:
    by_user = Counter(order.key for order in ORDERS)
    assert len(by_user) > 2_000
    assert by_user.most_common(1)[0][1] > 20 * len(ORDERS) / len(by_user)


def test_timestamps_rise_and_name_the_order() -> None:
    times = [order.timestamp_ms for order in ORDERS]
    assert times == sorted(set(times))
    assert times[0] >= FIRST_CREATED_AT.timestamp() * 1000


def test_some_have_headers_with_repeated_names_and_null_values() -> None:
    with_headers = [order.headers for order in ORDERS if order.headers]
    assert 0.01 < len(with_headers) / len(ORDERS) < 0.03
    assert any(("campaign", None) in headers and ("channel", b"") in headers for headers in with_headers)


def test_some_amounts_are_written_without_a_decimal_point() -> None:
    """JSON has one kind of number, most languages have two."""
    kinds = Counter(type(json.loads(order.value or b"")["amount"]) for order in ORDERS if order.kind == "ok")
    assert set(kinds) == {int, float}
    assert 0.1 < kinds[int] / kinds.total() < 0.2


def test_large_orders_are_rare_but_there() -> None:
    amounts = [value["amount"] for order in ORDERS if order.kind == "ok" and isinstance(value := parsed(order), dict)]
    assert 0.02 < sum(amount > 1_000 for amount in amounts) / len(amounts) < 0.3
