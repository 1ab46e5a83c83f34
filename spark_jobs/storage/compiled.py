"""Compiling a project as its settings say, with the columns of foreign Delta tables."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.compile import compile_project, read_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings
from spark_jobs.storage import log
from spark_jobs.storage.rights import make_state

logger = logging.getLogger(__name__)


def compile_settings(settings: Settings) -> Manifest:
    """Compile the project and write its manifest.

    Raises:
        ProblemsError: all problems of all declarations; the old manifest stays.
        StateDirectoryError: the manifest has no place.
    """
    manifest = compiled(settings)
    make_state(settings.state)
    manifest.write(settings.manifest_file)
    return manifest


def compiled(settings: Settings) -> Manifest:
    """Compile the project as its settings say; nothing is written.

    Raises:
        ProblemsError: all problems of all declarations.
    """
    return compile_project(
        settings.project_dir,
        every_override=settings.gold.every_override or None,
        scheduled_at_first=settings.gold.scheduled_at_first,
        delta_schema=delta_schema,
        limits=settings.graph,
        variables=settings.variables,
    )


def deployment_of(path: Path) -> str | None:
    """The deployment that put a manifest file in force; None where it was only compiled."""
    try:
        return Manifest.read(path).deployment
    except (OSError, ValidationError):
        return None


def inspect_settings(settings: Settings) -> tuple[Manifest, list[LakehouseError]]:
    """The manifest as far as it can be told, and all problems; nothing is written."""
    return read_project(
        settings.project_dir,
        every_override=settings.gold.every_override or None,
        scheduled_at_first=settings.gold.scheduled_at_first,
        delta_schema=delta_schema,
        limits=settings.graph,
        variables=settings.variables,
    )


def current_manifest(path: Path, first: Manifest) -> Callable[[], Manifest]:
    """Tells the manifest as it is now: the same object until the project is recompiled.

    Args:
        path: the manifest file.
        first: what holds while there is no file.
    """
    known, mark = first, None

    def current() -> Manifest:
        nonlocal known, mark
        try:
            found = path.stat()
            # A manifest is put in place whole, as another file.
            if mark != (found.st_ino, found.st_mtime_ns):
                mark = (found.st_ino, found.st_mtime_ns)
                known = Manifest.read(path)
        except (OSError, ValidationError) as error:
            if not isinstance(error, FileNotFoundError):
                logger.warning("manifest not read, the one before stays error=%s", error)
        return known

    return current


def delta_schema(location: str) -> dict[str, str]:
    """The columns of the Delta table at a location, from its log.

    Raises:
        TableMissingError: there is no table.
    """
    return {column.name: column.type for column in log.schema(location)}
