"""A staged change as a ``RowChange``: rows to delete and rows to insert."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.graph.duck.staged import DELETE, INSERT, OPERATION
from spark_jobs.graph.last_step import DeleteInsert, RowStep
from spark_jobs.storage.rows import RowChange, Rows, rows_here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def change_here(
    rows: pa.Table,
    *,
    kinds: Mapping[str, str],
    step: RowStep,
    spark: Callable[[], SparkSession],
) -> RowChange:
    """A staged change whose rows are Arrow data in this process.

    Args:
        rows: the table's columns and ``__operation``, which is ``DELETE`` or ``INSERT``.
        kinds: Spark SQL types by column; all types must be groupable.
        step: how a row to delete is found in the table.
        spark: opens the session to write with, when there are too many rows for delta-rs.
    """
    deletes = pc.equal(rows.column(OPERATION), DELETE)
    deleted = rows.filter(deletes).drop_columns([OPERATION])
    inserted = rows.filter(pc.invert(deletes)).drop_columns([OPERATION])
    if step == DeleteInsert():
        names = deleted.column_names
        deleted = deleted.group_by(names).aggregate([]).select(names)
    return RowChange(
        deleted=rows_here(deleted, kinds, spark),
        inserted=rows_here(inserted, kinds, spark),
        deletes=deleted.num_rows,
        inserts=inserted.num_rows,
        kinds=kinds,
        step=step,
    )


def change_in_spark(
    rows: DataFrame,
    *,
    deletes: int,
    inserts: int,
    kinds: Mapping[str, str],
    step: RowStep,
) -> RowChange:
    """A staged change that Spark reads; see ``change_here``.

    Args:
        rows: the table's columns and ``__operation``, which is ``DELETE`` or ``INSERT``.
        deletes: upper bound of the rows to delete.
        inserts: number of rows to insert.
        kinds: Spark SQL types by column.
        step: how a row to delete is found in the table.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    deleted = rows.where(F.col(OPERATION) == DELETE).drop(OPERATION)
    deleted = deleted.distinct() if step == DeleteInsert() else deleted
    inserted = rows.where(F.col(OPERATION) == INSERT).drop(OPERATION)
    return RowChange(
        deleted=Rows.of(deleted),
        inserted=Rows.of(inserted),
        deletes=deletes,
        inserts=inserts,
        kinds=kinds,
        step=step,
    )
