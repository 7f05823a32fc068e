"""Functions for the step `python` that let a test keep a worker at its work, while its clients go on in the background."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def passing(record: dict[str, Any]) -> dict[str, Any]:
    """The record as it is; while the file is there that ``GATE`` names, it takes half a second."""
    if _is_closed():
        time.sleep(0.5)
    return record


def held(record: dict[str, Any]) -> dict[str, Any]:
    """The record as it is, once the file is gone that ``GATE`` names. The budget must allow the wait."""
    while _is_closed():
        time.sleep(0.05)
    return record


def _is_closed() -> bool:
    """Whether the file is there; if so, a file ``….reached`` tells that a record came to it."""
    gate = Path(os.environ.get("GATE", os.devnull + ".none"))
    if closed := gate.exists():
        gate.with_suffix(".reached").touch()
    return closed


def endless(record: dict[str, Any]) -> dict[str, Any]:
    """The record as it is; one with the field ``endless`` never comes back."""
    while "endless" in record:
        pass
    return record
