"""What lint says, and about what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """`str()` gives `file:line:column: severity: message [rule]`.

    An error is a file that cannot run, or that cannot do what it says: every record is lost to a step, or a route never
    taken. A warning is something without effect.
    """

    path: str
    line: int
    column: int
    severity: Severity
    rule: str
    """Short and stable: `unknown-field`, `never-matches`, ..."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.severity}: {self.message} [{self.rule}]"
