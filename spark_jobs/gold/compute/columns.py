"""Computes some columns of a published table again and keeps the others."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import reader
from spark_jobs.storage.columns import quoted, same_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_columns(
    context: GoldContext,
    work: RefreshPlan | WorkItem,
    computed: DataFrame,
    columns: Collection[str],
) -> DataFrame:
    """The published rows with some columns recomputed by the view's SQL, joined by the view's key.

    Spark prunes all columns that are not asked for.

    Args:
        context: settings, manifest and locations of the project.
        work: the refresh; its vector must be the one that is published.
        computed: the result of the view's SQL at these versions.
        columns: names of the columns to recompute; key columns are not allowed.

    Returns:
        all columns of ``computed``, in its order and with its comments.

    Raises:
        BaseMovedError: the newest publication was computed from other versions.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    location = context.published_at(work.view)
    base = latest_publication(location)
    vector = work.vector
    if base is None or base.watermark.vector != vector:
        raise BaseMovedError(work.view, "it was published from other versions meanwhile")
    maintenance = context.entry(work.view).maintenance
    key = () if maintenance is None else maintenance.key
    frame = reader.read(context.spark, location, base.version).alias("p")
    if columns:
        wanted = computed.select(*map(quoted, [*key, *columns])).alias("c")
        frame = frame.join(wanted, same_row("p", "c", key))
    return frame.select(
        *(
            F.col(f"{'c' if one.name in columns else 'p'}.{quoted(one.name)}").alias(
                one.name, metadata=one.metadata
            )
            for one in computed.schema.fields
        )
    )
