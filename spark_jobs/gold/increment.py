"""An incremental refresh: which rows leave a published table and which enter it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.errors import BaseMovedError, InputReplacedError
from spark_jobs.gold.publications import Publication, latest_publication
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.maintenance.program import Program, derive
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.relation import WEIGHT, When
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.sql import delta_relation
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.vector import VersionVector
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.storage import log, tables
from spark_jobs.storage.tables import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The staged column that says what becomes of a row.
OPERATION = "__operation"
LEAVES, ENTERS = "leaves", "enters"


@dataclass(frozen=True)
class Range:
    """The versions of one input before and after."""

    before: TableVersion
    after: TableVersion


@dataclass(frozen=True)
class Relations:
    """The relations that a program reads, at their versions; see ``graph.maintenance``."""

    context: GoldContext
    view: str
    base: Publication
    ranges: dict[str, Range]
    prefix: str

    @property
    def changed(self) -> frozenset[str]:
        """The tables with another version than before."""
        return frozenset(
            name for name, one in self.ranges.items() if one.before.version != one.after.version
        )

    def content(self, table: str, when: When) -> exp.Table:
        """A table at its version before or after."""
        one = self.ranges[table]
        version = one.before if when is When.OLD and table in self.changed else one.after
        return delta_relation(self._at(table), version.version)

    def change(self, table: str) -> exp.Table:
        """The name under which ``register`` puts a table's change."""
        return exp.to_table(f"{self.prefix}_{table.replace('.', '_')}")

    def published(self) -> exp.Table:
        """The view's own table before."""
        return delta_relation(self.context.published_at(self.view), self.base.version)

    def register(self) -> Iterator[DataFrame]:
        """Name the change of each table."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        for table in sorted(self.changed):
            one = self.ranges[table]
            rows = tables.changes(
                self.context.spark,
                self._at(table),
                after=one.before.version,
                upto=one.after.version,
            )
            came = F.col("_change_type").isin("insert", "update_postimage")
            frame = rows.withColumn(WEIGHT, F.when(came, 1).otherwise(-1))
            frame.createOrReplaceTempView(self.change(table).name)
            yield frame

    def _at(self, table: str) -> str:
        return self.context.locations.of(TableName.parse(table))


def base_of(context: GoldContext, attempt: RefreshAttempt) -> Publication:
    """The publication that an incremental attempt builds on.

    Raises:
        BaseMovedError: the newest one is not what the plan saw, or of another definition.
    """
    base = latest_publication(context.published_at(attempt.view))
    vector = VersionVector.from_dict(attempt.vector or {})
    if base is None:
        raise BaseMovedError(attempt.view, "nothing is published any more")
    mark = base.watermark
    if mark.fingerprint != attempt.fingerprint or mark.epoch != attempt.epoch:
        raise BaseMovedError(attempt.view, f"version {base.version} has another definition")
    for table, after in vector:
        before = mark.vector.get(table)
        if before is None or before.table_id != after.table_id or before.version > after.version:
            raise BaseMovedError(
                attempt.view, f"version {base.version} was computed from later data of {table}"
            )
    return base


def program_of(
    context: GoldContext,
    entry: GoldEntry,
    *,
    vector: VersionVector,
    clock: datetime,
    base: Publication,
    prefix: str = "__change_of",
) -> tuple[Program, Relations]:
    """The SQL of the change from a publication to a version vector."""
    ranges = {}
    for table, after in vector:
        before = base.watermark.vector.get(table)
        if before is None:
            raise BaseMovedError(entry.name, f"version {base.version} does not come from {table}")
        ranges[str(table)] = Range(before, after)
    relations = Relations(context, entry.name, base, ranges, prefix)
    clocks = {When.OLD: base.watermark.clock, When.NEW: clock} if entry.reads_clock else {}
    return derive(build(entry.query), relations, clocks, prefix=prefix), relations


@contextmanager
def staged_change(context: GoldContext, attempt: RefreshAttempt) -> Iterator[DataFrame]:
    """The rows that leave and enter, to be written while the context lasts.

    Yields:
        the view's columns and ``__operation``: ``leaves`` (as often as the table has the row) or
        ``enters``.

    Raises:
        BaseMovedError: somebody published in between.
        InputReplacedError: another table lies where the plan pinned one.
    """
    entry = context.entry(attempt.view)
    base = base_of(context, attempt)
    vector = VersionVector.from_dict(attempt.vector or {})
    for name, version in vector:
        current = log.table_version(context.locations.of(name))
        if current is None or current.table_id != version.table_id:
            raise InputReplacedError(entry.name, str(name))
    prefix = "__" + "".join(one if one.isalnum() else "_" for one in attempt.attempt_id)
    program, relations = program_of(
        context, entry, vector=vector, clock=attempt.started_at, base=base, prefix=prefix
    )
    spark = context.spark
    with ExitStack() as kept:
        for table in sorted(relations.changed):
            kept.callback(partial(_drop, context, relations.change(table).name))
        list(relations.register())
        for step in program.steps:
            frame = spark.sql(to_sql(step.query)).persist()
            frame.createOrReplaceTempView(step.name)
            kept.callback(partial(_drop, context, step.name))
            kept.callback(frame.unpersist)
        if program.change is None:
            yield _nothing(context, relations)
            return
        change = _typed(context, relations, program.change)
        if entry.maintenance is not None and entry.maintenance.key:
            yield _of_keyed(change, entry.name)
            return
        change = change.persist()
        kept.callback(change.unpersist)
        yield _of_bag(change, _published(context, relations), entry.name)


def _drop(context: GoldContext, view: str) -> None:
    context.spark.catalog.dropTempView(view)


def _published(context: GoldContext, relations: Relations) -> DataFrame:
    location = context.published_at(relations.view)
    return tables.read(context.spark, location, relations.base.version)


def _nothing(context: GoldContext, relations: Relations) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return _published(context, relations).limit(0).withColumn(OPERATION, F.lit(ENTERS))


def _typed(context: GoldContext, relations: Relations, change: exp.Query) -> DataFrame:
    """The change with the published table's types: a sum over the same columns may be wider."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    fields = _published(context, relations).schema.fields
    columns = [F.col(quoted(one.name)).cast(one.dataType).alias(one.name) for one in fields]
    frame = context.spark.sql(to_sql(change))
    return frame.select(*columns, F.col(WEIGHT).cast("long").alias(WEIGHT))


