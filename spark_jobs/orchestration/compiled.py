"""Reads the compiled manifest while Airflow parses DAG files."""

from __future__ import annotations

from pydantic import ValidationError

from spark_jobs.graph.manifest import Manifest
from spark_jobs.orchestration.errors import ManifestMissingError, ManifestUnreadableError
from spark_jobs.settings import Settings


def compiled_manifest(settings: Settings) -> Manifest:
    """The manifest of a project.

    Raises:
        ManifestMissingError: the project was not compiled.
        ManifestUnreadableError: another version of the program wrote the file, or it is truncated.
    """
    path = settings.manifest_file
    try:
        return Manifest.read(path)
    except FileNotFoundError:
        raise ManifestMissingError(path) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        problem = f"{place}: {first['msg']}." if place else f"{first['msg']}."
        raise ManifestUnreadableError(path, problem) from None
