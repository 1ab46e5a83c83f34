"""Compares a published table with its SQL in this process."""

from __future__ import annotations

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import NotPublishedError
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.engine import choice
from spark_jobs.gold.verify.published import Finding, Verification
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.storage.reader import read_columns
from spark_jobs.testing.multisets import difference


def recomputed(context: GoldContext, plan: RefreshPlan) -> Verification:
    """Compare rows that DuckDB maintained with a recompute by DuckDB.

    Args:
        context: of a case, without Spark.
        plan: a plan after the last refresh, with the versions of the publication.

    Raises:
        NotPublishedError: the view was never published.
        NotTranslatedError: the rows differ, so Spark has to decide which are right.
    """
    location = context.published_at(plan.view)
    publication = latest_publication(location)
    if publication is None:
        raise NotPublishedError(plan.view)
    with choice.computed(context, plan.view, lambda engine: engine.whole(plan)()) as rows:
        expected = rows.table
    actual = read_columns(location, expected.column_names)
    if difference(expected.cast(actual.schema), actual) != ((), ()):
        raise NotTranslatedError("rows that a recompute does not have")
    return Verification(
        view=plan.view,
        finding=Finding.EQUAL,
        detail="the table equals its SQL",
        vector=publication.watermark.vector,
        version=publication.version,
        rows=actual.num_rows,
    )
