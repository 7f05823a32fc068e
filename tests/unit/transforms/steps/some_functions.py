"""Functions for the tests of the step `python`."""

from __future__ import annotations

import sys
from typing import Any

NOT_A_FUNCTION = 5


def changes_its_argument(record: dict[str, Any]) -> dict[str, Any]:
    record["inner"]["n"] += 1
    return record


def none(_record: Any) -> None:
    """Returns nothing."""


def raises(record: dict[str, Any]) -> Any:
    raise ValueError(record["secret"])


def number(record: dict[str, Any]) -> Any:
    return {
        "x": {"nan": float("nan"), "big": 2**64, "max": 2**64 - 1, "set": {1}, "key": {1: 2}, "deep": [[{1}]]}[
            record["x"]
        ]
    }


def endless(record: dict[str, Any]) -> Any:
    return endless(record)


def exits(_record: Any) -> Any:
    sys.exit(3)


def is_interrupted(_record: Any) -> Any:
    raise KeyboardInterrupt
