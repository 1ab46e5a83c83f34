"""Compiles the project of the settings, with the schemas of its external Delta tables."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from spark_jobs.definitions.files import READ_FOLDERS
from spark_jobs.errors import LakehouseError, ProblemsError, SettingError
from spark_jobs.graph.atomic import replace_file
from spark_jobs.graph.compile import read_project
from spark_jobs.graph.compile_cache import CompileCache
from spark_jobs.graph.manifest import Manifest
from spark_jobs.graph.seeds import FOLDER
from spark_jobs.settings import Settings
from spark_jobs.storage import log
from spark_jobs.storage.in_force import put_manifest
from spark_jobs.storage.lake import plain_location, remote_location
from spark_jobs.storage.rights import make_state

# The file with the compiled views, in the state directory.
CACHE = "compile-cache.json"
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")
# Folders of declarations, and the usual one of Avro schemas.
DECLARATIONS = ("sources", "sql", "expectations")
SCHEMAS = "schemas"


def compile_settings(settings: Settings) -> Manifest:
    """Compile the project and write its manifest.

    Raises:
        ProblemsError: all problems of all declarations; the old manifest is kept.
        StateDirectoryError: the state directory cannot be written.
    """
    manifest = compiled(settings)
    make_state(settings.state)
    put_manifest(settings, manifest)
    return manifest


def compiled(settings: Settings) -> Manifest:
    """Compile the project; does not write its manifest.

    Raises:
        ProblemsError: all problems of all declarations.
    """
    manifest, problems = inspect_settings(settings)
    if problems:
        raise ProblemsError(problems)
    return manifest


def inspect_settings(
    settings: Settings, *, keep: bool = True
) -> tuple[Manifest, list[LakehouseError]]:
    """The manifest as far as it compiles, and all problems.

    Gold views that are as in the last run are not compiled again.

    Args:
        settings: of the project.
        keep: whether to keep the compiled views for the next run, in the state directory.
    """
    cache = _cache(settings)
    # Before the files are read: a file that is saved meanwhile has another digest.
    digest = inputs_digest(settings)
    manifest, problems = read_project(
        settings.project_dir,
        every_override=settings.gold.every_override or None,
        scheduled_at_first=settings.gold.scheduled_at_first,
        delta_schema=delta_schema,
        limits=settings.graph,
        variables=settings.variables,
        cache=cache,
    )
    # Another account may only read the state.
    with suppress(OSError):
        if cache.changed and keep and settings.state.is_dir():
            replace_file(settings.state / CACHE, cache.text())
    found = manifest.model_copy(update={"compiled_from": digest})
    return found, [*_lake_problems(settings), *problems]


def _lake_problems(settings: Settings) -> Iterator[SettingError]:
    """A lake whose path delta-rs takes for another one: it decodes percent signs, unlike Spark."""
    found = _ENCODED.search(plain_location(settings.lake))
    if found is not None and not remote_location(settings.lake):
        key = "lake_root" if settings.lake_root else "state_dir"
        problem = f'the lake {settings.lake} has "{found[0]}" in its path, which delta-rs decodes'
        yield SettingError(key, problem)


def inputs_digest(settings: Settings) -> str:
    """A digest of what the compiler reads: names, sizes and times of files, and settings."""
    project = settings.project_dir
    gold = settings.gold
    content = [
        sorted({_stamp(project, path) for path in _compiled_files(project)}),
        settings.variables,
        [gold.every_override, sorted(gold.scheduled_at_first)],
        settings.graph.model_dump(),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _compiled_files(project: Path) -> Iterator[Path]:
    for folder in (*DECLARATIONS, FOLDER, SCHEMAS):
        yield from (project / folder).rglob("*")
    # A folder may be a link, which is not followed above.
    for folder in READ_FOLDERS:
        yield from (project / folder).glob("*")


def _stamp(project: Path, path: Path) -> tuple[str, int, int]:
    name = os.fsencode(path.relative_to(project)).hex()
    try:
        found = path.stat()
    except OSError:
        # A broken link, which compiling reports.
        return name, 0, 0
    return name, found.st_size, found.st_mtime_ns


def _cache(settings: Settings) -> CompileCache:
    try:
        return CompileCache.parse((settings.state / CACHE).read_bytes())
    except OSError:
        return CompileCache()


def delta_schema(location: str) -> dict[str, str]:
    """Column types of the Delta table at a location, by name, from its log.

    Raises:
        TableMissingError: the table does not exist.
    """
    return {column.name: column.type for column in log.schema(location)}
