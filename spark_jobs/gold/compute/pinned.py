"""A view's SQL with every table at its pinned version and the clock stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.errors import InputReplacedError, QueryFailedError, UntypedColumnError
from spark_jobs.graph.clock import freeze_clock
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.sql import Relation, delta_relation, named_relation, pin_tables
from spark_jobs.planning.vector import VersionVector
from spark_jobs.storage import log, reader
from spark_jobs.storage.columns import comment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def pinned_sql(
    context: GoldContext,
    entry: GoldEntry,
    *,
    vector: VersionVector,
    clock: datetime,
    names: Mapping[str, Relation] | None = None,
) -> str:
    """The SQL that Spark runs: the text as its author wrote it, not the canonical one.

    Args:
        context: where the tables are.
        entry: the view.
        vector: the inputs' versions.
        clock: what the clock shows.
        names: the inputs' names, where they have some; without, Delta's reader is asked for them.
    """
    relations = names or {
        str(table): delta_relation(context.locations.of(table), version.version)
        for table, version in vector
    }
    return pin_tables(freeze_clock(entry.sql, clock), relations)


def check_inputs(context: GoldContext, view: str, vector: VersionVector) -> None:
    """Look whether the inputs are still the tables that the plan pinned.

    Raises:
        InputReplacedError: another table lies where the plan pinned one.
    """
    for table, version in vector:
        current = log.table_version(context.locations.of(table))
        if current is None or current.table_id != version.table_id:
            raise InputReplacedError(view, str(table))


@contextmanager
def named_inputs(
    context: GoldContext, view: str, vector: VersionVector, *, prefix: str
) -> Iterator[dict[str, Relation]]:
    """Names for the inputs at their versions, read by the cheapest way, while the context lasts.

    Raises:
        InputReplacedError: another table lies where the plan pinned one.
    """
    check_inputs(context, view, vector)
    found = {str(table): f"{prefix}_{table.layer}_{table.name}" for table, _ in vector}
    try:
        for table, version in vector:
            frame = reader.read(context.spark, context.locations.of(table), version.version)
            frame.createOrReplaceTempView(found[str(table)])
        yield {table: named_relation(name) for table, name in found.items()}
    finally:
        for name in found.values():
            context.spark.catalog.dropTempView(name)


def pinned_result(
    context: GoldContext,
    entry: GoldEntry,
    *,
    vector: VersionVector,
    clock: datetime,
    names: Mapping[str, Relation] | None = None,
) -> DataFrame:
    """The view's content, with exactly its columns and their descriptions as comments.

    The arguments are those of ``pinned_sql``.

    Raises:
        InputReplacedError: another table lies where the plan pinned one.
        QueryFailedError: Spark refuses the query.
        UntypedColumnError: a column has no type.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import functions as F  # noqa: N812, PLC0415
    from pyspark.sql.types import NullType  # noqa: PLC0415

    if names is None:
        check_inputs(context, entry.name, vector)
    try:
        text = pinned_sql(context, entry, vector=vector, clock=clock, names=names)
        frame = context.spark.sql(text)
        fields = frame.schema.fields
    except PySparkException as error:
        raise QueryFailedError(entry.name, first_lines(error)) from error
    untyped = [field.name for field in fields if isinstance(field.dataType, NullType)]
    if untyped:
        raise UntypedColumnError(entry.name, untyped)
    described = {column.name: column.description for column in entry.columns}
    # Naming every column again drops what an input's columns carry: their comments, the ids of
    # column mapping, the lengths of CHAR and VARCHAR.
    return frame.select(
        *(
            F.col(f"`{field.name.replace('`', '``')}`").alias(
                field.name, metadata=comment(described.get(field.name))
            )
            for field in fields
        )
    )


@contextmanager
def query_failures(view: str) -> Iterator[None]:
    """Tell of Spark's errors in a block as the failure of a view's query.

    Raises:
        QueryFailedError: Spark refuses or fails the query.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise QueryFailedError(view, first_lines(error)) from error


def first_lines(error: Exception, *, lines: int = 4) -> str:
    """The start of an error's text: Spark puts a query plan or a stack trace after it."""
    return "\n".join(_text(error).strip().splitlines()[:lines])


def _text(error: Exception) -> str:
    """What an error says; one that a JVM of this process raised says it at its root."""
    root = getattr(error, "java_exception", None)
    while root is not None and (cause := root.getCause()) is not None:
        root = cause
    return str(error if root is None else root.getMessage() or root.toString())
