"""Compiles the project's files to the manifest, or to the list of all their problems."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from spark_jobs.definitions.durations import parse_duration
from spark_jobs.definitions.project import Definitions, read_definitions
from spark_jobs.definitions.schedules import cron_of
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.errors import LakehouseError, Location, ProblemsError, SettingError
from spark_jobs.graph.compile_cache import CompileCache
from spark_jobs.graph.compile_views import compile_views
from spark_jobs.graph.databases import check_consistency
from spark_jobs.graph.manifest import Manifest, SilverEntry
from spark_jobs.graph.reuse import Value, expanded
from spark_jobs.graph.silver import compile_silver
from spark_jobs.graph.silver_suites import check_silver_suites
from spark_jobs.graph.sinks import compile_sinks
from spark_jobs.graph.sources import DeltaSchema, compile_source
from spark_jobs.graph.suites import check_suites
from spark_jobs.graph.typed_source import typed_columns
from spark_jobs.names import Layer, TableName
from spark_jobs.sections import GraphSettings
from spark_jobs.settings import SETTINGS_FILE


def compile_project(
    project_dir: Path,
    *,
    every_override: str | None = None,
    scheduled_at_first: Collection[str] = (),
    delta_schema: DeltaSchema | None = None,
    limits: GraphSettings | None = None,
    variables: Mapping[str, Value] | None = None,
) -> Manifest:
    """Compile a project.

    Args:
        project_dir: the directory with ``sources/`` and ``sql/``.
        every_override: replaces the period of micro-batch views, for instance "1 minute".
        scheduled_at_first: names of the views whose period it replaces; empty: all.
        delta_schema: returns the columns of Delta sources that declare none.
        limits: limits of the graph's size; None: the defaults.
        variables: values for ``@name`` in SQL, by name.

    Raises:
        ProblemsError: all problems of all files.
    """
    manifest, problems = read_project(
        project_dir,
        every_override=every_override,
        scheduled_at_first=scheduled_at_first,
        delta_schema=delta_schema,
        limits=limits,
        variables=variables,
    )
    if problems:
        raise ProblemsError(problems)
    return manifest


def read_project(
    project_dir: Path,
    *,
    every_override: str | None = None,
    scheduled_at_first: Collection[str] = (),
    delta_schema: DeltaSchema | None = None,
    limits: GraphSettings | None = None,
    variables: Mapping[str, Value] | None = None,
    cache: CompileCache | None = None,
) -> tuple[Manifest, list[LakehouseError]]:
    """The manifest as far as it compiles, and all problems.

    ``cache`` has gold views of an earlier run; those of this run are added. For the other
    arguments see ``compile_project``.
    """
    project_dir = project_dir.resolve()
    definitions, problems = read_definitions(project_dir)
    definitions = expanded(definitions, variables or {}, problems)
    sources = {
        name: compile_source(one, project_dir, delta_schema=delta_schema, problems=problems)
        for name, one in definitions.sources.items()
    }
    schemas: dict[TableName, dict[str, str]] = {
        entry.table_name: columns for entry in sources.values() if (columns := typed_columns(entry))
    }
    silver: dict[str, SilverEntry] = {}
    for definition in definitions.silver.values():
        entry = compile_silver(definition, sources, schemas, definitions.declared, problems)
        if entry:
            silver[entry.name] = entry
            schemas[entry.table_name] = {one.name: one.type for one in entry.columns}
    gold = compile_views(
        definitions,
        sources,
        silver,
        schemas,
        problems,
        limits=limits or GraphSettings(),
        cache=CompileCache() if cache is None else cache,
    )
    # Batches are judged before they become versions of rows, which have periods.
    judged = {one.table_name: [column.name for column in one.selected] for one in silver.values()}
    problems += check_suites(
        list(definitions.suites.values()), {**schemas, **judged}, definitions.declared
    )
    problems += check_silver_suites(definitions, silver)
    sinks = compile_sinks(definitions, sources, silver, gold, problems)
    suites = {table: suite.content for table, suite in definitions.suites.items()}
    manifest = Manifest(
        project=project_dir.name,
        schema_files=schema_files(definitions),
        sources=sources,
        silver={
            name: entry.model_copy(update={"suite": suites.get(entry.table_name)})
            for name, entry in silver.items()
        },
        gold={
            name: entry.model_copy(update={"suite": suites.get(entry.table_name)})
            for name, entry in gold.items()
        },
        sinks=sinks,
    )
    problems += check_consistency(definitions, manifest)
    problems += _unknown_views(definitions, scheduled_at_first)
    if every_override:
        chosen = scheduled_at_first or manifest.gold
        manifest = _with_every(manifest, every_override, chosen, problems)
    return manifest, sorted(problems, key=_position)


def schema_files(definitions: Definitions) -> tuple[str, ...]:
    """The files of Avro schemas that sources name, sorted."""
    declared = [one.declared.schemas for one in definitions.sources.values()]
    named = (one.values() if isinstance(one, dict) else one for one in declared)
    return tuple(sorted({file for files in named for file in files}))


def _unknown_views(definitions: Definitions, names: Collection[str]) -> Iterator[LakehouseError]:
    for name in names:
        if TableName(Layer.GOLD, name) not in definitions.declared:
            problem = f"there is no gold view {name!r}"
            place = Location(SETTINGS_FILE)
            yield SettingError("gold.scheduled_at_first", problem, location=place)


def _with_every(
    manifest: Manifest, period: str, chosen: Collection[str], problems: list[LakehouseError]
) -> Manifest:
    every = parse_duration(period)
    seconds = int(every.total_seconds()) if every else 0
    if cron_of(seconds) is None:
        problem = f"{period!r} is not a period that divides an hour, a day or a week"
        place = Location(SETTINGS_FILE)
        problems.append(SettingError("gold.every_override", problem, location=place))
        return manifest
    return manifest.model_copy(
        update={
            "gold": {
                name: entry.model_copy(update={"every_seconds": seconds, "schedule": None})
                if entry.refresh is RefreshPolicy.MICRO_BATCH and name in chosen
                else entry
                for name, entry in manifest.gold.items()
            }
        }
    )


def _position(problem: LakehouseError) -> tuple[str, int, int]:
    place = problem.location or Location("")
    return (place.file, place.line or 0, place.column or 0)
