"""What Linux's /proc tells of processes that are not ours."""

from __future__ import annotations

from pathlib import Path


def state_of(pid: int | None) -> str:
    """One letter of proc(5): T is a process that a signal has stopped, Z one that has ended and was not reaped; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""
