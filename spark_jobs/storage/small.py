"""Writing a few rows that are in this process: one commit, and no Spark.

Spark writes ten rows in as many jobs as a million. What a row is has been decided before, by
Spark; here rows are only moved, by delta-rs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem
from pyarrow.parquet import ParquetFile

from spark_jobs.storage import policy, tables
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.plain import PlainTable, plain_table
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.tables import Txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Types whose values both engines compare alike: floating point has NaN and -0.0.
_COMPARED = re.compile(
    r"tinyint|smallint|int|bigint|boolean|string|binary|date|timestamp|timestamp_ntz|decimal\(.*\)"
)
_MOVED = re.compile(rf"({_COMPARED.pattern}|float|double|array|map|struct|[\w-]+:|[<>,])*")


def fetched(frame: DataFrame) -> pa.Table | None:
    """The rows of a DataFrame; None where there are many, or types that do not travel."""
    if not fits_arrow(frame):
        return None
    limit = policy.RESULT
    rows = to_arrow(frame if limit.rows is None else frame.limit(limit.rows + 1))
    return rows if limit.fits(rows=rows.num_rows) else None


def to_arrow(frame: DataFrame) -> pa.Table:
    """All rows of a DataFrame, in this process.

    Spark knows a struct without NULL inside that is NULL itself; to Arrow that is an error.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    # As it is written, a type may hold NULL anywhere.
    wider = {
        name: F.col(tables.quoted(name)).cast(kind)
        for name, kind in kinds.items()
        if kind.startswith(("struct<", "array<", "map<"))
    }
    return (frame.withColumns(wider) if wider else frame).toArrow()


def from_arrow(
    session: SparkSession, rows: pa.Table, schema: Callable[[], StructType]
) -> DataFrame:
    """Rows as a DataFrame; ``schema`` is asked only where there are none.

    Of a table without rows a server of Spark Connect learns no columns.
    """
    if not rows.num_rows:
        return session.createDataFrame([], schema())
    # In one piece: Spark takes an empty piece for the end of the rows.
    return session.createDataFrame(rows.combine_chunks())


def fits_arrow(frame: DataFrame) -> bool:
    """Whether all types mean the same in Spark, in Arrow and in a table."""
    kinds = [field.dataType.simpleString() for field in frame.schema.fields]
    return all(_MOVED.fullmatch(one) for one in kinds)


@usual_rights()
def write_rows(
    rows: pa.Table,
    location: str,
    *,
    metadata: Mapping[str, Any],
    comments: Mapping[str, str | None] | None = None,
) -> None:
    """Replace rows and columns of a table in one commit; creates it where there is none.

    Args:
        rows: of the table.
        location: of the table.
        metadata: what the commit says about itself.
        comments: the columns' descriptions, by name.

    Raises:
        TableMovedError: somebody else committed at the same moment; nothing was written.
    """
    columns = [
        pa.field(one.name, one.type, metadata=tables.comment((comments or {}).get(one.name)))
        for one in rows.schema
    ]
    try:
        write_deltalake(
            plain_location(location),
            rows.cast(pa.schema(columns)),
            mode="overwrite",
            schema_mode="overwrite",
            configuration=dict(tables.SHORT_LOG),
            commit_properties=_commit(metadata),
        )
    except CommitFailedError as error:
        raise TableMovedError(location, str(error)) from error


def read_rows(location: str) -> pa.Table | None:
    """The rows of a small table as it is; None where its files hold them in a form of Spark's."""
    table = plain_table(location)
    if table is None or not policy.REWRITTEN.fits(size=table.bytes) or _has_nanoseconds(table):
        return None
    files = PyFileSystem(DeltaStorageHandler(table.location))
    schema = pa.schema(DeltaTable(table.location, version=table.version).schema().to_arrow())
    parts = [ParquetFile(files.open_input_file(path)).read().cast(schema) for path in table.files]
    return pa.concat_tables(parts) if parts else schema.empty_table()


@usual_rights()
def append_rows(rows: pa.Table, location: str, *, after: int, metadata: Mapping[str, Any]) -> None:
    """Add rows to a table in one commit, right after a version of it.

    Args:
        rows: of the table's columns and types.
        location: of the table.
        after: the version.
        metadata: what the commit says about itself.

    Raises:
        TableMovedError: somebody else committed first; nothing was written.
    """
    table = DeltaTable(plain_location(location), version=after)
    columns = pa.schema(table.schema().to_arrow())
    rows = rows.select(columns.names).cast(columns)
    try:
        write_deltalake(table, rows, mode="append", commit_properties=_commit(metadata))
    except CommitFailedError as error:
        raise TableMovedError(table.table_uri, str(error)) from error


