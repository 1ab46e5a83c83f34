"""Reads and writes Delta tables with Spark, for ``reader`` and ``writer``.

Uses DataFrames and SQL only, so that it works over Spark Connect.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spark_jobs.graph.last_step import RowStep
from spark_jobs.storage.columns import ColumnSpec, quoted
from spark_jobs.storage.delta import FLAG, Txn
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.merge_sql import merge_sql
from spark_jobs.storage.rows import Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

_WRITE = "spark.databricks.delta.write"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
# Delta's conditions for a commit that another one came before.
_CONFLICT = re.compile(r"\[DELTA_(?:CONCURRENT_[A-Z_]+|METADATA_CHANGED|PROTOCOL_CHANGED)\b[^\n]*")


def read(spark: SparkSession, location: str, version: int | None = None) -> DataFrame:
    """A table at a version, by default the newest."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(location)


def add_columns(spark: SparkSession, location: str, columns: Sequence[ColumnSpec]) -> None:
    """Add columns to a table in one commit; existing rows have NULL there."""
    added = ", ".join(f"{quoted(one.name)} {one.type}" for one in columns)
    with _unmoved(location):
        spark.sql(f"ALTER TABLE delta.{quoted(location)} ADD COLUMNS ({added})").collect()


def append(
    frame: DataFrame,
    location: str,
    *,
    txn: Txn | None = None,
    metadata: Mapping[str, Any] | None = None,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Append rows in one commit, which also creates the table with its properties if needed.

    Args:
        frame: rows with the table's columns.
        location: of the table.
        txn: identity of the write.
        metadata: user metadata of the commit.
        properties: table properties, by Delta's names.

    Raises:
        TableMovedError: another writer changed the table's columns or properties at the same time.
    """
    with _unmoved(location):
        _writer(frame, "append", txn, metadata, properties).save(location)


def overwrite(
    frame: DataFrame,
    location: str,
    *,
    txn: Txn | None = None,
    metadata: Mapping[str, Any] | None = None,
    properties: Mapping[str, str] | None = None,
    partition_by: Sequence[str] = (),
) -> None:
    """Replace rows, columns and partitions in one commit; creates the table if necessary.

    Raises:
        TableMovedError: another writer committed at the same time.
    """
    writer = _writer(frame, "overwrite", txn, metadata, properties)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    with _unmoved(location):
        writer.option("overwriteSchema", "true").save(location)


def rewrite(spark: SparkSession, location: str) -> None:
    """Write all files of a table again, in one commit that changes no data.

    Raises:
        TableMovedError: another writer committed at the same time.
    """
    writer = read(spark, location).write.format("delta").mode("overwrite")
    with _unmoved(location):
        writer.option("dataChange", "false").save(location)


def changes(spark: SparkSession, location: str, *, after: int, upto: int) -> DataFrame:
    """The inserted and deleted rows of the versions in (after, upto].

    Returns:
        the table's columns, ``_change_type``, ``_commit_version`` and ``_commit_timestamp``.
    """
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    versions = {"startingVersion": str(after + 1), "endingVersion": str(upto)}
    return reader.options(**versions).load(location)


def merge_rows(
    spark: SparkSession,
    location: str,
    *,
    deleted: DataFrame,
    inserted: DataFrame,
    step: RowStep,
    txn: Txn,
    metadata: Mapping[str, Any],
) -> None:
    """Delete and insert rows in one commit.

    Args:
        spark: session to use.
        location: of the table.
        deleted: rows to delete, with the table's columns, each once; all copies in the table are
            deleted.
        inserted: rows to insert, with the same columns.
        step: how a row to delete is found in the table.
        txn: identity of the write.
        metadata: user metadata of the commit.

    Raises:
        TableMovedError: another writer committed at the same time.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    columns = deleted.columns
    flagged = F.expr("TRUE").alias(FLAG), F.expr("FALSE").alias(FLAG)
    named = [F.col(quoted(name)) for name in columns]
    source = deleted.select(*named, flagged[0]).unionAll(inserted.select(*named, flagged[1]))
    view = f"__merge_{uuid.uuid4().hex}"
    source.createOrReplaceTempView(view)
    try:
        with _unmoved(location), session_values(spark, _write_options(txn, metadata)):
            target = f"delta.{quoted(location)}"
            spark.sql(merge_sql(target, view, columns=columns, step=step)).collect()
    finally:
        spark.catalog.dropTempView(view)


def merge(source: DataFrame, location: str, how: Merge, *, txn: Txn) -> None:
    """Merge rows into a table in one commit.

    Args:
        source: rows with the columns of ``how`` and those that its conditions read; keys are
            unique.
        location: of the table.
        how: conditions to update, insert and delete.
        txn: identity of the write.

    Raises:
        TableMovedError: another writer committed at the same time.
    """
    from delta.tables import DeltaTable as SparkTable  # noqa: PLC0415

    values = {f"`{name}`": f"s.`{name}`" for name in how.columns}
    matches = " AND ".join(f"t.`{key}` = s.`{key}`" for key in how.keys)
    spark = source.sparkSession
    with _unmoved(location), session_values(spark, _transaction(txn)):
        builder = SparkTable.forPath(spark, location).alias("t").merge(source.alias("s"), matches)
        if how.delete:
            builder = builder.whenMatchedDelete(how.delete)
        if how.delete_others is not None:
            builder = builder.whenNotMatchedBySourceDelete(how.delete_others)
        builder = builder.whenMatchedUpdate(how.update, set=values)
        builder.whenNotMatchedInsert(how.insert, values=values).execute()


def delete_rows(
    spark: SparkSession, location: str, condition: str, *, txn: Txn, metadata: Mapping[str, Any]
) -> None:
    """Delete the rows that match a Spark SQL condition, in one commit.

    Raises:
        TableMovedError: another writer committed at the same time.
    """
    with _unmoved(location), session_values(spark, _write_options(txn, metadata)):
        spark.sql(f"DELETE FROM delta.{quoted(location)} WHERE {condition}").collect()


def _write_options(txn: Txn, metadata: Mapping[str, Any]) -> dict[str, str]:
    """Session settings that give a SQL statement its transaction id and user metadata."""
    said = {_METADATA: json.dumps(metadata, sort_keys=True, default=str)}
    return {**_transaction(txn), **said}


def _transaction(txn: Txn) -> dict[str, str]:
    # SQL statements take their transaction id from the session; each stream has its own session.
    return {f"{_WRITE}.txnAppId": txn.app_id, f"{_WRITE}.txnVersion": str(txn.version)}


def empty_values(
    places: DataFrame,
    location: str,
    columns: Sequence[str],
    *,
    by: Sequence[str],
    metadata: Mapping[str, Any],
) -> None:
    """Set values of some rows to NULL in one commit; old values remain in old files until a vacuum.

    Args:
        places: the rows, each once, identified by the columns ``by``.
        location: of the table.
        columns: columns to set to NULL.
        by: columns that identify the rows to change.
        metadata: user metadata of the commit.

    Raises:
        TableMovedError: another writer committed at the same time.
    """
    from delta.tables import DeltaTable  # noqa: PLC0415

    spark = places.sparkSession
    same = " AND ".join(f"t.{quoted(one)} = s.{quoted(one)}" for one in by)
    held = " OR ".join(f"t.{quoted(one)} IS NOT NULL" for one in columns)
    conf = {_METADATA: json.dumps(metadata, sort_keys=True, default=str)}
    with _unmoved(location), session_values(spark, conf):
        (
            DeltaTable.forPath(spark, location)
            .alias("t")
            .merge(places.alias("s"), same)
            .whenMatchedUpdate(held, set={quoted(one): "NULL" for one in columns})
            .execute()
        )


@contextmanager
def session_values(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Set options of a session, by name, for a while: SQL statements take them only from there."""
    before: dict[str, str | None] = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            # Restore old values: unset would give Spark's default.
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


@contextmanager
def _unmoved(location: str) -> Iterator[None]:
    """Turn a conflict with another commit into ``TableMovedError``.

    Raises:
        TableMovedError: another writer committed first; nothing was written.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        conflict = _CONFLICT.search(str(error))
        if conflict is None:
            raise
        raise TableMovedError(location, conflict[0]) from error


def _writer(
    frame: DataFrame,
    mode: str,
    txn: Txn | None,
    metadata: Mapping[str, Any] | None,
    properties: Mapping[str, str] | None,
) -> DataFrameWriter:
    options = dict(properties or {})
    if txn is not None:
        options |= {"txnAppId": txn.app_id, "txnVersion": str(txn.version)}
    if metadata is not None:
        options["userMetadata"] = json.dumps(metadata, sort_keys=True, default=str)
    return _with_options(frame.write.format("delta").mode(mode), options)


def _with_options(writer: DataFrameWriter, options: Mapping[str, str]) -> DataFrameWriter:
    for key, value in options.items():
        writer = writer.option(key, value)
    return writer
