"""Functions for the step `python` that let a test keep a worker at its work, while its clients go on in the background."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def passing(record: dict[str, Any]) -> dict[str, Any]:
    """The record as it is; while the file is there that ``GATE`` names, it takes half a second, and a file ``….reached`` tells of it."""
    gate = Path(os.environ.get("GATE", os.devnull + ".none"))
    if gate.exists():
        gate.with_suffix(".reached").touch()
        time.sleep(0.5)
    return record


def held(record: dict[str, Any]) -> dict[str, Any]:
    """The record as it is, once the file is gone that ``GATE`` names; a file ``….reached`` tells of the wait. The budget must allow it."""
    gate = Path(os.environ.get("GATE", os.devnull + ".none"))
    while gate.exists():
        gate.with_suffix(".reached").touch()
        time.sleep(0.05)
    return record


def endless(record: dict[str, Any]) -> dict[str, Any]:
    """The record as it is; one with the field ``endless`` never comes back."""
    while "endless" in record:
        pass
    return record
