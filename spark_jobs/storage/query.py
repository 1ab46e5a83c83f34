"""Runs a query that somebody typed over the lake's tables, all at their newest versions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.query import query_tables
from spark_jobs.graph.sql import delta_relation, pin_tables
from spark_jobs.names import TableName
from spark_jobs.storage import log
from spark_jobs.storage.lake import TableLocations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINES_OF_CAUSE = 4


class QueryRejectedError(LakehouseError):
    """Spark refuses a query, or fails while it runs it."""

    condition = "QUERY_REJECTED"

    def __init__(self, cause: str) -> None:
        self.cause = cause
        super().__init__("the query could not be run", detail=cause)


class TableNotWrittenError(LakehouseError):
    """A declared table that nothing has written yet."""

    condition = "TABLE_NOT_WRITTEN"

    def __init__(self, table: TableName) -> None:
        self.table = table
        super().__init__(
            f"table {str(table)!r} is declared and was never written",
            hint="Streams write bronze and silver (tidemark stream run); "
            "tidemark refresh writes gold.",
        )


@dataclass(frozen=True)
class QueryResult:
    """The rows, and whether there are more of them than were asked for."""

    rows: pa.Table
    more: bool


def pinned_query(query: str, locations: TableLocations, *, known: Collection[TableName]) -> str:
    """The SQL that Spark runs: every table at its newest version now, if not at one it names.

    Raises:
        SqlSyntaxError: it is not SQL.
        QueryNotReadOnlyError: it is not one SELECT, or it could do more than read.
        UnknownTableError: it reads a table that the project does not declare.
        TableNotWrittenError: it reads a table that was never written.
    """
    relations = {}
    for table, versioned in query_tables(query, known=known).items():
        location = locations.of(table)
        newest = log.table_version(location)
        if newest is None:
            raise TableNotWrittenError(table)
        relations[str(table)] = delta_relation(location, None if versioned else newest.version)
    return pin_tables(query.strip().rstrip(";"), relations)


def run_query(spark: SparkSession, sql: str, *, limit: int) -> QueryResult:
    """Run a SELECT.

    Args:
        spark: any session.
        sql: as ``pinned_query`` gives it.
        limit: rows at most; 0 for all of them.

    Raises:
        QueryRejectedError: Spark refuses it, or fails.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        frame = spark.sql(sql)
        rows = (frame.limit(limit + 1) if limit else frame).toArrow()
    except PySparkException as error:
        lines = str(error).strip().splitlines()[:_LINES_OF_CAUSE]
        raise QueryRejectedError("\n".join(lines)) from error
    more = bool(limit) and rows.num_rows > limit
    return QueryResult(rows.slice(0, limit) if more else rows, more)
