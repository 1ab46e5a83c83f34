"""``tidemark compile``: write the manifest that everything else reads."""

from __future__ import annotations

import typer

from spark_jobs.settings import load_settings


def compile_manifest(context: typer.Context) -> None:
    """Compile the declarations to the manifest, and print its path."""
    from spark_jobs.storage.compiled import compile_settings, compiled
    from spark_jobs.storage.in_force import deployment_of

    settings = load_settings(context.obj)
    running = deployment_of(settings.manifest_file)
    if running is not None:
        compiled(settings)
        typer.echo(f"The project compiles; {running} runs. Next: tidemark plan", err=True)
    else:
        compile_settings(settings)
    typer.echo(settings.manifest_file)
