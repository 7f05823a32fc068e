"""The arguments of an audit."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from spark_batch.errors import BadArgumentsError
from spark_batch.model import Depth, ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transforms.spec import Pipeline

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})


@dataclass(frozen=True, slots=True)
class Arguments:
    pipeline: Path
    depth: Depth
    state: Path | None
    from_beginning: bool
    since_ms: int | None
    """Milliseconds since the epoch."""
    out: Path | None
    """None: `audit-<pipeline>` in the working folder."""
    wait_s: float
    json: bool


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the process with argparse's own code."""

    def error(self, message: str) -> NoReturn:
        raise BadArgumentsError(f"{message}\n{self.format_usage().strip()}")


def parse(argv: Sequence[str], program: str = "audit.py") -> Arguments:
    """Arguments of a command line; BadArgumentsError where they cannot be used. `--help` ends the process."""
    codes = ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode)
    parser = _Parser(
        prog=program,
        description="A verdict for every source record of a pipeline, which may be running.",
        epilog=f"Exit codes: {codes}. One line of JSON on stdout.",
    )
    parser.add_argument("--pipeline", type=Path, required=True, metavar="FILE", help="the pipeline file (YAML)")
    parser.add_argument(
        "--depth",
        type=Depth,
        choices=list(Depth),
        default=Depth.RECORDS,
        help="offsets: receipts against the group's offsets; records (default): outputs against receipts; "
        "content: the transform runs again and outputs are compared byte for byte",
    )
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="remember the audited cut here and go on from the last one"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--from-beginning", action="store_true", help="audit everything, whatever the state says")
    where.add_argument(
        "--since",
        type=_time,
        metavar="TIME",
        help="source records at or after this time (ISO 8601, UTC unless it says else)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the report (default: audit-<pipeline>)")
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how long to wait for open transactions (default: 60)",
    )
    parser.add_argument("--json", action="store_true", help="the line on stdout is the whole report")
    given = parser.parse_args(argv)
    if given.since is not None and given.state is not None:
        # A state that began there would pass over what lies before it for good; one that did not would be no use of --state.
        parser.error("argument --since: not allowed with argument --state, which goes on from the last audit's cut")
    return Arguments(
        given.pipeline, given.depth, given.state, given.from_beginning, given.since, given.out, given.wait, given.json
    )


def _time(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time, expected one like 2026-01-31T12:00:00Z") from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


def group_of(spec: Pipeline, env: Mapping[str, str] = os.environ) -> str:
    """The group whose offsets count, as worker/settings.py resolves it."""
    return env.get("RECKON_GROUP_ID") or spec.group


def lineage_of(spec: Pipeline, env: Mapping[str, str] = os.environ) -> bool:
    """Whether the worker stamps its outputs, as worker/settings.py resolves it."""
    given = env.get("RECKON_LINEAGE")
    return spec.lineage if given is None else given.lower() in _TRUE
