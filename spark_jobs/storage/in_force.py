"""The manifest file: which deployment it is of, and how it follows the one in force.

An apply writes the file of its own state directory. A pod, or another machine, has its own one; the
control database that they share knows what was applied. DAG files import this module: it must not
import the SQL parser.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import DAG_FILES, Settings
from spark_jobs.state.deployments import Deployment
from spark_jobs.state.errors import ControlUnreachableError
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.rights import make_state

logger = logging.getLogger(__name__)


def put_manifest(settings: Settings, manifest: Manifest) -> None:
    """Write the manifest, and let Airflow read its DAG files now: it does when a file is newer.

    Where the files cannot be touched, Airflow reads them after ``airflow.parse_seconds``. An equal
    manifest needs no reading.
    """
    path = settings.manifest_file
    before = path.read_bytes() if path.is_file() else b""
    manifest.write(path)
    if path.read_bytes() == before:
        return
    with suppress(OSError):
        for file in DAG_FILES.glob("*.py"):
            file.touch()


def copy_in_force(settings: Settings, manifest: Manifest) -> None:
    """Write the manifest of the deployment in force here, if the file is not its copy yet.

    Args:
        settings: whose file is written.
        manifest: of the deployment in force, as the control database has it.
    """
    if deployment_of(settings.manifest_file) != manifest.deployment:
        make_state(settings.state)
        put_manifest(settings, manifest)


def follow_in_force(settings: Settings, known: str | None) -> Manifest | None:
    """Copy the deployment in force from a shared control database, unless it is known.

    A control database that does not answer changes nothing: the file stays as it is.

    Args:
        settings: whose file is written.
        known: the deployment that the file is of; None: it was only compiled.

    Returns:
        its manifest; None if the file is still right, or another release wrote the newer one.
    """
    if not settings.control_db:
        return None
    try:
        with ControlStore.open(settings.control_url) as store:
            if store.id_in_force() in {None, known}:
                return None
            found = store.deployment_in_force()
        manifest = manifest_of(found)
        if manifest is not None:
            copy_in_force(settings, manifest)
    except (LakehouseError, OSError) as error:
        logger.warning("deployment in force not followed error=%s", error)
        return None
    return manifest


def manifest_in_force(settings: Settings) -> Manifest:
    """What is in force by the control database; else what the manifest file has.

    An apply writes the file after the database, and only on its own machine.

    Raises:
        FileNotFoundError: nothing is in force that can be read, and nothing was compiled.
    """
    with suppress(ControlUnreachableError), ControlStore.open(settings.control_url) as store:
        applied = manifest_of(store.deployment_in_force())
        if applied is not None:
            return applied
    return Manifest.read(settings.manifest_file)


def manifest_of(found: Deployment | None) -> Manifest | None:
    """The manifest of a deployment; None if there is none, or another release wrote it."""
    return Manifest.stored(found.manifest) if found else None


def deployment_of(path: Path) -> str | None:
    """The id of the deployment that wrote a manifest file; None if it was only compiled."""
    try:
        return Manifest.read(path).deployment
    except (OSError, ValidationError):
        return None


def current_manifest(path: Path, first: Manifest) -> Callable[[], Manifest]:
    """A function that returns the current manifest: the same object until the file changes.

    Args:
        path: the manifest file.
        first: used while there is no file.
    """
    known, mark = first, None

    def current() -> Manifest:
        nonlocal known, mark
        try:
            found = path.stat()
            # A manifest is replaced as a whole file, so its inode changes.
            if mark != (found.st_ino, found.st_mtime_ns):
                mark = (found.st_ino, found.st_mtime_ns)
                known = Manifest.read(path)
        except (OSError, ValidationError) as error:
            if not isinstance(error, FileNotFoundError):
                logger.warning("manifest not read, the one before stays error=%s", error)
        return known

    return current
