"""The engine on DuckDB: refreshes in this process, for queries that give the same as in Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from types import TracebackType

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.compute.protocol import DUCKDB, Prepared
from spark_jobs.gold.engine.database import Columns, Duck
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import kind_of
from spark_jobs.graph.duck.queries import Translated
from spark_jobs.graph.duck.remembered import remembered_translation
from spark_jobs.graph.duck.staged import OPERATION, differing, keyed, unkeyed
from spark_jobs.graph.duck.typed import quoted
from spark_jobs.graph.duck.views import whole_view
from spark_jobs.graph.last_step import DeleteInsert, MergeByKey, RowStep, matched_columns
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.sql import Query
from spark_jobs.graph.type_agreement import compared
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import log, policy
from spark_jobs.storage.rows import RowChange, Rows, rows_here

_STAGED, _PUBLISHED = "staged", "published"


class DuckEngine(AbstractContextManager["DuckEngine"]):
    """Computes within the memory that the settings allow; its rows are Arrow data in this process.

    A query is translated when it is prepared, and refused then if it has no translation.
    """

    name = DUCKDB

    def __init__(self, context: GoldContext) -> None:
        settings = context.settings
        self._context = context
        self._duck = Duck(memory=settings.gold.engine_memory, spill=settings.state / "duckdb")
        # Columns by relation name, also of relations that later steps will compute.
        self._columns: dict[str, Columns] = {}
        # Spark SQL types of registered tables, by name.
        self._types: dict[str, dict[str, str]] = {}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._duck.__exit__(kind, error, trace)

    def table(self, name: str, location: str, version: int) -> None:
        if not self._duck.content(name, location, version):
            raise NotTranslatedError(f"the files of {location}, which Delta's reader must read")
        self._columns[name.lower()] = self._duck.known[name.lower()]
        self._types[name] = {one.name: one.type for one in log.schema(location, version)}

    def changes(self, name: str, location: str, *, after: int, upto: int) -> None:
        if not self._duck.changes(name, location, after=after, upto=upto):
            raise NotTranslatedError(f"the changes of {location}, which Delta's reader must read")
        self._columns[name.lower()] = self._duck.known[name.lower()]

    def computed(self, name: str, query: Query, *, large: bool = False) -> Prepared[None]:
        del large
        found = remembered_translation(query, self._columns)
        self._columns[name.lower()] = dict(found.columns)
        return lambda: self._duck.compute(name, found)

    def same(self, name: str, other: str) -> Prepared[None]:
        self._columns[name.lower()] = self._columns[other.lower()]
        return lambda: self._duck.same(name, other)

    def typed(self, query: Query, *, like: str) -> Prepared[Rows]:
        types = {name: str(kind) for name, kind in self._columns[like.lower()].items()}
        text = remembered_translation(query, self._columns).typed_as(types)
        return lambda: self._rows(text, types)

    def change(
        self, query: Query | None, *, view: str, published: str, step: RowStep
    ) -> Prepared[Rows]:
        del view
        types = self._types[published]
        if not compared(types[one] for one in matched_columns(step, types)):
            raise NotTranslatedError("columns that only Spark can compare")
        text = f"SELECT *, '' AS {OPERATION} FROM {quoted(published)} WHERE FALSE"
        if query is not None:
            found = remembered_translation(query, self._columns)
            match step:
                case MergeByKey():
                    text = keyed(found, types)
                case DeleteInsert():
                    text = unkeyed(found, types, published)
        return lambda: self._rows(text, {**types, OPERATION: "string"})

    def whole(
        self, work: RefreshPlan | WorkItem, columns: Collection[str] | None = None
    ) -> Prepared[Rows]:
        if columns is not None:
            raise NotTranslatedError("some columns of a table whose others stay")
        entry = self._context.entry(work.view)
        declared = _declared_types(entry) if self._context.in_process else None
        types = declared or self._published_types(entry)
        names = {str(table): f"{table.layer}_{table.name}" for table, _ in work.vector}
        for table, version in work.vector:
            location = self._context.locations.of(table)
            if not self._duck.content(names[str(table)], location, version.version):
                raise NotTranslatedError(f"the files of {table}, which Delta's reader must read")
        found = whole_view(entry, names, self._duck.known, work.clock)
        if declared is not None:
            _check_types(found, declared)
        text = found.typed_as(types)
        return lambda: self._rows(text, types)

    def difference(self, view: str, *, staged: str, published: str) -> RowChange | None:
        del view
        kinds = {one.name: one.type for one in log.schema(staged)}
        held = {one.name: one.type for one in log.schema(published)}
        rows = log.size(staged).rows
        if list(kinds.items()) != list(held.items()):
            # Also if only their order differs, which a merge of rows would keep.
            return None
        if not compared(kinds.values()) or rows is None:
            raise NotTranslatedError("columns that only Spark can compare")
        if not (self._duck.content(_STAGED, staged) and self._duck.content(_PUBLISHED, published)):
            raise NotTranslatedError("files that Delta's reader must read")
        which, inserted = differing(_STAGED, _PUBLISHED, list(kinds))
        deleted = self._duck.fetch(which)
        many = deleted.num_rows > policy.most_merged(rows)
        if many or not policy.RESULT.fits(rows=deleted.num_rows):
            raise NotTranslatedError("more rows that differ than are merged")
        return RowChange(
            deleted=rows_here(deleted, kinds, lambda: self._context.spark),
            inserted=self._rows(inserted, kinds),
            deletes=deleted.num_rows,
            inserts=deleted.num_rows,
            kinds=kinds,
            step=DeleteInsert(),
        )

    def _rows(self, text: str, kinds: Mapping[str, str]) -> Rows:
        return rows_here(self._duck.fetch(text), kinds, lambda: self._context.spark)

    def _published_types(self, entry: GoldEntry) -> dict[str, str]:
        """The column types that Spark gave the view when it first built it.

        Raises:
            NotTranslatedError: this definition was never published.
        """
        location = self._context.published_at(entry.name)
        latest = latest_publication(location)
        if latest is None or latest.watermark.fingerprint != entry.fingerprint:
            raise NotTranslatedError("a definition of which nothing is published yet")
        return {one.name: one.type for one in log.schema(location, latest.version)}


def _declared_types(entry: GoldEntry) -> dict[str, str]:
    """The column types that the compiler derived.

    Raises:
        NotTranslatedError: it could not derive one.
    """
    found = {}
    for column in entry.columns:
        if not column.type:
            raise NotTranslatedError(f"the type of column {column.name}")
        found[column.name] = column.type
    return found


def _check_types(found: Translated, types: Mapping[str, str]) -> None:
    """Check that translating a query gave the types that the compiler derived.

    Raises:
        NotTranslatedError: they differ, so only Spark knows.
    """
    for name, kind in types.items():
        if found.columns.get(name.lower()) != kind_of(kind):
            raise NotTranslatedError(f"the type of column {name}")