@usual_rights()
def create_rows(rows: pa.Table, location: str) -> DeltaTable:
    """Create a table with a change feed, and with these rows."""
    write_deltalake(
        plain_location(location), rows, mode="error", configuration=dict(tables.CHANGE_FEED)
    )
    return DeltaTable(plain_location(location))


def open_for_rows(location: str, kinds: Mapping[str, str], key: Sequence[str]) -> DeltaTable | None:
    """A table as it is now, if ``change_rows`` can write rows into it; otherwise None.

    Args:
        location: of the table.
        kinds: the Spark SQL types of the rows' columns.
        key: columns that tell the table's rows apart; with none all columns do.
    """
    if not all(_MOVED.fullmatch(one) for one in kinds.values()) or not compared(kinds, key):
        return None
    return open_for_rewriting(location)


def compared(kinds: Mapping[str, str], key: Sequence[str] = ()) -> bool:
    """Whether all engines tell rows apart alike, by their key or by all columns.

    Args:
        kinds: the Spark SQL types of the rows' columns.
        key: columns that tell the rows apart; with none all columns do.
    """
    return all(_COMPARED.fullmatch(kinds[one]) for one in key or kinds)


def open_for_rewriting(location: str) -> DeltaTable | None:
    """A table as it is now, if it is small and its files can be rewritten without Spark."""
    table = plain_table(location)
    if table is None or not table.written or not policy.REWRITTEN.fits(size=table.bytes):
        return None
    return None if _has_nanoseconds(table) else DeltaTable(table.location, version=table.version)


@usual_rights()
def change_rows(
    table: DeltaTable,
    *,
    deleted: pa.Table,
    inserted: pa.Table,
    key: Sequence[str],
    txn: Txn,
    metadata: Mapping[str, Any],
) -> None:
    """Take rows out of a table and put rows into it, in one commit right after its version.

    Args:
        table: as ``open_for_rows`` gave it.
        deleted: rows of the table's columns, each once; every copy in the table goes.
        inserted: rows of the table's columns; all of them come.
        key: columns that tell the table's rows apart; with none all columns do.
        txn: the identity of the write.
        metadata: what the commit says about itself.

    Raises:
        TableMovedError: somebody else committed first; nothing was written.
    """
    commit = _commit(metadata, txn)
    columns = pa.schema(table.schema().to_arrow())
    inserted = inserted.select(columns.names).cast(columns)
    try:
        if not deleted.num_rows:
            write_deltalake(table, inserted, mode="append", commit_properties=commit)
            return
        deleted = deleted.select(columns.names).cast(columns)
        flags = [True] * deleted.num_rows + [False] * inserted.num_rows
        source = pa.concat_tables([deleted, inserted]).append_column(tables.FLAG, [flags])
        same = [
            f"(t.{_name(one)} IS NOT DISTINCT FROM s.{_name(one)})" for one in key or columns.names
        ]
        table.merge(
            source,
            " AND ".join([f"s.{tables.FLAG}", *same]),
            source_alias="s",
            target_alias="t",
            commit_properties=commit,
        ).when_matched_delete().when_not_matched_insert(
            {_name(one): f"s.{_name(one)}" for one in columns.names},
            predicate=f"NOT s.{tables.FLAG}",
        ).execute()
    except CommitFailedError as error:
        raise TableMovedError(table.table_uri, str(error)) from error


def _has_nanoseconds(table: PlainTable) -> bool:
    """Whether a file may hold timestamps in Spark's old form, which delta-rs reads wrongly.

    It takes them for nanoseconds since 1970 in 64 bits, which end in 2262.
    """
    if '"timestamp"' not in json.dumps(table.schema):
        return False
    if not policy.FOOTERS.fits(files=len(table.files)):
        return True
    files = PyFileSystem(DeltaStorageHandler(table.location))
    for path in table.files:
        with files.open_input_file(path) as file:
            schema = ParquetFile(file).schema
            if any(schema.column(at).physical_type == "INT96" for at in range(len(schema))):
                return True
    return False


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _commit(metadata: Mapping[str, Any], txn: Txn | None = None) -> CommitProperties:
    """One try: a commit that somebody else made first may hold rows that were not looked at."""
    return CommitProperties(
        custom_metadata={"userMetadata": json.dumps(metadata, sort_keys=True, default=str)},
        max_commit_retries=0,
        app_transactions=None if txn is None else [Transaction(txn.app_id, txn.version)],
    )
