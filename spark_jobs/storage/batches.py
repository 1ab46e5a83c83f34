"""Writing the rows of a batch in one commit: without Spark where they are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from spark_jobs.sections import CareSettings
from spark_jobs.storage import small, tables
from spark_jobs.storage.compaction import join_small_files
from spark_jobs.storage.keyed import append_once, can_look_up, merge_once
from spark_jobs.storage.plain import plain_table
from spark_jobs.storage.streams import Merge, merge
from spark_jobs.storage.tables import Txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class BatchWriter:
    """Writes rows of batches into tables that nobody else writes meanwhile.

    Delta joins small files after a commit of Spark's; after one without Spark it is done here.

    Attributes:
        care: when files are joined.
    """

    care: CareSettings

    def append(self, rows: DataFrame, location: str, *, txn: Txn, few: bool) -> None:
        """Add rows to a table, once.

        Args:
            rows: of the table's columns.
            location: of the table.
            txn: the identity of the write.
            few: whether the rows fit into this process.
        """
        table = _open_for_appending(location, rows.columns) if few and small.travels(rows) else None
        if table is None:
            tables.append(rows, location, txn=txn)
            return
        append_once(table, rows.toArrow(), txn=txn)
        self._join(location, rows)

    def merge(self, rows: DataFrame, location: str, how: Merge, *, txn: Txn, few: bool) -> None:
        """Merge rows into a table by key, once.

        Args:
            rows: the table's columns and those that conditions read; at most one row has a key.
            location: of the table.
            how: which rows change, go in and leave.
            txn: the identity of the write.
            few: whether the rows fit into this process.
        """
        table = _open_for_merging(location, rows, how) if few else None
        if table is None:
            merge(rows, location, how, txn=txn)
            return
        merge_once(table, rows.toArrow(), how, txn=txn)
        self._join(location, rows)

    def _join(self, location: str, rows: DataFrame) -> None:
        join_small_files(location, self.care, spark=lambda: rows.sparkSession)


def _open_for_appending(location: str, columns: Sequence[str]) -> DeltaTable | None:
    plain = plain_table(location)
    if plain is None or not plain.written:
        return None
    return _with_columns(DeltaTable(plain.location, version=plain.version), columns)


def _open_for_merging(location: str, rows: DataFrame, how: Merge) -> DeltaTable | None:
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    if how.delete_others is not None or not can_look_up(kinds[key] for key in how.keys):
        return None
    table = small.open_for_rewriting(location) if small.travels(rows) else None
    return None if table is None else _with_columns(table, how.columns)


def _with_columns(table: DeltaTable, columns: Sequence[str]) -> DeltaTable | None:
    """The table, where it has these columns only: Spark fills others with NULL."""
    return table if {field.name for field in table.schema().fields} == set(columns) else None
