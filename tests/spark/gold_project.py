"""A small project on a lake of its own, for tests of gold views."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltalake import write_deltalake
from pyspark.sql import DataFrame, Row, SparkSession
from sqlglot import exp

from spark_jobs.gold.refresh.steps import Outcome, Refresher
from spark_jobs.gold.verify.published import Verification, verify
from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.dialect import parse
from spark_jobs.graph.maintained_query import MaintainedQuery, maintained_query
from spark_jobs.graph.manifest import Column, GoldEntry, Manifest
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.parts import parts_of
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName
from spark_jobs.settings import Settings
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import log, reader, tables
from spark_jobs.storage.delta import CHANGE_FEED
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.plain import plain_table
from tests.spark.right import assert_right
from tests.spark.templates import Templates


@dataclass
class GoldProject:
    """Views and their inputs; the manifest grows with each call of ``view``."""

    spark: SparkSession
    settings: Settings
    store: ControlStore
    manifest: Manifest = field(default_factory=lambda: Manifest(project="test"))
    templates: Templates | None = None

    def view(
        self,
        name: str,
        query: str,
        *,
        inputs: Sequence[str] = ("silver.orders",),
        suite: dict[str, Any] | None = None,
        reads_clock: bool = False,
        describe: dict[str, str] | None = None,
        maintained: bool = False,
        columns: Sequence[Column] = (),
        grain: Sequence[str] = (),
        downstream: Sequence[str] = (),
        policy: str = "bulk",
    ) -> None:
        """Declare a view, or replace one; a maintained one follows changes where it can."""
        types = self.types(inputs) if maintained else {}
        found = self.compiled(query, types) if maintained else None
        canonical = query if found is None else found.text
        maintenance = None if found is None else found.maintenance
        entry = GoldEntry(
            name=name,
            description="A view.",
            owner="tests",
            refresh=policy,
            # However little there is: the tests are about following changes.
            strategy="incremental" if maintained else "auto",
            sql=query,
            query=canonical,
            breaks_ties=found is not None and found.breaks_ties,
            maintenance=maintenance,
            parts=parts_of(canonical, types) if maintenance and maintenance.key else None,
            inputs=tuple(inputs),
            grain=tuple(grain),
            downstream=tuple(downstream),
            columns=tuple(columns)
            or tuple(
                Column(name=key, type="", description=text)
                for key, text in (describe or {}).items()
            ),
            fingerprint=hashlib.sha256(query.encode()).hexdigest(),
            deterministic=True,
            reads_clock=reads_clock,
            suite=suite,
            file=f"sql/gold/{name}.sql",
            tier=1 if any(one.startswith("gold.") for one in inputs) else 0,
        )
        self.manifest = self.manifest.model_copy(
            update={"gold": {**self.manifest.gold, name: entry}}
        )

    def types(self, inputs: Sequence[str]) -> dict[str, dict[str, str]]:
        """The types of the inputs' columns."""
        return {
            one: {column.name: column.type for column in log.schema(self.location(one))}
            for one in inputs
        }

    def canonical(self, query: str, inputs: Sequence[str]) -> str:
        """The query as the compiled project would hold it."""
        return self.compiled(query, self.types(inputs)).text

    def compiled(self, query: str, types: Mapping[str, Mapping[str, str]]) -> MaintainedQuery:
        """A query over tables with columns of these types, as a project compiles it."""
        tree = parse(query)
        assert isinstance(tree, exp.Query)
        schemas = {TableName.parse(one): columns for one, columns in types.items()}
        resolved = resolve(tree, schemas, SqlText("query", query), "query")
        assert not resolved.problems, resolved.problems
        return maintained_query(canonical_query(tree, resolved.tree), types=types)

    @property
    def refresher(self) -> Refresher:
        """A new one each time, as another process would have it."""
        return Refresher(
            self.settings, self.manifest, self.store, session_factory=lambda _: self.spark
        )

    def refresh(self, view: str, tick: str, *, force: bool = False) -> Outcome:
        return self.refresher.run(view, tick=tick, force=force)

    def reason(self, view: str) -> str:
        """The code of the plan that a refresh would follow now."""
        return self.refresher.explain(view).reason.code

    def verify(self, view: str) -> Verification:
        return verify(self.refresher.context, view)

    def assert_right(self, view: str) -> None:
        """Fail unless the published table equals the view's SQL."""
        assert_right(self.refresher.context, view)

    def location(self, table: str) -> str:
        return Lake(self.settings.lake).location(TableName.parse(table))

    def append(self, table: str, rows: str) -> None:
        """Add the rows of a VALUES list with columns of its own.

        Spark creates a table, once for all tests that begin with the same rows. A later append is
        that of another writer, as often in life; it also takes a tenth of the time.
        """
        location = self.location(table)

        def by_spark(place: str) -> None:
            tables.append(self.spark.sql(rows), place, properties=CHANGE_FEED)

        if log.table_version(location) is None and self.templates is not None:
            self.templates.copy(rows, location, by_spark)
            return
        there = None if log.table_version(location) is None else plain_table(location)
        if there is None or not there.written:
            by_spark(location)
        else:
            write_deltalake(location, self.spark.sql(rows).toArrow(), mode="append")

    def execute(self, statement: str, table: str) -> None:
        """Run a statement in which {} stands for the table."""
        self.spark.sql(statement.format(f"delta.`{self.location(table)}`"))

    def frame(self, view: str) -> DataFrame:
        return tables.read(self.spark, self.location(f"gold.{view}"))

    def rows(self, view: str) -> list[tuple[Any, ...]]:
        """The published rows, sorted, NULLs first."""
        frame = reader.read(self.spark, self.location(f"gold.{view}"))
        found = [tuple(row) for row in frame.collect()]
        return sorted(found, key=lambda row: [(value is not None, value) for value in row])

    def publications(self, view: str) -> list[dict[str, Any]]:
        """The metadata of the published table's commits, oldest first."""
        commits = reversed(log.commits(self.location(f"gold.{view}")))
        return [dict(one.metadata) for one in commits if one.metadata]

    def changes(self, view: str, since: int) -> list[Row]:
        """The change feed from a version on."""
        reader = self.spark.read.format("delta").option("readChangeFeed", "true")
        return reader.option("startingVersion", since).load(self.location(f"gold.{view}")).collect()

    def attempts(self, view: str, *statuses: AttemptStatus) -> list[RefreshAttempt]:
        return self.store.attempts(view, statuses=statuses)
