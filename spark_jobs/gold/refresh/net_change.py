"""The net change of a full refresh, so that the change feed has only rows that differ."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.gold.compute.pinned import query_failures
from spark_jobs.gold.compute.protocol import Engine
from spark_jobs.gold.engine import choice
from spark_jobs.gold.refresh.staging import staged_at
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage.layout import partition_columns
from spark_jobs.storage.log import table_version
from spark_jobs.storage.rows import RowChange

log = logging.getLogger(__name__)


@contextmanager
def net_change(context: GoldContext, work: WorkItem) -> Iterator[RowChange | None]:
    """The difference between the staged and the published rows.

    Yields:
        the change, readable while the context lasts. None: rewrite the table, because it is new,
            has other columns or partitions, is large, most of its rows change, or a file of it is
            damaged.

    Raises:
        NotTranslatedError: there is no Spark, and DuckDB cannot compute it.
    """
    staged, published = staged_at(context, work), context.published_at(work.view)
    partitions = context.entry(work.view).partition_by
    if table_version(published) is None or partition_columns(published) != partitions:
        yield None
        return

    def computed(engine: Engine) -> RowChange | None:
        try:
            with query_failures(work.view):
                return engine.difference(work.view, staged=staged, published=published)
        except (QueryFailedError, OSError, pa.ArrowException) as error:
            log.warning("gold.%s is rewritten, for its rows cannot be read: %s", work.view, error)
            return None

    with choice.computed(context, work.view, computed) as change:
        yield change
