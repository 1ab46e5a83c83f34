"""Silver against the database that its changes come from, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import IsolationLevel, sql

from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.graph.projection import plain_columns
from spark_jobs.silver.errors import SourceDatabaseError
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.tables import read, struct_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

EXAMPLES = 5


@dataclass(frozen=True)
class SourceComparison:
    """A silver table beside its source table.

    Attributes:
        rows: rows of the source table.
        missing: rows that only the source has, as a bag.
        unexpected: rows that only silver has, as a bag.
        examples: some of them; the key ``""`` tells the side, "-" missing and "+" unexpected.
    """

    silver: str
    rows: int
    missing: int
    unexpected: int
    examples: tuple[Mapping[str, Any], ...]

    @property
    def equal(self) -> bool:
        return not (self.missing or self.unexpected)


def comparable(entry: SilverEntry, source: SourceEntry) -> bool:
    """Whether the silver table is its source table, column by column and row by row."""
    return (
        source.table is not None
        and entry.apply is ApplyMode.UPSERT
        and plain_columns(entry.projection) is not None
    )


def compare_with_source(
    spark: SparkSession, lake: Lake, entry: SilverEntry, *, source: SourceEntry, dsn: str
) -> SourceComparison:
    """Compare as bags of rows, in the columns of the silver SELECT.

    The source's rows are read into memory, at one snapshot.

    Raises:
        SourceDatabaseError: the database does not answer or refuses the query.
    """
    rows = _source_rows(spark, entry, source=source, dsn=dsn)
    theirs = spark.createDataFrame(rows, schema=struct_type(spark, entry.columns))
    names = [column.name for column in entry.columns]
    ours = read(spark, lake.location(entry.table_name)).select(*names)
    missing, unexpected = theirs.exceptAll(ours), ours.exceptAll(theirs)
    found = {"-": missing.count(), "+": unexpected.count()}
    examples = tuple(
        {"": side, **row.asDict()}
        for side, frame in (("-", missing), ("+", unexpected))
        if found[side]
        for row in frame.limit(EXAMPLES).collect()
    )
    return SourceComparison(entry.name, rows.num_rows, found["-"], found["+"], examples)


def _source_rows(
    spark: SparkSession, entry: SilverEntry, *, source: SourceEntry, dsn: str
) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    columns = plain_columns(entry.projection) or {}
    chosen = sql.SQL(", ").join(sql.Identifier(name) for name in columns.values())
    table = sql.SQL(".").join(sql.Identifier(part) for part in (source.table or "").split("."))
    try:
        with psycopg.connect(dsn, connect_timeout=5) as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            query = sql.SQL("SELECT {} FROM {}").format(chosen, table)
            found = connection.execute(query).fetchall()
    except psycopg.Error as error:
        raise SourceDatabaseError(entry.name, str(source.table), str(error)) from error
    schema = to_arrow_schema(struct_type(spark, entry.columns))
    return pa.Table.from_pylist(
        [dict(zip(columns, map(_in_utc, row), strict=True)) for row in found], schema=schema
    )


def _in_utc(value: Any) -> Any:
    """A time without a zone is UTC, as it is in the lake."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value
