"""`reckon lint`: everything that is wrong, or looks wrong, with pipeline files."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads annotations at run time
from typing import Annotated

import typer

from transforms.lint import Finding, lint_files
from worker.commands.client_settings import client_settings
from worker.commands.common import FINDINGS, UNUSABLE, yaml_files


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def lint(
    files: Annotated[list[Path], typer.Argument(help="Pipeline files, files of tests, or directories with them.")],
    *,
    form: Annotated[
        Format, typer.Option("--format", help="github: annotations of a pull request's lines.")
    ] = Format.TEXT,
) -> None:
    """Say everything that is wrong, or looks wrong, with pipeline files, as file:line:column.

    Exit codes: 0 no errors (there may be warnings), 1 errors, 2 a file cannot be read.
    """
    paths = yaml_files(files)
    findings = sorted({*lint_files(paths), *(finding for path in paths for finding in client_settings(path))})
    if form is Format.JSON:
        typer.echo(json.dumps([_plain(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            typer.echo(_github(finding) if form is Format.GITHUB else str(finding))
    errors = sum(finding.severity == "error" for finding in findings)
    counts = [(len(paths), "file"), (errors, "error"), (len(findings) - errors, "warning")]
    told = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts]
    typer.echo(f"{told[0]}: {told[1]}, {told[2]}", err=True)
    if any(finding.rule == "unreadable" for finding in findings):
        raise typer.Exit(UNUSABLE)
    raise typer.Exit(FINDINGS if errors else 0)


def _plain(finding: Finding) -> dict[str, str | int]:
    return {
        "file": finding.path,
        "line": finding.line,
        "column": finding.column,
        "severity": finding.severity,
        "rule": finding.rule,
        "message": finding.message,
    }


def _github(finding: Finding) -> str:
    """A workflow command. Escapes: actions/toolkit, packages/core/src/command.ts."""
    message = finding.message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    file = finding.path.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    file = file.replace(":", "%3A").replace(",", "%2C")
    place = f"file={file},line={finding.line},col={finding.column},title=reckon {finding.rule}"
    return f"::{finding.severity} {place}::{message}"
