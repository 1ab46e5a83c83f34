"""Which engine computes a refresh: decided here, by the setting ``gold.engine``, and nowhere else.

Spark takes a second of two cores for what DuckDB does in a hundredth, as long as the data fits one
machine. A table that is not plain, an expression that is not on the list of ``graph.duck``, a value
that does not fit its type: in all such cases Spark computes, as if nobody had tried.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from spark_jobs import sections
from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.engine.database import DuckError
from spark_jobs.gold.engine.duck import DuckEngine
from spark_jobs.gold.engine.protocol import Engine
from spark_jobs.gold.engine.spark import SparkEngine
from spark_jobs.graph.duck.errors import NotTranslatedError
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
) -> Iterator[_T]:
    """What the first engine gives that can compute it, which stays open while the context lasts.

    Args:
        context: of the refresh.
        view: that is refreshed.
        compute: asks an engine; may be called with more than one.
        changed: how many rows of the inputs changed; None where nobody knows, or all are read.

    Raises:
        LakehouseError: from the function.
    """
    with ExitStack() as stack:
        if context.settings.gold.engine is not sections.Engine.SPARK:
            try:
                # Closed at once where it fails: it may answer nothing more.
                with ExitStack() as own:
                    found = compute(own.enter_context(DuckEngine(context)))
                    stack.push(own.pop_all())
            except NotTranslatedError as reason:
                log.info("gold.%s: computed by Spark, for %s", view, reason.what)
            except DuckError as error:
                log.warning("gold.%s: computed by Spark, because DuckDB says: %s", view, error)
            else:
                yield found
                return
        yield compute(stack.enter_context(SparkEngine(context, changed)))


def spark_because(context: GoldContext, plan: RefreshPlan) -> str | None:
    """What makes Spark compute a view, in words that fit behind "for"; None: DuckDB does."""
    if context.settings.gold.engine is sections.Engine.SPARK:
        return "the setting gold.engine"
    try:
        with DuckEngine(context) as engine:
            engine.whole(plan)
    except NotTranslatedError as reason:
        return reason.what
    except DuckError as error:
        return str(error).partition("\n")[0]
    return None
