"""The net change of a full refresh, so that its change feed holds only rows that differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_jobs.gold.compute.difference import has_incomparable, multiset_difference, same_columns
from spark_jobs.gold.compute.in_process import database, unless_declined
from spark_jobs.gold.compute.row_change import FewRows, RowChange, SparkChange
from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.refresh.staging import staged_at, staged_rows
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.staged import differing
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import log, plain, policy, small, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    if not comparable or not policy.COMPARED.fits(size=after.bytes):
        yield None
        return
    differing = multiset_difference(published, staged).persist()
    try:
        count = differing.count()
        if count > policy.most_merged(after.rows or 0):
            yield None
        else:
            yield _change(differing, staged, count)
    finally:
        differing.unpersist()


def _change(differing: DataFrame, staged: DataFrame, rows: int) -> RowChange:
    """Every row that differs is deleted, and inserted as often as it is staged."""
    names = staged.columns
    which = differing.select(*map(tables.quoted, names))
    same = tables.same_row("s", "d", names)
    inserted = staged.alias("s").join(which.alias("d"), same, "left_semi")
    return SparkChange(
        deleted=which, inserted=inserted, deletes=rows, inserts=rows, kinds=dict(staged.dtypes)
    )


def _computed_here(context: GoldContext, work: WorkItem, location: str) -> RowChange | None:
    """The change without Spark; None where Spark is to find it, or write the table again."""
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
            which, inserted = differing("staged", "published", list(kinds))
            deleted = duck.fetch(which)
            many = deleted.num_rows > policy.most_merged(rows)
            if many or not policy.RESULT.fits(rows=deleted.num_rows):
                raise NotTranslatedError("more rows that differ than are merged")
            return FewRows(
                deleted=deleted,
                inserted=duck.fetch(inserted),
                deletes=deleted.num_rows,
                inserts=deleted.num_rows,
                kinds=kinds,
            )

    return unless_declined(context, work.view, computed)
