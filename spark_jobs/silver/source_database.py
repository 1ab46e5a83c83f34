"""Silver against the source database: the same rows, compared as bags in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.access.postgres import certificate_refusal
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry, SourceEntry
from spark_jobs.graph.projection import split_projection
from spark_jobs.names import HistoryColumn
from spark_jobs.silver.casting import SPECIAL_NUMBERS
from spark_jobs.silver.expiry import expired_sql, horizon
from spark_jobs.state.types import utc_now

EXAMPLES = 5


class DatabaseUnreachableError(LakehouseError):
    """The source database does not answer, or not with the declared table."""

    condition = "DATABASE_UNREACHABLE"

    def __init__(self, table: str, cause: str) -> None:
        self.table = table
        super().__init__(
            f"source table {table!r} cannot be read",
            detail=cause.strip().splitlines()[0] + "." if cause.strip() else None,
            hint="Check that the database runs and that the source's table and columns exist.",
        )


@dataclass(frozen=True)
class SourceDifference:
    """How a silver table differs from its source table.

    Attributes:
        missing: rows that the source has and silver has not.
        unexpected: rows that silver has and the source has not.
        examples: the first of both, each with the side that has it.
    """

    source_rows: int
    missing: int
    unexpected: int
    examples: tuple[tuple[str, dict[str, Any]], ...] = ()

    @property
    def equal(self) -> bool:
        return not self.missing and not self.unexpected


def compare_with_source(
    spark: SparkSession, silver: DataFrame, source: SourceEntry, entry: SilverEntry, *, dsn: str
) -> SourceDifference:
    """Compare a silver table with its SELECT over the source table as it is now.

    Args:
        spark: any session.
        silver: the silver table; of history rows those count that hold now. What has expired
            counts on neither side.
        source: the source; its ``table`` is read in one snapshot.
        entry: the silver table's declaration.
        dsn: where the source database is.

    Raises:
        DatabaseUnreachableError: the database or the table does not answer.
    """
    rows = read_table(dsn, source)
    names = [column.name for column in source.columns]
    texts = spark.createDataFrame(rows, ", ".join(f"`{name}` string" for name in names))
    typed = texts.select(
        *(sf.col(column.name).cast(column.type).alias(column.name) for column in source.columns)
    )
    projection = split_projection(entry.projection)
    expected = typed.alias(projection.relation)
    if projection.condition:
        expected = expected.where(projection.condition)
    selected = expected.select(*(sf.expr(text).alias(name) for name, text in projection.columns))
    if entry.expiry is not None:
        before = horizon(entry.expiry, utc_now())
        wanted = f"NOT coalesce({expired_sql(entry.expiry, 'timestamp', before=before)}, FALSE)"
        selected, silver = selected.where(wanted), silver.where(wanted)
    if entry.apply is ApplyMode.HISTORY:
        silver = silver.where(sf.col(HistoryColumn.VALID_TO).isNull())
    found = silver.select(*(column.name for column in entry.selected))
    if _same(selected, found):
        return SourceDifference(len(rows), 0, 0)
    missing, unexpected = selected.exceptAll(found), found.exceptAll(selected)
    examples = [
        (side, row.asDict())
        for side, frame in (("source", missing), ("silver", unexpected))
        for row in frame.limit(EXAMPLES).collect()
    ]
    return SourceDifference(len(rows), missing.count(), unexpected.count(), tuple(examples))


def _same(one: DataFrame, other: DataFrame) -> bool:
    """Whether both hold the same rows equally often; one job, where two differences take two."""
    weight = "__weight"
    both = one.withColumn(weight, sf.lit(1)).unionAll(other.withColumn(weight, sf.lit(-1)))
    sums = both.groupBy(*one.columns).agg(sf.sum(weight).alias(weight))
    return sums.where(sf.col(weight) != 0).isEmpty()


def read_table(dsn: str, source: SourceEntry) -> Sequence[tuple[str | None, ...]]:
    """The declared columns of the source table in one snapshot, each value as text.

    A NUMERIC that is declared as a text is told in the connector's words.

    Raises:
        DatabaseUnreachableError: the database or the table does not answer.
        CertificateRefusedError: the server is not who it should be.
    """
    table = source.table or ""
    columns = [_text(column) for column in source.columns]
    query = sql.SQL("SELECT {} FROM {}").format(
        sql.SQL(", ").join(columns), sql.Identifier(*table.split("."))
    )
    try:
        with psycopg.connect(dsn, connect_timeout=5, options="-c timezone=UTC") as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            return connection.execute(query).fetchall()
    except psycopg.Error as error:
        refused = certificate_refusal(dsn, error)
        raise refused or DatabaseUnreachableError(table, str(error)) from error


def _text(column: Column) -> sql.Composable:
    name = sql.Identifier(column.name)
    plain = sql.SQL("{}::text").format(name)
    if column.type != "string":
        return plain
    words = sql.SQL(" ").join(
        sql.SQL("WHEN {} THEN {}").format(word, sent) for word, sent in SPECIAL_NUMBERS.items()
    )
    told = sql.SQL("CASE {} {} ELSE {} END").format(plain, words, plain)
    return sql.SQL("CASE pg_typeof({})::text WHEN 'numeric' THEN {} ELSE {} END").format(
        name, told, plain
    )
