"""`reckon compile`: the Python that a pipeline becomes."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads annotations at run time
from typing import Annotated

import typer

from worker.commands.common import loaded


def compile_(pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")]) -> None:
    """Print the Python function that a pipeline is compiled to.

    Exit codes: 0 printed, 2 the file cannot be used.
    """
    typer.echo(loaded(pipeline).transform.source, nl=False)
