"""Writing the rows of a batch in one commit: without Spark where they are few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from spark_jobs.sections import MaintenanceSettings
from spark_jobs.storage import policy, small, tables
from spark_jobs.storage.compaction import join_small_files
from spark_jobs.storage.keyed import append_once, can_look_up, merge_once
from spark_jobs.storage.plain import open_for_adding
from spark_jobs.storage.policy import Place
from spark_jobs.storage.streams import Merge, merge
from spark_jobs.storage.tables import Txn

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Rows:
    """Rows to write.

    Attributes:
        make: gives them to Spark.
        here: the rows, where they are in this process; all their types travel.
    """

    make: Callable[[], DataFrame]
    here: pa.Table | None = None

    @cached_property
    def frame(self) -> DataFrame:
        """The rows in Spark."""
        return self.make()

    @property
    def table(self) -> pa.Table:
        """The rows in this process."""
        return small.to_arrow(self.frame) if self.here is None else self.here

    @property
    def columns(self) -> Sequence[str]:
        """The names of their columns."""
        return self.frame.columns if self.here is None else self.here.column_names

    @property
    def travel(self) -> bool:
        """Whether all types mean the same in Spark, in Arrow and in a table."""
        return self.here is not None or small.fits_arrow(self.frame)


@dataclass(frozen=True)
class BatchWriter:
    """Writes rows of batches into tables that nobody else writes meanwhile.

    Delta joins small files after a commit of Spark's; after one without Spark it is done here.

    Attributes:
        maintenance: when files are joined.
    """

    maintenance: MaintenanceSettings

    def append(self, rows: Rows, location: str, *, txn: Txn, place: Place) -> None:
        """Add rows to a table, once.

        Args:
            rows: of the table's columns.
            location: of the table.
            txn: the identity of the write.
            place: where the rows are to be written, if the table can be written there.
        """
        local = place is Place.LOCAL and rows.travel
        table = open_for_appending(location, rows.columns) if local else None
        if table is None:
            tables.append(rows.frame, location, txn=txn)
            return
        append_once(table, rows.table, txn=txn)
        self._join(location, rows)

    def merge(self, rows: Rows, location: str, how: Merge, *, txn: Txn, place: Place) -> None:
        """Merge rows into a table by key, once.

        Args:
            rows: the table's columns and those that conditions read; at most one row has a key.
            location: of the table.
            how: which rows to update, insert and delete.
            txn: the identity of the write.
            place: where the rows are to be written, if the table can be written there.
        """
        table = _open_for_merging(location, rows, how) if place is Place.LOCAL else None
        if table is None:
            merge(rows.frame, location, how, txn=txn)
            return
        merge_once(table, rows.table, how, txn=txn)
        self._join(location, rows)

    def _join(self, location: str, rows: Rows) -> None:
        join_small_files(location, self.maintenance, spark=lambda: rows.frame.sparkSession)


def place_of(rows: DataFrame, length: Column) -> Place:
    """Where the rows of a batch are handled; takes a job, which computes them.

    Args:
        rows: of the batch.
        length: of a row, in bytes; NULL counts as nothing.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    [(count, size)] = rows.agg(F.count(F.lit(1)), F.sum(length)).collect()
    return policy.BATCH.place(rows=int(count), size=int(size or 0))


def open_for_appending(location: str, columns: Sequence[str]) -> DeltaTable | None:
    """A table as it is now, of any size, if rows of these columns can be added without Spark."""
    table = open_for_adding(location)
    return None if table is None else _with_columns(table, columns)


def _open_for_merging(location: str, rows: Rows, how: Merge) -> DeltaTable | None:
    if how.delete_others is not None or not rows.travel:
        return None
    if rows.here is None:
        kinds = {field.name: field.dataType.simpleString() for field in rows.frame.schema.fields}
        # Of rows that are here, the keys were looked up.
        if not can_look_up(kinds[key] for key in how.keys):
            return None
    table = small.open_for_rewriting(location)
    return None if table is None else _with_columns(table, how.columns)


def _with_columns(table: DeltaTable, columns: Sequence[str]) -> DeltaTable | None:
    """The table, where it has these columns only: Spark fills others with NULL."""
    return table if {field.name for field in table.schema().fields} == set(columns) else None
