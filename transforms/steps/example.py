"""The function of the example of the step `python`."""

from __future__ import annotations

from typing import Any


def with_initials(record: dict[str, Any]) -> dict[str, Any]:
    words = record["name"].split()
    return {**record, "initials": "".join(word[0] for word in words)}
