"""The net change of a full refresh, so that its change feed holds only rows that differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.difference import bag_difference, has_incomparable, same_columns
from spark_jobs.gold.in_process import database, unless_declined
from spark_jobs.gold.row_change import FewRows, RowChange, SparkChange
from spark_jobs.gold.staging import staged_at, staged_rows
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.staged import differing
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import log, plain, small, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Above this, telling what differs costs more than writing the table again.
_MOST_BYTES_COMPARED = 2**30
# Above this share of the rows a change feed of all of them is hardly longer.
_MOST_ROWS_MERGED = 0.5
# So few rows are changed in less time than Spark writes a table, however many of them differ.
_FEW_ROWS = 10_000


@contextmanager
def net_change(context: GoldContext, work: WorkItem) -> Iterator[RowChange | None]:
    """How the staged rows differ from the published ones.

    Yields:
        the change, to be read while the context lasts; None where the table is to be written
        as a whole: it is new, has other columns, is large, or most of its rows change.
    """
    location = context.published_at(work.view)
    if log.table_version(location) is None:
        yield None
        return
    found = _computed_here(context, work, location)
    if found is not None:
        yield found
        return
    staged, published = staged_rows(context, work), plain.read(context.spark, location)
    after = log.size(staged_at(context, work))
    comparable = same_columns(staged, published) and not has_incomparable(staged)
    if not comparable or after.bytes > _MOST_BYTES_COMPARED:
        yield None
        return
    differing = bag_difference(published, staged).persist()
    try:
        count = differing.count()
        if count > most_merged(after.rows or 0):
            yield None
        else:
            yield _change(differing, staged, count)
    finally:
        differing.unpersist()


def _change(differing: DataFrame, staged: DataFrame, rows: int) -> RowChange:
    """Every row that differs leaves, and enters as often as it is staged."""
    names = staged.columns
    which = differing.select(*map(tables.quoted, names))
    same = tables.same_row("s", "d", names)
    entering = staged.alias("s").join(which.alias("d"), same, "left_semi")
    return SparkChange(
        leaving=which, entering=entering, leaves=rows, enters=rows, kinds=dict(staged.dtypes)
    )


def _computed_here(context: GoldContext, work: WorkItem, location: str) -> RowChange | None:
    """The change without Spark; None where Spark is to find it, or write the table anew."""
    at = staged_at(context, work)
    kinds = {one.name: one.type for one in log.schema(at)}
    published = {one.name: one.type for one in log.schema(location)}
    rows = log.size(at).rows
    if kinds != published or not small.compared(kinds) or rows is None:
        return None

    def computed() -> FewRows:
        with database(context) as duck:
            if not (duck.content("staged", at) and duck.content("published", location)):
                raise NotTranslatedError("files that Delta's reader must read")
            which, entering = differing("staged", "published", list(kinds))
            leaving = duck.fetch(which)
            if leaving.num_rows > min(most_merged(rows), small.MOST_ROWS):
                raise NotTranslatedError("more rows that differ than are merged")
            return FewRows(
                leaving=leaving,
                entering=duck.fetch(entering),
                leaves=leaving.num_rows,
                enters=leaving.num_rows,
                kinds=kinds,
            )

    return unless_declined(context, work.view, computed)


def most_merged(rows: int) -> int:
    """How many rows of a table of so many may differ for it not to be written anew."""
    return max(_FEW_ROWS, round(_MOST_ROWS_MERGED * rows))
