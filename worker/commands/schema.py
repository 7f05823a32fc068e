"""`reckon schema`: the JSON Schema of a pipeline file, for editors."""

from __future__ import annotations

import typer

from transforms.editor_schema import schema_text


def schema() -> None:
    """Print the JSON Schema of pipeline files, for completion and checks in an editor: reckon schema > schema.json.

    A file names it in its first line: # yaml-language-server: $schema=schema.json
    """
    typer.echo(schema_text(), nl=False)
