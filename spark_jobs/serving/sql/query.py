"""Runs a query that somebody typed over the lake's tables, all at their newest versions."""

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# An operation that begins after an interrupt is not interrupted by it, so it is sent again.
_INTERRUPT_EVERY = 0.5


class QueryTimedOutError(LakehouseError):
    """A query ran longer than it may."""

    condition = "QUERY_TIMED_OUT"
    seconds: float
    primary = "the query was stopped after {seconds:g} seconds"
    hint = "Read less of the tables, or give it more time: --seconds; 0 sets no limit."


class TableNotWrittenError(LakehouseError):
    """A declared table that nothing has written yet."""

    condition = "TABLE_NOT_WRITTEN"
    table: TableName
    primary = "table '{table}' is declared and was never written"
    hint = "Streams write bronze and silver (tidemark stream run); tidemark refresh writes gold."


class MaskedVersionError(LakehouseError):
    """An older version of a table with masked columns, which may have had others."""

    condition = "MASKED_VERSION"
    table: str
    primary = "older versions of {table!r} are not shown: the table holds personal data"
    detail = "Its columns are masked as they are declared now."
    hint = "Read the newest version, or pass --pii where you may see personal data."


@dataclass(frozen=True)
class PinnedQuery:
    """What Spark runs.

    Attributes:
        sql: the SELECT over Delta tables at versions, and over views of the session.
        made: tables of ``ops`` that it reads; each must be a view of the session, ``view_of``.
        policy: what Spark is told that it may read.
    """

    sql: str
    made: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True)
class QueryResult:
    """The rows, and whether there are more of them than were asked for."""

    rows: pa.Table
    more: bool


def view_of(made: str) -> str:
    """The name that a session has for a table of ``ops``.

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
    """The SQL that Spark runs: every table at its newest version now, if not at one it names.

    Args:
        query: what somebody typed.
        locations: where the tables lie.
        known: the tables that the project declares.
        made: names of the tables of ``ops``.
        masked: columns whose values are not shown, in lower case, by table.
        views: the schema that holds their views; "" for the session's own.

    Raises:
        SqlSyntaxError: it is not SQL.
        QueryNotReadOnlyError: it is not one SELECT, or it could do more than read.
        UnknownTableError: it reads a table that the project does not declare.
        TableNotWrittenError: it reads a table that was never written.
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
    """Run a SELECT, which Spark holds to its policy.

    Args:
        spark: a session that runs nothing else.
        query: as ``pinned_query`` gives it.
        limit: rows at most; 0 for all of them.
        seconds: how long it may run; 0 for as long as it takes.

    Raises:
        VersionNotKeptError: a version of a table is not there, or its files are gone.
        QueryTimedOutError: it takes longer than it may.
        QueryNotReadOnlyError: Spark's plan of it does more than read what it may.
        QueryColumnUnknownError: it names a column that is not there.
        QueryFunctionUnknownError: it calls a function that Spark does not have.
        QueryRejectedError: Spark refuses it for another reason, or fails.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    with interrupted_after(spark, seconds) as over:
        try:
            with enforced(spark, query.policy):
                frame = spark.sql(query.sql)
                rows = (frame.limit(limit + 1) if limit else frame).toArrow()
        # While rows are fetched, a session in this process gives Java's error as it is.
        except (PySparkException, Py4JJavaError) as error:
            if over.is_set():
                raise QueryTimedOutError(seconds) from error
            raise query_error(_messages(error)) from error
    more = bool(limit) and rows.num_rows > limit
    return QueryResult(rows.slice(0, limit) if more else rows, more)


@contextmanager
def interrupted_after(spark: SparkSession, seconds: float) -> Iterator[threading.Event]:
    """Interrupt what a session runs once its time is over, or on Ctrl-C.

    Args:
        spark: a session that runs nothing else.
        seconds: the time; 0 for no end.

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
        # What the session runs next must not be hit by an interrupt that is under way.
        watcher.join()


def _messages(error: Exception) -> list[str]:
    """What an error says, and its causes in Java."""
    found, java = [], getattr(error, "java_exception", None)
    while java is not None:
        found.append(str(java.getMessage()).strip())
        java = java.getCause()
    return found or [str(error).strip()]
