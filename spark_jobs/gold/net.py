"""The net change of a full refresh, so that its change feed holds only rows that differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.difference import bag_difference, has_incomparable, same_columns
from spark_jobs.gold.staging import RowChange, staged_at, staged_rows
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.storage import log, plain, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Above this, telling what differs costs more than writing the table again.
_MOST_BYTES_COMPARED = 2**30
# Above this share of the rows a change feed of all of them is hardly longer.
_MOST_ROWS_MERGED = 0.5
# So few rows are changed in less time than Spark writes a table, however many of them differ.
_FEW_ROWS = 10_000


@contextmanager
def net_change(context: GoldContext, attempt: RefreshAttempt) -> Iterator[RowChange | None]:
    """How the staged rows differ from the published ones.

    Yields:
        the change, to be read while the context lasts; None where the table is to be written
        as a whole: it is new, has other columns, is large, or most of its rows change.
    """
    location = context.published_at(attempt.view)
    if log.table_version(location) is None:
        yield None
        return
    staged, published = staged_rows(context, attempt), plain.read(context.spark, location)
    after = log.size(staged_at(context, attempt))
    comparable = same_columns(staged, published) and not has_incomparable(staged)
    if not comparable or after.bytes > _MOST_BYTES_COMPARED:
        yield None
        return
    differing = bag_difference(published, staged).persist()
    try:
        found = differing.count()
        if found > max(_FEW_ROWS, _MOST_ROWS_MERGED * (after.rows or 0)):
            yield None
        else:
            yield _change(differing, staged, found)
    finally:
        differing.unpersist()


def _change(differing: DataFrame, staged: DataFrame, rows: int) -> RowChange:
    """Every row that differs leaves, and enters as often as it is staged."""
    names = staged.columns
    which = differing.select(*map(tables.quoted, names))
    same = tables.same_row("s", "d", names)
    entering = staged.alias("s").join(which.alias("d"), same, "left_semi")
    return RowChange(which, entering, leaves=rows, enters=rows)
