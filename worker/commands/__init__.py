"""The commands that need no broker: lint, test, try, compile, schema, docs. None of them imports Kafka's client.

Exit codes, as those of `reckon run` (worker.errors.ExitCode) where they mean the same: 0 all is well, 1 findings or failed
tests, 2 arguments or files that cannot be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.commands.compile import compile_
from worker.commands.docs import docs
from worker.commands.lint import lint
from worker.commands.schema import schema
from worker.commands.test import pipeline_tests
from worker.commands.try_ import try_

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    app.command()(lint)
    app.command("test")(pipeline_tests)
    app.command("try")(try_)
    app.command("compile")(compile_)
    app.command()(schema)
    app.command()(docs)
