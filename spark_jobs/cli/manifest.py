"""``tidemark compile``: write the manifest that everything else reads."""

from __future__ import annotations

import typer

from spark_jobs.settings import load_settings


def compile_manifest(context: typer.Context) -> None:
    """Compile the declarations to the manifest, and print where it lies."""
    from spark_jobs.storage.compiled import compile_settings

    settings = load_settings(context.obj)
    compile_settings(settings)
    typer.echo(settings.manifest_file)
