"""The change of a view from the result of its SQL, if rows to delete are not in its table.

A change deletes rows as they are computed again over the old inputs. Where SQL has several correct
results, those may not be the published ones: a sum of floats in another order, another of the rows
that tie.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.compute.difference import multiset_difference
from spark_jobs.gold.compute.pinned import named_inputs, pinned_result
from spark_jobs.gold.compute.relations import prefix_of
from spark_jobs.gold.engine.multisets import without_key
from spark_jobs.graph.maintenance.relation import WEIGHT
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import reader
from spark_jobs.storage.rows import Rows


@contextmanager
def compared_rows(context: GoldContext, work: WorkItem, base: int) -> Iterator[Rows]:
    """The rows to delete and to insert: the view's columns and ``__operation``.

    Args:
        context: settings, manifest and locations of the project.
        work: an incremental refresh of a view without a key.
        base: version of the published table that the change applies to.

    Raises:
        InputReplacedError: an input was dropped or recreated.
        QueryFailedError: Spark refuses the query.
    """
    entry = context.entry(work.view)
    published = reader.read(context.spark, context.published_at(work.view), base)
    with named_inputs(context, work.view, work.vector, prefix=prefix_of(work)) as names:
        computed = pinned_result(context, entry, vector=work.vector, clock=work.clock, names=names)
        weighted = multiset_difference(published, computed).toDF(*published.columns, WEIGHT)
        # Computed once, since a second time other rows may be the first of those that tie.
        yield Rows.of(without_key(weighted.localCheckpoint(), published, work.view))
