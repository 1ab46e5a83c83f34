"""``tidemark docs``: the documentation of the project and of its tables as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.settings import load_settings

app = typer.Typer(no_args_is_help=True, help="The documentation as a static site.")


@app.callback()
def docs() -> None:
    """The documentation as a static site."""


@app.command()
def build(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(help="Directory of the site.", file_okay=False)
    ] = Path("site"),
    rows: Annotated[
        bool,
        typer.Option("--rows/--no-rows", help="Show a few rows of each published gold view."),
    ] = True,
) -> None:
    """Write the pages of docs/ and a page for each table; needs no Spark and no network."""
    from spark_jobs.serving.dictionary.site import build_site
    from spark_jobs.serving.project import current_manifest
    from spark_jobs.storage.lake import Lake

    settings = load_settings(context.obj)
    target = directory.resolve()
    count = build_site(
        current_manifest(settings),
        target,
        project_dir=settings.project_dir,
        lake=Lake(settings.lake) if rows else None,
    )
    typer.echo(f"{target}/index.html: {count} pages of tables")
    typer.echo(f"Search needs a server: python3 -m http.server -b 127.0.0.1 -d {target}")
