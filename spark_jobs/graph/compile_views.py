"""Compiles the gold views of a project, upstream views first; unchanged ones come from a cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from spark_jobs.definitions.project import Definitions, GoldDefinition
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.compile_cache import (
    CachedView,
    CompileCache,
    definition_digest,
    inputs_digest,
)
from spark_jobs.graph.described import with_copied_words
from spark_jobs.graph.errors import CycleError, SqlTooDeepError
from spark_jobs.graph.gold import check_gold, compile_gold, inputs_of
from spark_jobs.graph.limits import check_limits
from spark_jobs.graph.manifest import Column, GoldEntry, SilverEntry, SourceEntry
from spark_jobs.graph.order import downstream, find_cycles, tiers
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.personal import check_personal, with_personal
from spark_jobs.graph.sql import table_nodes
from spark_jobs.graph.table_layout import check_personal_paths
from spark_jobs.names import Layer, TableName
from spark_jobs.sections import GraphSettings


@dataclass
class _View:
    """A view whose SQL is valid.

    Attributes:
        digest: of its file.
        cached: the entry that an equal file had.
        clean: whether no problem was found in it.
    """

    definition: GoldDefinition
    digest: str
    cached: GoldEntry | None
    clean: bool = True
    _tree: exp.Query | None = None

    @property
    def text(self) -> SqlText:
        return SqlText(self.definition.file, self.definition.padded)

    @property
    def tree(self) -> exp.Query:
        """Its parsed query.

        Raises:
            LakehouseError: the SQL is not valid.
        """
        if self._tree is None:
            self._tree = parse_select(self.text)
        return self._tree

    @property
    def inputs(self) -> tuple[TableName, ...]:
        """The tables that it reads, sorted."""
        if self.cached is not None:
            return tuple(map(TableName.parse, self.cached.inputs))
        return inputs_of(self.tree)

    def place_of(self, table: TableName) -> Location:
        """Where it first names a table."""
        return next(
            self.text.of(node)
            for node in table_nodes(self.tree)
            if (node.db.lower(), node.name.lower()) == (table.layer.value, table.name)
        )


@dataclass
class _Known:
    """What is known of the tables that compiled.

    Attributes:
        schemas: types of their columns.
        columns: the same with descriptions and marks, by ``layer.name``.
        keys: columns that identify a row, in lower case, if known.
    """

    sources: Mapping[str, SourceEntry]
    schemas: dict[TableName, dict[str, str]]
    columns: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    keys: dict[str, frozenset[str]] = field(default_factory=dict)

    def digest(self, tables: tuple[TableName, ...]) -> str:
        """A digest of everything here that a view over some tables depends on."""
        return inputs_digest({str(one): self._of(one) for one in tables})

    def add(self, entry: GoldEntry) -> None:
        """Add a view, for those that read it."""
        self.columns[str(entry.table_name)] = entry.columns
        self.schemas[entry.table_name] = {one.name: one.type for one in entry.columns}
        if entry.maintenance is not None and entry.maintenance.key:
            lower = frozenset(one.lower() for one in entry.maintenance.key)
            self.keys[str(entry.table_name)] = lower

    def _of(self, table: TableName) -> dict[str, Any]:
        source = self.sources.get(table.name) if table.layer is Layer.BRONZE else None
        return {
            "types": self.schemas.get(table),
            "columns": [one.model_dump(mode="json") for one in self.columns.get(str(table), ())],
            "key": sorted(self.keys.get(str(table), ())),
            "format": source and source.format,
        }


def compile_views(
    definitions: Definitions,
    sources: Mapping[str, SourceEntry],
    silver: Mapping[str, SilverEntry],
    schemas: dict[TableName, dict[str, str]],
    problems: list[LakehouseError],
    *,
    limits: GraphSettings,
    cache: CompileCache,
) -> dict[str, GoldEntry]:
    """The entries of the gold views that have no problem, by name.

    Args:
        definitions: of the project.
        sources: the sources that compiled.
        silver: the silver tables that compiled.
        schemas: columns of the tables that compiled; those of the views are added.
        problems: collects the views' problems.
        limits: limits of the graph's size.
        cache: views of an earlier run; those of this run are added.
    """
    views = _read_views(definitions, sources, problems, cache)
    reads = {
        name: tuple(table.name for table in view.inputs if table.layer is Layer.GOLD)
        for name, view in views.items()
    }
    cycles = find_cycles(reads)
    problems += (CycleError(path, location=views[path[0]].text.first()) for path in cycles)
    stuck = {name for path in cycles for name in path}
    order = tiers({name: inputs for name, inputs in reads.items() if name not in stuck})
    problems += check_limits(views, order, limits)
    above = downstream(reads)
    known = _Known(
        sources,
        schemas,
        {str(one.table_name): one.columns for one in sources.values()}
        | {str(one.table_name): one.columns for one in silver.values()},
        {
            str(entry.table_name): frozenset(key.lower() for key in entry.row_key)
            for entry in silver.values()
            if entry.row_key
        },
    )
    gold: dict[str, GoldEntry] = {}
    for name in sorted(order, key=lambda one: (order[one], one)):
        entry = _entry(views[name], known, definitions.declared, problems, cache)
        if entry:
            known.add(entry)
            gold[name] = entry.model_copy(
                update={"tier": order[name], "upstream": reads[name], "downstream": above[name]}
            )
    cache.keep(definitions.gold.keys())
    return dict(sorted(gold.items()))


def _read_views(
    definitions: Definitions,
    sources: Mapping[str, SourceEntry],
    problems: list[LakehouseError],
    cache: CompileCache,
) -> dict[str, _View]:
    """The views whose SQL is valid; those with an equal file in the cache are not parsed."""
    views: dict[str, _View] = {}
    for name, definition in definitions.gold.items():
        digest = definition_digest(definition)
        view = _View(definition, digest, cache.entry(name, digest))
        if view.cached is None:
            try:
                tree = view.tree
            except LakehouseError as error:
                problems.append(error)
                continue
            found = list(check_gold(definition, tree, sources, definitions.declared))
            view.clean = not found
            problems += found
        views[name] = view
    return views


def _entry(
    view: _View,
    known: _Known,
    declared: frozenset[TableName],
    problems: list[LakehouseError],
    cache: CompileCache,
) -> GoldEntry | None:
    """The entry of a view, without what comes from the graph; None if it has problems."""
    definition, inputs = view.definition, known.digest(view.inputs)
    found: list[LakehouseError] = []
    if view.cached is not None:
        if cache.is_current(definition.name, inputs):
            return view.cached
        found += check_gold(definition, view.tree, known.sources, declared)
    try:
        entry = compile_gold(definition, view.tree, known.schemas, found, keys=known.keys)
        entry = entry and _with_words(entry, definition, known.columns, found)
    except RecursionError:
        entry = None
        found.append(SqlTooDeepError(location=view.text.first()))
    problems += found
    if entry is not None and view.clean and not found:
        cache.add(CachedView(definition=view.digest, inputs=inputs, entry=entry))
    return entry


def _with_words(
    entry: GoldEntry,
    definition: GoldDefinition,
    columns: Mapping[str, tuple[Column, ...]],
    problems: list[LakehouseError],
) -> GoldEntry:
    """The entry, with descriptions inherited from the columns that it copies."""
    entry = with_copied_words(entry, columns)
    header, places = definition.header, definition.places
    subject = f'gold view "{entry.name}"'
    problems += check_personal(header, entry.columns, places, subject)
    marked = with_personal(entry.columns, entry.query, header, columns)
    problems += check_personal_paths(header, marked, places, subject)
    return entry.model_copy(update={"columns": marked})
