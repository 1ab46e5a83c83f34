"""A view's SQL with each table at its pinned version and CURRENT_TIMESTAMP as a literal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import InputReplacedError, QueryFailedError, UntypedColumnError
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
    """The SQL that Spark runs: the author's text, or the canonical form if that breaks ties.

    Args:
        context: gives the tables' locations.
        entry: the view.
        vector: the inputs' versions.
        clock: the value of CURRENT_TIMESTAMP.
        names: registered relations, by table; None: Delta's reader is addressed by path and
            version.
    """
    relations = names or {
        str(table): delta_relation(context.locations.of(table), version.version)
        for table, version in vector
    }
    text = entry.query if entry.breaks_ties else entry.sql
    return pin_tables(freeze_clock(text, clock), relations)


def check_inputs(context: GoldContext, view: str, vector: VersionVector) -> None:
    """Check that each input is still the table that the plan pinned.

    Raises:
        InputReplacedError: an input was dropped or recreated.
    """
    for table, version in vector:
        current = log.table_version(context.locations.of(table))
        if current is None or current.table_id != version.table_id:
            raise InputReplacedError(view, str(table))


@contextmanager
def named_inputs(
    context: GoldContext, view: str, vector: VersionVector, *, prefix: str
) -> Iterator[dict[str, Relation]]:
    """Register each input at its version as a temporary view, by the cheapest reader.

    Yields:
        the views as relations, by ``layer.name`` of the input.

    Raises:
        InputReplacedError: an input was dropped or recreated.
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
    """The view's rows, with exactly its columns and their descriptions as comments.

    For the arguments see ``pinned_sql``.

    Raises:
        InputReplacedError: an input was dropped or recreated.
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
    described = {column.name: column.meaning for column in entry.columns}
    # Aliases drop the metadata of the inputs' columns: comments, ids of column mapping, lengths of
    # CHAR and VARCHAR.
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
    """Turn Spark errors inside the block into ``QueryFailedError``.

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
    """The first lines of an error; Spark appends a query plan or a stack trace."""
    return "\n".join(_text(error).strip().splitlines()[:lines])


def _text(error: Exception) -> str:
    """The message of an error; for a JVM error, that of its root cause.

    Before it comes the last message with a condition of Spark's, which names the file of a read.
    """
    cause = getattr(error, "java_exception", None)
    messages = []
    while cause is not None:
        messages.append(str(cause.getMessage() or cause.toString()))
        cause = cause.getCause()
    if not messages:
        return str(error)
    named = [one for one in messages if one.startswith("[")]
    return "\n".join(dict.fromkeys([*named[-1:], messages[-1]]))
