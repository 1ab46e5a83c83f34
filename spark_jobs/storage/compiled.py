"""Compiles the project of the settings, with the schemas of its external Delta tables."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
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
# Folders of declarations.
DECLARATIONS = ("sources", "sql", "expectations")
# Nanoseconds by which a file's time may be behind the clock, with room for a network file system.
CLOCK_TICK = 1_000_000_000
# Name, size and time of change of a file.
Stamp = tuple[str, int, int]
# Names and types of columns, by the location of their table.
Tables = Mapping[str, list[tuple[str, str]]]


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
    before, since = stamps(settings.project_dir), time.time_ns() - CLOCK_TICK
    asked: dict[str, dict[str, str]] = {}

    def columns_of(location: str) -> dict[str, str]:
        asked[location] = delta_schema(location)
        return asked[location]

    manifest, problems = read_project(
        settings.project_dir,
        every_override=settings.gold.every_override or None,
        scheduled_at_first=settings.gold.scheduled_at_first,
        delta_schema=columns_of,
        limits=settings.graph,
        variables=settings.variables,
        cache=cache,
    )
    # Another account may only read the state.
    with suppress(OSError):
        if cache.changed and keep and settings.state.is_dir():
            replace_file(settings.state / CACHE, cache.text())
    # Only the sources say which schemas they have, so these files are looked at after reading.
    schemas = stamps_of(settings.project_dir, manifest.schema_files)
    known = all(saved < since for _, _, saved in schemas)
    tables = external_columns(manifest, asked)
    digest = digest_of(settings, {*before, *schemas}, tables) if known else None
    found = manifest.model_copy(update={"compiled_from": digest})
    return found, [*_lake_problems(settings), *problems]


def _lake_problems(settings: Settings) -> Iterator[SettingError]:
    """A lake whose path delta-rs takes for another one: it decodes percent signs, unlike Spark."""
    found = _ENCODED.search(plain_location(settings.lake))
    if found is not None and not remote_location(settings.lake):
        key = "lake_root" if settings.lake_root else "state_dir"
        problem = f'the lake {settings.lake} has "{found[0]}" in its path, which delta-rs decodes'
        yield SettingError(key, problem)


def inputs_digest(settings: Settings, manifest: Manifest) -> str:
    """A digest of what the compiler reads: names, sizes and times of files, tables, settings.

    Args:
        settings: of the project.
        manifest: whose ``compiled_from`` it is compared with.
    """
    project = settings.project_dir
    files = {*stamps(project), *stamps_of(project, manifest.schema_files)}
    return digest_of(settings, files, external_columns(manifest, {}))


def external_columns(manifest: Manifest, known: Mapping[str, Mapping[str, str]]) -> Tables:
    """The columns of the external Delta tables; as compiled if a table cannot be read now.

    Args:
        manifest: whose sources they are.
        known: columns that were just read, by location.
    """
    found = {}
    for source in manifest.sources.values():
        if source.location is None:
            continue
        columns: Mapping[str, str] = {one.name: one.type for one in source.columns}
        with suppress(LakehouseError, OSError, ValueError, LookupError):
            columns = known.get(source.location) or delta_schema(source.location)
        found[source.location] = list(columns.items())
    return found


def digest_of(settings: Settings, files: Iterable[Stamp], tables: Tables) -> str:
    """The digest of some files, columns of tables, and the settings."""
    gold = settings.gold
    content = [
        sorted(files),
        sorted(tables.items()),
        settings.variables,
        [gold.every_override, sorted(gold.scheduled_at_first)],
        settings.graph.model_dump(),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def stamps(project: Path) -> set[Stamp]:
    """The files of the folders that the compiler reads."""
    paths = {path for folder in (*DECLARATIONS, FOLDER) for path in (project / folder).rglob("*")}
    # A folder may be a link, which is not followed above.
    paths |= {path for folder in READ_FOLDERS for path in (project / folder).glob("*")}
    return stamps_of(project, (path.relative_to(project) for path in paths))


def stamps_of(project: Path, files: Iterable[str | Path]) -> set[Stamp]:
    """Some files, given by their names in the project."""
    return {_stamp(project, file) for file in files}


def _stamp(project: Path, file: str | Path) -> Stamp:
    name = os.fsencode(file).hex()
    try:
        found = (project / file).stat()
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
