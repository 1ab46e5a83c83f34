"""Refreshes without Spark: DuckDB computes, where it is known to give what Spark would.

Spark takes a second of two cores for what DuckDB does in a hundredth, as long as the data fits one
machine. A table that is not plain, an expression that is not on the list of ``graph.duck``, a value
that does not fit its type: in all such cases Spark computes, as if nobody had tried.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from spark_jobs.gold.compute.pinned import check_inputs
from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.publications import latest_publication
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.views import whole_view
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.work import WorkItem
from spark_jobs.sections import Engine
from spark_jobs.storage import log as delta_log
from spark_jobs.storage.duck import Duck, DuckError

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)
_T = TypeVar("_T")


def whole_result(context: GoldContext, work: WorkItem) -> pa.Table | None:
    """All rows of a view at an attempt's versions, in the published table's types.

    Returns:
        None where Spark is to compute them.

    Raises:
        InputReplacedError: another table lies where the plan pinned one.
    """
    vector = work.vector

    def computed() -> pa.Table:
        check_inputs(context, work.view, vector)
        with database(context) as duck:
            return duck.fetch(_whole(duck, context, work.view, vector=vector, clock=work.clock))

    return unless_declined(context, work.view, computed)


def spark_because(context: GoldContext, plan: RefreshPlan) -> str | None:
    """What makes Spark compute a view, in words that fit behind "for"; None: DuckDB does."""
    if context.settings.gold.engine is Engine.SPARK:
        return "the setting gold.engine"
    try:
        with database(context) as duck:
            _whole(duck, context, plan.view, vector=plan.vector, clock=plan.clock)
    except NotTranslatedError as reason:
        return reason.what
    except DuckError as error:
        return str(error).partition("\n")[0]
    return None


def _whole(
    duck: Duck, context: GoldContext, view: str, *, vector: VersionVector, clock: datetime
) -> str:
    """The SQL of a view over named tables, in the published table's types.

    Raises:
        NotTranslatedError: Spark is to compute it.
    """
    entry = context.entry(view)
    types = _published_types(context, entry)
    names = {str(table): f"{table.layer}_{table.name}" for table, _ in vector}
    for table, version in vector:
        if not duck.content(names[str(table)], context.locations.of(table), version.version):
            raise NotTranslatedError(f"the files of {table}, which Delta's reader must read")
    return whole_view(entry, names, duck.known, clock).typed_as(types)


def unless_declined(context: GoldContext, view: str, compute: Callable[[], _T]) -> _T | None:
    """What a function computes with DuckDB; None, and a line in the log, where Spark is to do it.

    Raises:
        InputReplacedError: from the function.
    """
    if context.settings.gold.engine is Engine.SPARK:
        return None
    try:
        return compute()
    except NotTranslatedError as reason:
        log.info("gold.%s: computed by Spark, for %s", view, reason.what)
    except DuckError as error:
        log.warning("gold.%s: computed by Spark, because DuckDB says: %s", view, error)
    return None


@contextmanager
def database(context: GoldContext) -> Iterator[Duck]:
    """A DuckDB for one refresh, within the memory that the settings grant it."""
    settings = context.settings
    with Duck(memory=settings.gold.engine_memory, spill=settings.state / "duckdb") as duck:
        yield duck


def _published_types(context: GoldContext, entry: GoldEntry) -> dict[str, str]:
    """The columns' types as Spark found them when it first built the view.

    Raises:
        NotTranslatedError: nothing of this definition was published.
    """
    location = context.published_at(entry.name)
    latest = latest_publication(location)
    if latest is None or latest.watermark.fingerprint != entry.fingerprint:
        raise NotTranslatedError("a definition of which nothing is published yet")
    return {one.name: one.type for one in delta_log.schema(location, latest.version)}
