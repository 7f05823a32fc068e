"""The words in which the campaign speaks: a fault that took place, and what a judge says of a run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Fault:
    """One fault, told only once it is proven to have taken place. Times are seconds of `time.time()`."""

    kind: str
    """What was done: "worker kill", "broker pause", "leader kill", ..."""
    phase: str
    """Where it hit: "after_offsets", "leader of the source", "at random", ..."""
    target: str
    """Instance of a worker, or number of a node."""
    at: float
    proof: str
    """What was seen that proves it: a process's last word, a leader that moved, a transaction that was open."""
    healed_at: float | None = None
    """When the cause was gone again: the worker restarted, the node in sync."""
    recovery_s: float | None = None
    """From the fault (of a worker: from its restart) until a later commit could be read read_committed; None: nobody saw that."""
    waited_s: float | None = None
    """Without a recovery: for how long one could have been seen."""
    why_not: str = ""
    """Without a recovery: why it was not seen, or that it did not come."""
    over_at: float | None = None
    """When there was output again and the cause was gone, or nobody looked any longer."""


@dataclass(slots=True)
class Stand:
    """A last stable offset below the high watermark that did not move. Times are seconds of `time.time()`."""

    where: str
    """"topic[partition] at offset"."""
    at: float
    lasted_s: float


class NotProvenError(AssertionError):
    """A fault was ordered and cannot be shown to have taken place: the run proves nothing."""


@dataclass(slots=True)
class Opinion:
    """What one judge says of a run; nothing wrong: exactly once, as far as it can see."""

    judge: str
    records: int
    """Output records that it looked at."""
    problems: list[str] = field(default_factory=list)
    verdict: str = ""
    """Of the audit: the name of its exit code."""
    fault_kinds: list[str] = field(default_factory=list)
    """Of the audit: kinds of its findings that are faults, sorted; what could not be judged is none."""
