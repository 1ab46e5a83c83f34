"""``tidemark schema``: JSON Schemas of the declaration files, for editors and checks."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from spark_jobs.definitions.schemas import SchemaKind, json_schema, write_schemas
from spark_jobs.settings import load_settings


def schema(
    context: typer.Context,
    kind: Annotated[SchemaKind | None, typer.Argument(help="Print this schema.")] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write all schemas to .vscode/ of the project.")
    ] = False,
) -> None:
    """Print the JSON Schema of a kind of file; with --write, set up VS Code with all of them."""
    if write == (kind is not None):
        raise typer.BadParameter("name a kind of file to print, or pass --write")
    if kind is not None:
        typer.echo(json.dumps(json_schema(kind), indent=2))
        return
    for path in write_schemas(load_settings(context.obj).project_dir):
        typer.echo(f"wrote {path}")
