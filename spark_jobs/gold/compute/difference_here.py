"""The difference of two small tables, in this process.

Spark needs three queries for it, whatever the number of rows: it counts the rows that differ, and
collects the rows to delete and those to insert.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.type_agreement import compared
from spark_jobs.storage import log, policy
from spark_jobs.storage.reader import Session, few_rows
from spark_jobs.storage.rows import RowChange, rows_here


def small_tables(staged: str, published: str) -> tuple[pa.Table, pa.Table] | None:
    """All rows of two tables; None if they are many, or only Spark can compare them.

    Args:
        staged: location of the new content.
        published: location of the current content.
    """
    kinds, held = ([(one.name, one.type) for one in log.schema(at)] for at in (staged, published))
    if kinds != held or not compared(kind for _, kind in kinds):
        return None
    if not all(policy.RESULT.fits(rows=log.size(at).rows) for at in (staged, published)):
        return None
    after, before = few_rows(staged), few_rows(published)
    return None if after is None or before is None else (after, before)


def change_between(
    after: pa.Table, before: pa.Table, kinds: dict[str, str], spark: Session
) -> RowChange | None:
    """The change that turns one content into the other; None if too many rows differ to merge them.

    Args:
        after: the new rows.
        before: the current rows, with the same columns.
        kinds: Spark SQL types by column.
        spark: opens the session with which Spark writes the rows, if there are many.
    """
    differing, inserted = differing_rows_here(after, before)
    if differing.num_rows > policy.most_merged(after.num_rows):
        return None
    return RowChange(
        deleted=rows_here(differing, kinds, spark),
        inserted=rows_here(inserted, kinds, spark),
        deletes=differing.num_rows,
        inserts=inserted.num_rows,
        kinds=kinds,
        step=DeleteInsert(),
    )


def differing_rows_here(after: pa.Table, before: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows in which two multisets differ, each once, and all copies of them in ``after``.

    NULLs are equal to NULLs.
    """
    # A user's column may have any name.
    names = [f"c{at}" for at in range(after.num_columns)]
    kinds = pa.schema(zip(names, after.schema.types, strict=True))
    both = pa.concat_tables(
        one.rename_columns(names)
        .cast(kinds)
        .append_column("copies", pa.array(np.full(one.num_rows, copies)))
        .append_column("weight", pa.array(np.full(one.num_rows, weight)))
        for one, copies, weight in ((after, 1, 1), (before, 0, -1))
    )
    sums = both.group_by(names).aggregate([("copies", "sum"), ("weight", "sum")])
    found = sums.filter(pc.not_equal(sums.column("weight_sum"), 0))
    differing = found.select(names).rename_columns(after.column_names)
    copies = np.repeat(np.arange(found.num_rows), found.column("copies_sum").to_numpy())
    return differing, differing.take(pa.array(copies))
