"""Runs a user's query over the lake's tables at their newest versions."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.query import query_tables
from spark_jobs.graph.sql import (
    Relation,
    delta_relation,
    masked_relation,
    named_relation,
    pin_tables,
)
from spark_jobs.names import OPS_SCHEMA, TableName
from spark_jobs.serving.sql.spark_words import query_error
from spark_jobs.storage import log
from spark_jobs.storage.guard import AllowedTable, Policy, enforced
from spark_jobs.storage.lake import TableLocations
from spark_jobs.storage.rows import any_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# An operation that starts after an interrupt is not affected, so repeat it.
_INTERRUPT_EVERY = 0.5


class QueryTimedOutError(LakehouseError):
    """A query exceeded its time limit."""

    condition = "QUERY_TIMED_OUT"
    seconds: float
    primary = "the query was stopped after {seconds:g} seconds"
    hint = "Read less of the tables, or raise the limit: --seconds; 0 sets no limit."


class TableNotWrittenError(LakehouseError):
    """A declared table does not exist yet."""

    condition = "TABLE_NOT_WRITTEN"
    table: TableName
    primary = "table '{table}' is declared, but was never written"
    hint = "Streams write bronze and silver (tidemark stream run); tidemark refresh writes gold."


class MaskedVersionError(LakehouseError):
    """An older version of a table with masked columns, which may have had other columns."""

    condition = "MASKED_VERSION"
    table: str
    primary = "older versions of {table!r} are not shown: the table holds personal data"
    detail = "Columns are masked by the current declaration only."
    hint = "Read the newest version, or pass --pii if you may see personal data."


@dataclass(frozen=True)
class PinnedQuery:
    """A query for Spark.

    Attributes:
        sql: the SELECT over Delta tables at versions, and over views of the session.
        made: tables of ``ops`` that it reads; each needs a view named by ``view_of``.
        policy: what Spark may read.
    """

    sql: str
    made: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True)
class QueryResult:
    """The rows, and whether there are more."""

    rows: pa.Table
    more: bool


def view_of(made: str) -> str:
    """The session's view name of a table of ``ops``.

    >>> view_of("ops.freshness")
    '__ops_freshness'
    """
    return "__" + made.replace(".", "_")


def pinned_query(
    query: str,
    locations: TableLocations,
    *,
    known: Collection[TableName],
    made: Collection[str] = (),
    masked: Mapping[str, Collection[str]] = MappingProxyType({}),
    views: str = "",
) -> PinnedQuery:
    """The SQL for Spark: tables without a version are read at their newest.

    Args:
        query: the user's text.
        locations: locations of the tables.
        known: declared tables.
        made: names of the tables of ``ops``.
        masked: lower-case names of masked columns, by table.
        views: schema of the ``ops`` views; "" for the session's own.

    Raises:
        SqlSyntaxError: it is not valid SQL.
        QueryNotReadOnlyError: it is not one SELECT, or may do more than read.
        UnknownTableError: it reads an undeclared table.
        TableNotWrittenError: it reads a table that does not exist yet.
        MaskedVersionError: it reads an older version of a table with masked columns.
    """
    relations: dict[str, Relation | str] = {}
    allowed: list[AllowedTable] = []
    read: list[str] = []
    found = query_tables(query, known={*map(str, known), *made})
    for name, versioned in found.items():
        if name.startswith(f"{OPS_SCHEMA}."):
            read.append(f"{views}.{view_of(name)}".lstrip("."))
            relations[name] = named_relation(read[-1])
            continue
        location = locations.of(TableName.parse(name))
        newest = log.table_version(location)
        if newest is None:
            raise TableNotWrittenError(TableName.parse(name))
        if hidden := masked.get(name):
            if versioned:
                raise MaskedVersionError(name)
            columns = [(one.name, one.type) for one in log.schema(location, newest.version)]
            pinned = delta_relation(location, newest.version)
            relations[name] = masked_relation(pinned, columns, hidden)
            allowed.append(AllowedTable(location, newest.version, frozenset(hidden)))
            continue
        version = None if versioned else newest.version
        relations[name] = delta_relation(location, version)
        allowed.append(AllowedTable(location, version))
    sql = pin_tables(query, relations).strip().rstrip("; \n")
    policy = Policy(tuple(allowed), tuple(read))
    return PinnedQuery(sql, tuple(name for name in found if name in made), policy)


def run_query(
    spark: SparkSession, query: PinnedQuery, *, limit: int, seconds: float
) -> QueryResult:
    """Run a SELECT; Spark enforces its policy.

    Args:
        spark: a session used for nothing else.
        query: from ``pinned_query``.
        limit: maximum number of rows; 0: all.
        seconds: time limit; 0: none.

    Raises:
        VersionNotKeptError: a table version does not exist, or its files are deleted.
        QueryTimedOutError: the time limit was exceeded.
        QueryNotReadOnlyError: Spark's plan reads more than the policy allows.
        QueryColumnUnknownError: a column does not exist.
        QueryFunctionUnknownError: a function does not exist in Spark.
        QueryRejectedError: Spark rejects it for another reason, or fails.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    with interrupted_after(spark, seconds) as over:
        try:
            with enforced(spark, query.policy):
                frame = spark.sql(query.sql)
                rows = any_rows(frame.limit(limit + 1) if limit else frame)
        # While fetching rows, a session in this process raises Java's own error.
        except (PySparkException, Py4JJavaError) as error:
            if over.is_set():
                raise QueryTimedOutError(seconds) from error
            raise query_error(_messages(error)) from error
    more = bool(limit) and rows.num_rows > limit
    return QueryResult(rows.slice(0, limit) if more else rows, more)


@contextmanager
def interrupted_after(spark: SparkSession, seconds: float) -> Iterator[threading.Event]:
    """Interrupt a session's operations after a time limit, or on Ctrl-C.

    Args:
        spark: a session used for nothing else.
        seconds: the time limit; 0: none.

    Yields:
        an event that is set when the time is over.
    """
    over, ended = threading.Event(), threading.Event()

    def watch() -> None:
        if ended.wait(seconds or None):
            return
        over.set()
        while not ended.is_set():
            spark.interruptAll()
            ended.wait(_INTERRUPT_EVERY)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield over
    except KeyboardInterrupt:
        spark.interruptAll()
        raise
    finally:
        ended.set()
        # Wait for a pending interrupt, so that it does not hit the session's next operation.
        watcher.join()


def _messages(error: Exception) -> list[str]:
    """The messages of an error and of its causes in Java."""
    found, java = [], getattr(error, "java_exception", None)
    while java is not None:
        found.append(str(java.getMessage()).strip())
        java = java.getCause()
    return found or [str(error).strip()]
