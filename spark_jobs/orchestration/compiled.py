"""Reads the compiled manifest, while Airflow parses DAG files and in tasks."""

from __future__ import annotations

from pydantic import ValidationError

from spark_jobs.graph.manifest import Manifest
from spark_jobs.orchestration.errors import ManifestMissingError, ManifestUnreadableError
from spark_jobs.settings import Settings
from spark_jobs.storage.in_force import follow_in_force


def compiled_manifest(settings: Settings) -> Manifest:
    """The manifest of a project: of the deployment in force, or as it was compiled.

    With a shared control database it follows an apply in another pod: the DAGs that are shown and
    the tasks that run them must be those of one deployment.

    Raises:
        ManifestMissingError: the project was not compiled.
        ManifestUnreadableError: another version of the program wrote the file, or it is truncated.
    """
    path = settings.manifest_file
    try:
        found = Manifest.read(path)
    except FileNotFoundError:
        raise ManifestMissingError(path) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        problem = f"{place}: {first['msg']}." if place else f"{first['msg']}."
        raise ManifestUnreadableError(path, problem) from None
    return follow_in_force(settings, found.deployment) or found
