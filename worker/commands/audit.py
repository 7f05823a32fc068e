"""`reckon audit`: the Spark job spark_batch/audit.py, on this machine."""

from __future__ import annotations

import sys

import typer

CONTEXT = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
"""The job reads its arguments itself, so that they are the same for spark-submit: register with `context_settings=CONTEXT`."""


def audit(context: typer.Context) -> None:
    """A verdict for every source record of a pipeline, which may be running. See reckon audit --help.

    Exit codes: 0 complete, 1 findings, 2 cannot judge, 3 bad arguments.
    """
    try:
        import pyspark  # type: ignore[import-untyped,unused-ignore] # noqa: F401, PLC0415 - an extra that a worker does without

        from spark_batch.audit import main  # noqa: PLC0415
    except ImportError as error:
        typer.echo(f"the audit is not installed ({error}): pip install 'reckon[audit,devkit]'", err=True)
        raise typer.Exit(3) from error
    sys.exit(main(context.args, "reckon audit"))
