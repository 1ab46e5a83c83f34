"""Which tables come from one source database, and which views read several of them."""

from __future__ import annotations

from collections.abc import Iterator

from spark_jobs.definitions.errors import KeyNotApplicableError
from spark_jobs.definitions.project import Definitions
from spark_jobs.definitions.vocabulary import Consistency, SourceFormat
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import Manifest, SilverEntry, SourceEntry
from spark_jobs.names import Layer, TableName


def database_of(source: SourceEntry) -> str | None:
    """The connector's name of a source's database: the prefix of its topics.

    Returns:
        None if the source captures no database, or if its topic has no such prefix.
    """
    if source.format is not SourceFormat.DEBEZIUM or source.topic is None:
        return None
    prefix = source.topic.removesuffix(f".{table_of(source)}")
    return None if prefix == source.topic else prefix


def table_of(source: SourceEntry) -> str:
    """The table that a source captures; if none is declared, the one its topic is named after."""
    # Topics of PostgreSQL tables end with schema and table.
    return source.table or ".".join((source.topic or "").split(".")[-2:])


def transactional_inputs(manifest: Manifest, view: str) -> dict[str, tuple[TableName, ...]]:
    """The tables that a view must read at one commit, by source database.

    By default, the silver tables of a database of which the view reads at least two; the header's
    ``consistency`` overrides this.
    """
    entry = manifest.gold[view]
    if entry.consistency is Consistency.NEWEST:
        return {}
    found: dict[str, list[TableName]] = {}
    for table in map(TableName.parse, entry.inputs):
        silver = manifest.silver.get(table.name) if table.layer is Layer.SILVER else None
        name = None if silver is None else database_of(manifest.sources[silver.source])
        if name is not None:
            found.setdefault(name, []).append(table)
    least = 1 if entry.consistency is Consistency.TRANSACTIONAL else 2
    return {name: tuple(tables) for name, tables in found.items() if len(tables) >= least}


def check_consistency(definitions: Definitions, manifest: Manifest) -> Iterator[LakehouseError]:
    """Report views that ask for whole transactions but read no table of a source database."""
    for name, entry in manifest.gold.items():
        wanted = entry.consistency is Consistency.TRANSACTIONAL
        if wanted and not transactional_inputs(manifest, name):
            yield KeyNotApplicableError(
                f'gold view "{name}"',
                "consistency",
                "it reads no silver table over a source database",
                location=definitions.gold[name].places.of("consistency"),
            )


def transactional_tables(manifest: Manifest) -> dict[str, tuple[SilverEntry, ...]]:
    """The silver tables that any view must read at one commit, by source database."""
    found: dict[str, set[str]] = {}
    for view in manifest.gold:
        for name, tables in transactional_inputs(manifest, view).items():
            found.setdefault(name, set()).update(table.name for table in tables)
    return {
        name: tuple(manifest.silver[table] for table in sorted(tables))
        for name, tables in sorted(found.items())
    }
