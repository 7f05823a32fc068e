"""`reckon docs`: the documentation of the steps."""

from __future__ import annotations

import typer

from transforms.steps.docs import render


def docs() -> None:
    """Print the documentation of all steps, as Markdown: what docs/steps.md holds."""
    typer.echo(render(), nl=False)
