"""Reads a source table as silver would see it from a new snapshot.

Each row is converted to the connector's record and typed by silver's own code. So a value differs
from silver's only if the database's value does, and an unusable value is rejected with the same
reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.types import TypeInfo
from psycopg.types.string import TextLoader
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StructField, StructType

from spark_jobs.access import timeouts
from spark_jobs.access.postgres import certificate_refusal
from spark_jobs.access.source_tables import PostgresType, SourceTable, describe_table
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.names import BronzeColumn
from spark_jobs.silver.check.connector_values import json_writer
from spark_jobs.silver.check.samples import Choose, Sample
from spark_jobs.silver.errors import DatabaseUnreachableError
from spark_jobs.silver.parse.typed import typed_records
from spark_jobs.storage.rows import from_arrow

# Session settings that determine the text form of values.
_SESSION = "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c bytea_output=hex"
_PAGE = 20_000
_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])
# The other fields of the connector's record of a snapshot row.
_SNAPSHOT = '"before":null,"op":"r","source":{"lsn":0,"ts_ms":0}'


@dataclass(frozen=True)
class SourceRows:
    """The rows of a source table.

    Attributes:
        typed: output of ``typed_records``; a row that silver would reject has a problem.
        count: number of rows.
        unread: declared columns whose type the connector does not send, with that type; their
            values are NULL.
        sample: which rows were read; None: all.
    """

    typed: DataFrame
    count: int
    unread: tuple[tuple[str, str], ...] = ()
    sample: Sample | None = None


def read_rows(
    spark: SparkSession,
    source: SourceEntry,
    *,
    dsn: str,
    max_bytes: int,
    choose: Choose = lambda *_: None,
) -> SourceRows:
    """Read the declared columns of the source table in one snapshot.

    Args:
        spark: any session.
        source: a Debezium source with a ``table``.
        dsn: connection string of the source database.
        max_bytes: longer records are never applied.
        choose: chooses the rows to read; by default all.

    Raises:
        DatabaseUnreachableError: the database or the table cannot be read.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    with opened(dsn, source) as (connection, table):
        kinds = {column.name: table.columns[column.name] for column in source.columns}
        sample = choose(connection, kinds)
        batches = list(snapshot_records(connection, source, kinds, sample=sample))
    records = pa.Table.from_batches(batches, _SCHEMA)
    bronze = as_bronze(spark, records)
    # The database returns all values, so use a placeholder that none of them equals.
    unused_placeholder = uuid4().hex
    typed = typed_records(bronze, source, max_bytes=max_bytes, placeholder=unused_placeholder)
    unread = tuple((name, kind.shown) for name, kind in kinds.items() if json_writer(kind) is None)
    return SourceRows(typed, records.num_rows, unread, sample)


def as_bronze(spark: SparkSession, records: pa.Table) -> DataFrame:
    """Records with bronze's columns, as if they had just arrived.

    Args:
        spark: any session.
        records: the columns ``key`` and ``value``; it may be empty.
    """
    at, nothing = sf.current_timestamp(), sf.lit(None)
    kinds = StructType([StructField(name, BinaryType()) for name in _SCHEMA.names])
    return from_arrow(spark, records, lambda: kinds).select(
        *(sf.col(name) for name in _SCHEMA.names),
        sf.array().cast("array<struct<key:string,value:binary>>").alias(BronzeColumn.HEADERS),
        nothing.cast("string").alias(BronzeColumn.TOPIC),
        nothing.cast("int").alias(BronzeColumn.PARTITION),
        nothing.cast("bigint").alias(BronzeColumn.OFFSET),
        at.alias(BronzeColumn.TIMESTAMP),
        at.alias(BronzeColumn.ARRIVED_AT),
    )


@contextmanager
def opened(dsn: str, source: SourceEntry) -> Iterator[tuple[psycopg.Connection[Any], SourceTable]]:
    """A read-only connection with one snapshot, and the table's description.

    Raises:
        DatabaseUnreachableError: the database cannot be reached, or the table or a declared column
            is missing.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    name = source.table or ""
    try:
        with psycopg.connect(dsn, **timeouts.POSTGRES, options=_SESSION) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            table = describe_table(connection, name)
            if table is None:
                raise DatabaseUnreachableError(name, "there is no such table")
            for column in source.columns:
                if column.name not in table.columns:
                    raise DatabaseUnreachableError(name, f"it has no column {column.name!r}")
            yield connection, table
    except psycopg.Error as error:
        refused = certificate_refusal(dsn, error)
        raise refused or DatabaseUnreachableError(name, str(error)) from error


def snapshot_records(
    connection: psycopg.Connection[Any],
    source: SourceEntry,
    kinds: Mapping[str, PostgresType],
    *,
    sample: Sample | None = None,
) -> Iterator[pa.RecordBatch]:
    """Each row of the source table as Debezium writes a snapshot's record, in pages.

    Args:
        connection: from ``opened``.
        source: a Debezium source with a ``table``.
        kinds: the types of the declared columns.
        sample: which rows; None: all.

    Yields:
        the columns ``key`` and ``value`` of the records, as JSON in UTF-8.
    """
    sent = {name: kind for name, kind in kinds.items() if json_writer(kind) is not None}
    writers = [json_writer(kind) for kind in sent.values()]
    labels = [f"{json.dumps(name)}:" for name in sent]
    keys = [at for at, name in enumerate(sent) if name in source.keys]
    query = sql.SQL("SELECT {} FROM {}").format(
        sql.SQL(", ").join(_selected(name, kind) for name, kind in sent.items()),
        sql.Identifier(*(source.table or "").split(".")),
    )
    if sample is not None:
        query = sql.SQL("{} WHERE {}").format(query, sample.condition())
    with connection.cursor(name="tidemark") as cursor:
        for kind in sent.values():
            _as_text(cursor, kind)
        cursor.execute(query)
        while rows := cursor.fetchmany(_PAGE):
            values, names = [], []
            for row in rows:
                parts = [
                    f"{label}{writer(value)}"
                    for label, writer, value in zip(labels, writers, row, strict=True)
                    if writer is not None
                ]
                values.append(f'{{{_SNAPSHOT},"after":{{{",".join(parts)}}}}}'.encode())
                names.append(f"{{{','.join(parts[at] for at in keys)}}}".encode())
            yield pa.record_batch([names, values], schema=_SCHEMA)


def _as_text(cursor: psycopg.Cursor[Any], kind: PostgresType) -> None:
    """Make a cursor return a type's values as the server's text, and arrays as lists of text."""
    cursor.adapters.register_loader(kind.oid, TextLoader)
    if kind.array is not None:
        TypeInfo(kind.name, kind.oid, kind.array).register(cursor)


def _selected(name: str, kind: PostgresType) -> sql.Composable:
    column = sql.Identifier(name)
    # The text form of money depends on the server's locale; numeric does not.
    return sql.SQL("{}::numeric::text").format(column) if kind.name == "money" else column
