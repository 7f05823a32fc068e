"""How tests wait: for a condition, with one patience for all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0
"""How long a condition is waited for that has to come: a bound for what went wrong, not a claim about speed."""


def await_true(condition: Callable[[], object], what: str, timeout_s: float = PATIENCE_S) -> None:
    """Wait for a condition; AssertionError with ``what`` when it does not come."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.05)
