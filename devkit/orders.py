"""Orders as a shop might produce them: the source records of the demo, the tests and the benchmarks.

The same `n` and `seed` give the same bytes on every Python: only `random.Random.random()` is used, the one method whose
sequence Python promises to keep.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["ok", "cancelled", "malformed", "rejected", "tombstone"]

FIRST_CREATED_AT = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
"""Fixed, so that the bytes are the same every day. Topics that hold orders need `retention.ms=-1`: with the default of
seven days a broker deletes any segment whose newest record is older than that."""

SHARES: dict[Kind, float] = {"malformed": 0.005, "rejected": 0.005, "tombstone": 0.001, "cancelled": 0.2}
"""The rest is "ok"."""

SHARE_WITH_HEADERS = 0.02

_USERS = 5_000
_CURRENCIES = ("EUR", "EUR", "EUR", "USD", "USD", "GBP", "JPY", "CHF")
_SKUS = ("tea-earl-grey-100", "cup-porcelain-blue", "kettle-1.7l", "spoon-steel-6", "filter-paper-80", "honey-500g")
_NOTES = (
    "",
    "leave at the door",
    "ring twice, the bell is weak",
    "gift: please add the card “Für Zoë”",
    "c/o Müller, 3rd floor left 🫖",
    'say "hello" to the dog, he is \\ friendly',
)
_EPOCH_MS = int(FIRST_CREATED_AT.timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """One record as it is to be produced."""

    key: bytes
    """The user, UTF-8; the popularity of users is skewed as in real life."""
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    timestamp_ms: int
    """Unique among the records of one run and rising: it names the order where a value (tombstone, garbage) cannot."""
    kind: Kind
    """What was made on purpose. A verifier must not use it: it judges by the stored bytes."""


def orders(n: int, seed: int = 1) -> Iterator[OrderRecord]:
    """`n` orders, ids 0 to n - 1, in shares as in SHARES; a shorter run is the beginning of a longer one."""
    dice = Random(seed)  # noqa: S311 - reproducible data, not a secret
    for order_id in range(n):
        yield _order(order_id, _kind(dice.random()), dice)


def _kind(chance: float) -> Kind:
    for kind, share in SHARES.items():
        if chance < share:
            return kind
        chance -= share
    return "ok"


def _order(order_id: int, kind: Kind, dice: Random) -> OrderRecord:
    user = f"u{int(_cube(dice.random()) * _USERS)}"
    elapsed_ms = order_id * 20 + int(dice.random() * 20)
    created_at = FIRST_CREATED_AT + timedelta(milliseconds=elapsed_ms)
    order: dict[str, object] = {
        "id": order_id,
        "user": user,
        "amount": _amount(dice.random()),
        "currency": _pick(_CURRENCIES, dice),
        "status": "cancelled" if kind == "cancelled" else "ok",
        "items": [{"sku": _pick(_SKUS, dice), "qty": _few(dice)} for _ in range(_few(dice))],
        "created_at": created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "note": _pick(_NOTES, dice),
    }
    if kind == "rejected":
        _spoil_amount(order, dice)
    value: bytes | None = json.dumps(order, ensure_ascii=False, separators=(",", ":")).encode()
    if kind == "malformed":
        value = _malformed(value or b"", dice)
    if kind == "tombstone":
        value = None
    headers = _headers(order_id, dice) if dice.random() < SHARE_WITH_HEADERS else []
    return OrderRecord(user.encode(), value, headers, _EPOCH_MS + elapsed_ms, kind)


def _few(dice: Random) -> int:
    return 1 + int(dice.random() * 3)


def _pick(choices: tuple[str, ...], dice: Random) -> str:
    return choices[int(dice.random() * len(choices))]


def _cube(x: float) -> float:
    """By multiplication: `**` may differ in the last bit from one C library to the next."""
    return x * x * x


def _amount(chance: float) -> float | int:
    """Mostly small, now and then large: 1.00 to 2,001.00, with two decimals; one in seven is written without a decimal point."""
    cents = 100 + int(200_000 * _cube(chance) * _cube(chance))
    return cents // 100 if cents % 7 == 0 else cents / 100


def _spoil_amount(order: dict[str, object], dice: Random) -> None:
    """Valid JSON that the pipeline cannot compute with: no amount, or one that is a text."""
    if dice.random() < 0.5:
        del order["amount"]
    else:
        order["amount"] = str(order["amount"])


def _malformed(value: bytes, dice: Random) -> bytes:
    """No JSON object: cut off, bytes that are no UTF-8, an empty value (which is no tombstone), XML, a list."""
    broken = (value[: len(value) // 2], value[:-2] + b"\xff\xfe", b"", b"<order/>", b"[" + value + b"]")
    return broken[int(dice.random() * len(broken))]


def _headers(order_id: int, dice: Random) -> list[tuple[str, str | bytes | None]]:
    """Kafka allows a name twice, empty values and null ones: all of them occur."""
    headers: list[tuple[str, str | bytes | None]] = [("trace-id", f"{order_id:032x}".encode()), ("channel", b"web")]
    if dice.random() < 0.3:
        headers += [("channel", b""), ("campaign", None)]
    return headers
