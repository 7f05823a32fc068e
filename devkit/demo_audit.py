"""The demo's last act: the audit of what the workers did, as a Spark job in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from devkit.errors import DevkitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LIMIT_S = 300.0
"""Usual are twenty seconds, twice that where Spark's jars are downloaded first, and more where others use the machine."""


class AuditFailedError(DevkitError):
    """The audit came to no verdict."""


@dataclass(frozen=True, slots=True)
class AuditRun:
    """A running audit; ``verdict`` waits for it."""

    process: subprocess.Popen[str]
    out: Path

    def verdict(self) -> tuple[int, dict[str, Any]]:
        """(exit code, its line for machines). AuditFailedError when there is none."""
        try:
            line, errors = self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise AuditFailedError(f"the audit took longer than {LIMIT_S:g} s") from None
        if not line.strip():
            raise AuditFailedError(
                f"the audit ended with exit code {self.process.returncode}: {errors.strip()[-2000:]}"
            )
        verdict: dict[str, Any] = json.loads(line.strip().splitlines()[-1])
        return self.process.returncode, verdict

    @property
    def page(self) -> Path:
        return self.out / "audit.html"


@contextlib.contextmanager
def audit(pipeline: Path, bootstrap: str, out: Path) -> Iterator[AuditRun]:
    """Start the audit beside whatever else is to be done; it is ended with the block."""
    command = [sys.executable, "-m", "spark_batch.audit", "--pipeline", str(pipeline), "--out", str(out)]
    env = {**os.environ, "RECKON_BOOTSTRAP_SERVERS": bootstrap}
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield AuditRun(process, out)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def in_words(verdict: Mapping[str, Any]) -> str:
    """The line for machines as one for people."""
    findings = ", ".join(f"{count:,} {kind}" for kind, count in verdict["findings"].items())
    records = ", ".join(f"{count:,} {what}" for what, count in verdict["records"].items() if count)
    return f"{verdict['verdict']}: {records}" + (f"; findings: {findings}" if findings else "")
