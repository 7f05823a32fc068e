"""`python -m devkit`: the same as `reckon broker`."""

import typer

from devkit.cli import broker

typer.run(broker)
