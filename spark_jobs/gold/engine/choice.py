"""Chooses the engine of a refresh, by the setting ``gold.engine``; no other module does.

On data that fits one machine, DuckDB needs a hundredth of Spark's CPU time. Spark computes what
DuckDB cannot: tables that are not plain, expressions that ``graph.duck`` does not list, values that
overflow their type.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from spark_jobs import sections
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.publications import Publication
from spark_jobs.gold.compute.increment import change_of
from spark_jobs.gold.compute.protocol import Engine
from spark_jobs.gold.compute.run import prepared
from spark_jobs.gold.engine.database import DuckError
from spark_jobs.gold.engine.duck import DuckEngine
from spark_jobs.gold.engine.spark import SparkEngine
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.planning.decision import Incremental
from spark_jobs.planning.plan import RefreshPlan

log = logging.getLogger(__name__)
_T = TypeVar("_T")


@contextmanager
def computed(
    context: GoldContext,
    view: str,
    compute: Callable[[Engine], _T],
    *,
    changed: int | None = None,
    net: bool = False,
) -> Iterator[_T]:
    """Compute with the first engine that can; the engine stays open while the context lasts.

    Args:
        context: settings, manifest and locations of the project.
        view: the view that is refreshed.
        compute: called with an engine, and again with the next one if that one cannot.
        changed: number of changed input rows; None if unknown, or if all rows are read.
        net: whether Spark computes, and rows that came and left again are removed from changes.

    Raises:
        LakehouseError: raised by ``compute``.
        NotTranslatedError: DuckDB cannot, and the context has no Spark.
    """
    with ExitStack() as stack:
        if context.settings.gold.engine is not sections.Engine.SPARK and not net:
            try:
                # A connection that failed is closed at once; it may answer no further query.
                with ExitStack() as own:
                    found = compute(own.enter_context(DuckEngine(context)))
                    stack.push(own.pop_all())
            except NotTranslatedError as reason:
                if context.in_process:
                    raise
                log.info("gold.%s: computed by Spark, for %s", view, reason.what)
            except DuckError as error:
                if context.in_process:
                    raise NotTranslatedError(first_line(error)) from error
                log.warning("gold.%s: computed by Spark, because DuckDB says: %s", view, error)
            else:
                yield found
                return
        yield compute(stack.enter_context(SparkEngine(context, changed, net=net)))


def first_line(error: Exception) -> str:
    """What DuckDB says, without the query."""
    return str(error).partition("\n")[0]


def spark_because(context: GoldContext, plan: RefreshPlan, base: Publication | None) -> str | None:
    """Why Spark computes a planned refresh, as text to follow "for"; None if DuckDB does.

    Args:
        context: settings, manifest and locations of the project.
        plan: the plan of the refresh.
        base: the view's newest publication; None if nothing is published.
    """
    if context.settings.gold.engine is sections.Engine.SPARK:
        return "the setting gold.engine"
    try:
        with DuckEngine(context) as engine:
            if isinstance(plan.decision, Incremental) and base is not None:
                entry = context.entry(plan.view)
                change = change_of(
                    context, entry, vector=plan.vector, clock=plan.clock, base=base, by_name=True
                )
                prepared(change, engine, plan.view)
            else:
                engine.whole(plan)
    except NotTranslatedError as reason:
        return reason.what
    except DuckError as error:
        return first_line(error)
    return None
