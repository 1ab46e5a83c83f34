"""A user's SQL session over the tables of a project."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from spark_jobs.names import Layer
from spark_jobs.serving.project import OpenProject, applied_manifest
from spark_jobs.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.graph.manifest import Column, GoldEntry, Manifest, SilverEntry, SourceEntry
    from spark_jobs.names import TableName
    from spark_jobs.serving.sql.query import PinnedQuery, QueryResult
    from spark_jobs.serving.sql.surroundings import Surroundings


@dataclass(frozen=True)
class ShownColumn:
    """A column as shown to users, with its Spark SQL type; "" if only Spark knows it."""

    name: str
    type: str
    description: str


@dataclass(frozen=True)
class QuerySession:
    """One user's queries. Spark starts with the first query; declarations are read for each.

    Attributes:
        limit: maximum number of rows; 0: all.
        seconds: time limit of a query; 0: none.
        pii: whether personal data is shown.
        layers: layers that can be queried.
        environment: an environment whose views replace those of production.
    """

    settings: Settings
    limit: int
    seconds: float
    pii: bool = False
    layers: frozenset[Layer] = frozenset(Layer)
    environment: str | None = None

    @cached_property
    def spark(self) -> SparkSession:
        from spark_jobs.storage.session import open_session

        return open_session(self.settings)

    @property
    def manifest(self) -> Manifest:
        """The current declarations of production.

        Raises:
            ProblemsError: nothing was applied, and the project does not compile.
        """
        return applied_manifest(self.settings)

    @property
    def surroundings(self) -> Surroundings:
        """The current declarations and table locations.

        Raises:
            EnvironmentUnknownError: the environment no longer exists.
        """
        from spark_jobs.serving.sql.surroundings import surroundings

        return surroundings(self.settings, self.manifest, self.environment)

    def pinned(self, text: str, *, views: str = "") -> PinnedQuery:
        """The query for Spark; ``views`` is the schema of the ``ops`` views.

        Raises:
            LakehouseError: see ``serving.sql.query.pinned_query``.
        """
        from spark_jobs.graph.personal import personal_columns
        from spark_jobs.serving.sql.ops_tables import OPS_TABLES
        from spark_jobs.serving.sql.query import pinned_query

        around = self.surroundings
        known = self._declared(around.manifest)
        masked = {str(name): personal_columns(one) for name, one in known.items()}
        return pinned_query(
            text,
            around.locations,
            known=known,
            made=OPS_TABLES,
            masked={} if self.pii else {**masked, **around.hidden},
            views=views,
        )

    def run(self, query: PinnedQuery) -> QueryResult:
        """The rows of a query.

        Raises:
            LakehouseError: see ``serving.sql.query.run_query``.
        """
        from spark_jobs.serving.sql.query import run_query

        with self._made(query.made):
            return run_query(self.spark, query, limit=self.limit, seconds=self.seconds)

    def tables(self) -> list[tuple[str, str]]:
        """All tables that can be queried, each as name in SQL and description ("" without one)."""
        from spark_jobs.serving.sql.ops_tables import OPS_TABLES

        declared = self._declared(self.surroundings.manifest)
        found = [(str(name), entry.description or "") for name, entry in sorted(declared.items())]
        return found + [(table.name, table.description) for table in OPS_TABLES.values()]

    def columns(self, name: str) -> list[ShownColumn]:
        """The columns of a table: from the lake, or as declared if it does not exist yet.

        Raises:
            TableUnknownError: the table cannot be queried.
        """
        from spark_jobs.graph.personal import personal_columns
        from spark_jobs.names import TableName
        from spark_jobs.serving.sql.ops_tables import OPS_TABLES
        from spark_jobs.storage import log
        from spark_jobs.storage.errors import TableUnknownError

        if name in OPS_TABLES:
            return _shown(OPS_TABLES[name].columns)
        around = self.surroundings
        declared = {str(table): one for table, one in self._declared(around.manifest).items()}
        if name not in declared:
            raise TableUnknownError(name, [*declared, *OPS_TABLES])
        location = around.locations.of(TableName.parse(name))
        hidden = around.hidden.get(name, personal_columns(declared[name]))
        if log.table_version(location) is None:
            return _shown(declared[name].columns, hidden)
        texts = {one.name: one.meaning for one in declared[name].columns}
        return [
            ShownColumn(
                one.name,
                one.type,
                _meaning(texts.get(one.name) or one.description, pii=one.name.lower() in hidden),
            )
            for one in log.schema(location)
        ]

    def ops(self, names: Sequence[str]) -> dict[str, DataFrame]:
        """Current tables of ``ops``, by name.

        Raises:
            ControlUnreachableError: the control database cannot be reached.
        """
        from spark_jobs.serving.sql.ops_tables import OPS_TABLES
        from spark_jobs.state.store import ControlStore
        from spark_jobs.state.types import utc_now
        from spark_jobs.storage.columns import struct_type
        from spark_jobs.storage.rows import from_arrow

        with ControlStore.open(self.settings.control_url) as store:
            project, now = OpenProject(self.settings, self.manifest, store), utc_now()
            read = {name: OPS_TABLES[name].read(project, now=now) for name in names}
        schema = partial(struct_type, self.spark)
        return {
            name: from_arrow(self.spark, rows, partial(schema, OPS_TABLES[name].columns))
            for name, rows in read.items()
        }

    def _declared(
        self, manifest: Manifest
    ) -> dict[TableName, SourceEntry | SilverEntry | GoldEntry]:
        declared = declared_tables(manifest)
        return {name: entry for name, entry in declared.items() if name.layer in self.layers}

    @contextmanager
    def _made(self, names: Sequence[str]) -> Iterator[None]:
        """Temporary views over current tables of ``ops``."""
        from spark_jobs.serving.sql.query import view_of

        if not names:
            yield
            return
        for name, frame in self.ops(names).items():
            frame.createOrReplaceTempView(view_of(name))
        try:
            yield
        finally:
            for name in names:
                self.spark.catalog.dropTempView(view_of(name))


def declared_tables(
    manifest: Manifest,
) -> dict[TableName, SourceEntry | SilverEntry | GoldEntry]:
    """All declared tables, by name: sources, silver, gold."""
    entries: list[SourceEntry | SilverEntry | GoldEntry] = []
    for layer in (manifest.sources, manifest.silver, manifest.gold):
        entries += layer.values()
    return {entry.table_name: entry for entry in entries}


def _shown(columns: Sequence[Column], personal: Collection[str] = frozenset()) -> list[ShownColumn]:
    return [
        ShownColumn(one.name, one.type, _meaning(one.meaning, pii=one.name.lower() in personal))
        for one in columns
    ]


def _meaning(description: str | None, *, pii: bool) -> str:
    return " ".join(filter(None, [description, "Personal data." if pii else None]))