def _of_keyed(change: DataFrame, view: str) -> DataFrame:
    """Where a key tells rows apart, a row leaves or enters once."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    word = F.when(F.col(WEIGHT) == -1, LEAVES).when(F.col(WEIGHT) == 1, ENTERS)
    wrong = F.raise_error(F.lit(f"gold.{view}: a row of a unique key comes twice"))
    return change.withColumn(OPERATION, word.otherwise(wrong)).drop(WEIGHT)


def _of_bag(change: DataFrame, published: DataFrame, view: str) -> DataFrame:
    """A table without a key: all copies of a row leave, and those that stay enter again."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    columns = published.columns
    names = [F.col(quoted(name)) for name in columns]
    fewer = change.where(F.col(WEIGHT) < 0).alias("c")
    same = [F.col(f"p.{quoted(name)}").eqNullSafe(F.col(f"c.{quoted(name)}")) for name in columns]
    condition = same[0]
    for one in same[1:]:
        condition &= one
    counted = (
        fewer.join(published.withColumn("__here", F.lit(1)).alias("p"), condition, "left_outer")
        .groupBy(
            *(F.col(f"c.{quoted(name)}").alias(name) for name in columns), F.col(f"c.{WEIGHT}")
        )
        .agg(F.count("__here").alias("__here"))
    )
    rest = F.col("__here") + F.col(WEIGHT)
    lacking = F.raise_error(F.lit(f"gold.{view}: a row is to leave that is not there"))
    leaving = counted.select(
        *names,
        F.lit(LEAVES).alias(OPERATION),
        F.when(rest >= 0, F.col("__here")).otherwise(lacking).cast("int").alias("__copies"),
    )
    staying = counted.where(rest > 0).select(
        *names, F.lit(ENTERS).alias(OPERATION), rest.cast("int").alias("__copies")
    )
    more = change.where(F.col(WEIGHT) > 0).select(
        *names, F.lit(ENTERS).alias(OPERATION), F.col(WEIGHT).cast("int").alias("__copies")
    )
    every = leaving.unionAll(staying).unionAll(more)
    each = F.explode(F.array_repeat(F.lit(1), F.col("__copies")))
    return every.select(*names, F.col(OPERATION), each.alias("__copy")).drop("__copy")
