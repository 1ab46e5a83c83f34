"""``tidemark graph``: the dependencies of tables, from the sources to the gold views."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from spark_jobs.errors import ProblemsError
from spark_jobs.settings import load_settings


def graph(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print nodes and edges.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid diagram.")] = False,
) -> None:
    """Show the dependencies of tables, by layer and tier."""
    from spark_jobs.serving.report.table_graph import as_dict, as_mermaid, as_tree
    from spark_jobs.storage.compiled import inspect_settings

    if as_json and mermaid:
        raise typer.BadParameter("choose --json or --mermaid")
    manifest, problems = inspect_settings(load_settings(context.obj))
    if problems:
        raise ProblemsError(problems)
    if as_json:
        typer.echo(json.dumps(as_dict(manifest), indent=2))
    elif mermaid:
        typer.echo(as_mermaid(manifest))
    else:
        Console().print(as_tree(manifest))
