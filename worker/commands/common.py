"""What the commands share: which files are meant, and how a command ends that cannot start."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import typer

from transforms.loading import LoadedPipeline, PipelineError, load_pipeline
from transforms.test_files import is_test_file, pipeline_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FINDINGS = 1
UNUSABLE = 2


def stop(message: str) -> NoReturn:
    """Ends the command: its arguments or files cannot be used."""
    typer.echo(message, err=True)
    raise typer.Exit(UNUSABLE)


def yaml_files(paths: Iterable[Path]) -> list[Path]:
    """Files as they are, and of directories all `*.yaml` and `*.yml` under them; each once, in a stable order."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml") and p.is_file())
            if not inside:
                stop(f"{path}: no *.yaml under this directory, expected pipeline files")
            found |= dict.fromkeys(inside)
        elif path.exists():
            found[path] = None
        else:
            stop(f"{path}: no such file, expected a pipeline file or a directory of them")
    return list(found)


def pipelines(paths: Iterable[Path]) -> list[Path]:
    """The pipelines among the files; a file of tests stands for the pipeline beside it, and for itself where there is none."""
    return list(dict.fromkeys(map(_pipeline, paths)))


def _pipeline(path: Path) -> Path:
    try:
        return pipeline_of(path) if is_test_file(path) else path
    except PipelineError:
        return path


def loaded(path: Path) -> LoadedPipeline:
    """The pipeline, or the end of the command with all of its problems."""
    try:
        return load_pipeline(path)
    except PipelineError as error:
        stop(str(error))
