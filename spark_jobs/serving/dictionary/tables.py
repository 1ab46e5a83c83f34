"""Shared by all pages: page names, links, the graph of tables, readers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from spark_jobs.graph.lineage import ColumnName, QueryLineage, lineage_of
from spark_jobs.graph.manifest import (
    SOURCE_RELATION,
    GoldEntry,
    Manifest,
    SilverEntry,
    SinkEntry,
    SourceEntry,
)
from spark_jobs.serving.dictionary import markup
from spark_jobs.serving.dictionary.picture import Box, Graph

# Directory of the pages in the site.
FOLDER = "dictionary"

Entry = SourceEntry | SilverEntry | GoldEntry


class Dictionary:
    """A compiled project, with lookups for the pages."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All tables by ``layer.name``: sources, silver, gold, each sorted by name."""
        found: list[Entry] = [*self.manifest.sources.values()]
        found += [*self.manifest.silver.values(), *self.manifest.gold.values()]
        return {str(one.table_name): one for one in found}

    @cached_property
    def graph(self) -> Graph:
        """The graph of all tables and sinks."""
        boxes = {name: Box(name, _kind(one), f"{name}.html") for name, one in self.entries.items()}
        boxes |= {
            f"sink {one.name}": Box(one.target, f"sink, {one.system}")
            for one in self.manifest.sinks.values()
        }
        edges = {(left, name) for name, one in self.entries.items() for left in inputs_of(one)} | {
            (one.table, f"sink {one.name}") for one in self.manifest.sinks.values()
        }
        return Graph(boxes, frozenset(edge for edge in edges if set(edge) <= boxes.keys()))

    def readers(self, table: str) -> list[str]:
        """The tables that read a table, sorted."""
        return sorted(name for name, one in self.entries.items() if table in inputs_of(one))

    def sinks(self, table: str) -> list[SinkEntry]:
        """The sinks of a table."""
        return [one for one in self.manifest.sinks.values() if one.table == table]

    def spelled(self, column: ColumnName) -> ColumnName:
        """A column as spelled in its declaration: resolved queries are in lower case."""
        entry = self.entries.get(column.table)
        names = {one.name.lower(): one.name for one in entry.columns} if entry else {}
        return ColumnName(column.table, names.get(column.column.lower(), column.column))

    def links(self, tables: Iterable[str]) -> str:
        """Tables as links to their pages."""
        return markup.listed(self.link(table) for table in tables)

    def link(self, table: str) -> str:
        """A link to a table's page, in the same directory."""
        return markup.link(table, f"{table}.md") if table in self.entries else markup.code(table)


def inputs_of(entry: Entry) -> tuple[str, ...]:
    """The tables that a table is computed from."""
    match entry:
        case SourceEntry():
            return ()
        case SilverEntry():
            return (f"bronze.{entry.source}",)
        case GoldEntry():
            return entry.inputs


def lineage(entry: SilverEntry | GoldEntry) -> QueryLineage:
    """The column lineage of a table."""
    if isinstance(entry, GoldEntry):
        return lineage_of(entry.query)
    found = lineage_of(entry.projection)

    def moved(column: ColumnName) -> ColumnName:
        own = column.table == SOURCE_RELATION
        return ColumnName(f"bronze.{entry.source}", column.column) if own else column

    return QueryLineage(
        {name: tuple(map(moved, origins)) for name, origins in found.columns.items()},
        {name: moved(origin) for name, origin in found.copies.items()},
        tuple(map(moved, found.rows)),
    )


def _kind(entry: Entry) -> str:
    match entry:
        case SourceEntry():
            return f"source, {entry.format}"
        case SilverEntry():
            return f"silver, {entry.apply}"
        case GoldEntry():
            return f"gold, {entry.refresh}"
