"""Compiling a project as its settings say, with the columns of foreign Delta tables."""

from __future__ import annotations

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.compile import compile_project, read_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings
from spark_jobs.storage import log


def compile_settings(settings: Settings) -> Manifest:
    """Compile the project and write its manifest.

    Raises:
        ProblemsError: all problems of all declarations; the old manifest stays.
    """
    manifest = compile_project(
        settings.project_dir,
        every_override=settings.gold.every_override or None,
        scheduled_at_first=settings.gold.scheduled_at_first,
        delta_schema=delta_schema,
    )
    manifest.write(settings.manifest_file)
    return manifest


def inspect_settings(settings: Settings) -> tuple[Manifest, list[LakehouseError]]:
    """The manifest as far as it can be told, and all problems; nothing is written."""
    return read_project(
        settings.project_dir,
        every_override=settings.gold.every_override or None,
        scheduled_at_first=settings.gold.scheduled_at_first,
        delta_schema=delta_schema,
    )


def delta_schema(location: str) -> dict[str, str]:
    """The columns of the Delta table at a location, from its log.

    Raises:
        TableMissingError: there is no table.
    """
    return {column.name: column.type for column in log.schema(location)}
