"""``tidemark seed``: load the files below ``seeds/`` into their tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from spark_jobs.errors import LakehouseError
from spark_jobs.settings import load_settings


def complete_seeds(context: typer.Context, incomplete: str) -> list[str]:
    """Sources with a file and this prefix, from the last manifest; never raises."""
    from spark_jobs.graph.manifest import Manifest

    project = context.find_root().params.get("project")
    try:
        manifest = Manifest.read(load_settings(project).manifest_file)
    except (LakehouseError, OSError, ValueError):
        return []
    found = sorted(one.name for one in manifest.sources.values() if one.path is not None)
    return [one for one in found if one.startswith(incomplete)]


def seed(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(help="A source with a file. Default: all.", autocompletion=complete_seeds),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Load the files in seeds/; only rows that differ are written."""
    from spark_jobs.bronze.seed_table import load_seed
    from spark_jobs.silver.errors import SourceUnknownError
    from spark_jobs.storage.compiled import compiled

    settings = load_settings(context.obj)
    sources = compiled(settings).sources.values()
    seeds = {one.name: one for one in sources if one.path is not None}
    chosen = None if name is None else name.removeprefix("bronze.")
    if chosen is not None and chosen not in seeds:
        raise SourceUnknownError(chosen, sorted(seeds), kind="a file")
    loads = [load_seed(settings, one) for key, one in seeds.items() if chosen in (None, key)]
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in loads], indent=2))
        return
    for one in loads:
        typer.echo(f"bronze.{one.source}: {one.message}")
    if not loads:
        typer.echo("No source has a file.")
