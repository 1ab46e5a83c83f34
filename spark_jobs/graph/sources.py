"""Compiles sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from spark_jobs.definitions.errors import UnexpectedValueError
from spark_jobs.definitions.project import SourceDefinition
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.avro import compile_schemas
from spark_jobs.graph.errors import DeltaSchemaError
from spark_jobs.graph.manifest import Column, SourceEntry
from spark_jobs.graph.seeds import check_seed

# Returns Spark SQL types by column for the location of a Delta table.
DeltaSchema = Callable[[str], Mapping[str, str]]
_ENCODED: Final = re.compile("%[0-9A-Fa-f]{2}")


def compile_source(
    definition: SourceDefinition,
    project_dir: Path,
    *,
    delta_schema: DeltaSchema | None,
    problems: list[LakehouseError],
) -> SourceEntry:
    """The entry of a source; undeclared columns of a Delta table are read from the table."""
    declared = definition.declared
    columns = tuple(Column(name=name, **one.model_dump()) for name, one in declared.columns.items())
    location = _absolute(declared.location, project_dir) if declared.location else None
    external = location if declared.format is SourceFormat.DELTA else None
    if external and _findable(definition, external, problems) and not columns:
        columns = _asked(definition, external, delta_schema, problems)
    digest = None
    if declared.format.of_file:
        digest = check_seed(definition, project_dir, problems)
    return SourceEntry(
        name=definition.name,
        description=declared.description,
        owner=declared.owner,
        tags=declared.tags,
        format=declared.format,
        topic=declared.topic,
        location=location,
        path=declared.path,
        digest=digest,
        most_rejected=declared.most_rejected,
        columns=columns,
        schemas=tuple(compile_schemas(definition, project_dir, problems)),
        event_id=declared.event_id,
        event_time=declared.event_time,
        watermark_seconds=declared.watermark.total_seconds() if declared.watermark else None,
        keys=declared.keys,
        table=declared.table,
        on_drift=declared.on_drift,
        file=definition.file,
    )


def _asked(
    definition: SourceDefinition,
    location: str,
    delta_schema: DeltaSchema | None,
    problems: list[LakehouseError],
) -> tuple[Column, ...]:
    problem = "the table's own columns cannot be read here"
    if delta_schema is not None:
        try:
            return tuple(
                Column(name=name, type=kind) for name, kind in delta_schema(location).items()
            )
        except LakehouseError as error:
            problem = error.primary
        except (OSError, ValueError, LookupError) as error:
            problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    problems.append(
        DeltaSchemaError(
            f'source "{definition.name}"',
            location,
            problem,
            location=definition.places.value_of("location"),
        )
    )
    return ()


def _findable(definition: SourceDefinition, location: str, problems: list[LakehouseError]) -> bool:
    """Whether delta-rs looks for a table where it is: it decodes a path, unlike Spark."""
    path = unquote(urlsplit(location).path) if location.startswith("file:") else location
    found = None if "://" in path else _ENCODED.search(path)
    if found is None:
        return True
    problems.append(
        UnexpectedValueError(
            f'source "{definition.name}"',
            "location",
            f"{found[0]!r} in the path {path} is read as {unquote(found[0])!r} by delta-rs",
            "Write a path as its folders are named, without encoding. Rename or move a folder that "
            "has a percent sign before two hexadecimal digits in its name.",
            location=definition.places.value_of("location"),
        )
    )
    return False


def _absolute(location: str, project_dir: Path) -> str:
    if "://" in location:
        return location.rstrip("/")
    return str((project_dir / Path(location).expanduser()).resolve())
