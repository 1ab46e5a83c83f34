"""Aggregate state: counts and sums beside a view, which an incremental refresh adds changes to.

A publication names the versions that belong to it. The groups of an attempt that was never
published are other versions of the same table, and nobody reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.gold.compute.relations import Relations
from spark_jobs.gold.compute.state_location import LAYERS, AggregateState
from spark_jobs.gold.context import GoldContext
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.maintenance.delta import StateUpdate
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.graph.sql import Query
from spark_jobs.names import TableVersion
from spark_jobs.planning.work import WorkItem
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import log, plain, policy, small, tables
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.history import folders, remove_table, vacuum
from spark_jobs.storage.policy import Place

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_VERSIONS_BETWEEN_SWEEPS = 50
# What an attempt has just written is among so many commits, however many rivals it has.
_NEWEST = 20


def keep_groups(
    relations: Relations, step: StateUpdate, work: WorkItem, *, place: Place
) -> dict[str, TableVersion]:
    """Name the groups before and after, and write those after.

    Args:
        relations: what the program reads.
        step: how the groups change.
        work: the refresh.
        place: where rows of the size of the change are handled.

    Returns:
        the version of the groups after, by their name; nothing where they were not written.

    Raises:
        TableMovedError: somebody else wrote the groups at the same moment.
    """
    name = step.state.table
    spark = relations.context.spark
    groups = relations.groups(name)
    if groups.known is None:
        before = spark.sql(to_sql(step.content)).persist()
        relations.persisted.append(before)
        relations.counted = True
    else:
        before = plain.read(spark, groups.location, groups.known.version)
    relations.register(before, relations.content(name, When.OLD).name)
    if step.update is None or step.change is None:
        relations.register(before, relations.content(name, When.NEW).name)
        return {} if groups.known is None else {name: groups.known}
    if takes(groups, work):
        _append(groups, _typed(relations, step.change, before), work, place=place)
    else:
        _rewrite(groups, _typed(relations, step.update, before), work, place=place)
    failpoint("gold.stage.groups_written")
    written = written_groups(groups.location, work)
    frame = plain.read(spark, groups.location, written.version)
    relations.register(frame, relations.content(name, When.NEW).name)
    return {name: written}


def takes(groups: AggregateState, work: WorkItem) -> bool:
    """Whether an attempt's change is appended to the groups; otherwise they are rewritten."""
    return groups.takes(work.changed)


def append_groups(groups: AggregateState, added: pa.Table, work: WorkItem) -> None:
    """Append what an attempt adds to groups that take it.

    Raises:
        TableMovedError: somebody else wrote them at the same moment.
    """
    if groups.known is None:
        raise AssertionError("only groups of a known version take a change")
    after = groups.known.version
    small.append_rows(added, groups.location, after=after, metadata=_appended(groups, work))


def write_groups(groups: AggregateState, after: pa.Table, work: WorkItem) -> None:
    """Write all groups again.

    Raises:
        TableMovedError: somebody else wrote them at the same moment.
    """
    small.write_rows(after, groups.location, metadata=_rewritten(work))


def _append(groups: AggregateState, added: DataFrame, work: WorkItem, *, place: Place) -> None:
    rows = small.fetched(added) if place is Place.LOCAL else None
    if rows is not None:
        append_groups(groups, rows, work)
        return
    tables.append(added, groups.location, metadata=_appended(groups, work))
    before = -1 if groups.known is None else groups.known.version
    if written_groups(groups.location, work).version != before + 1:
        raise TableMovedError(groups.location, "another refresh wrote to it")


def _rewrite(groups: AggregateState, after: DataFrame, work: WorkItem, *, place: Place) -> None:
    rows = None
    if place is Place.LOCAL and groups.known is not None and policy.STATE.fits(rows=groups.rows):
        rows = small.fetched(after)
    if rows is None:
        tables.overwrite(
            after, groups.location, metadata=_rewritten(work), properties=tables.SHORT_LOG
        )
    else:
        write_groups(groups, rows, work)


def _appended(groups: AggregateState, work: WorkItem) -> dict[str, object]:
    return {"attempt": work.attempt_id, LAYERS: (groups.layers or 0) + 1}


def _rewritten(work: WorkItem) -> dict[str, object]:
    return {"attempt": work.attempt_id, LAYERS: 0}


def _typed(relations: Relations, query: Query, like: DataFrame) -> DataFrame:
    """Rows in the types of the aggregate state: adding two decimals makes a wider one."""
    return tables.with_types_of(relations.context.spark.sql(to_sql(query)), like)


def written_groups(location: str, work: WorkItem) -> TableVersion:
    """The groups that an attempt wrote; a rival's may be newer."""
    current = log.table_version(location)
    for commit in log.commits(location, limit=_NEWEST):
        if current is not None and (commit.metadata or {}).get("attempt") == work.attempt_id:
            return TableVersion(current.table_id, commit.version)
    raise AssertionError(f"{location} was just written")


def sweep_groups(context: GoldContext, view: str) -> None:
    """Remove the groups of other definitions, and now and then files of versions long past.

    Groups that somebody still needs are counted again: no result hangs on them.
    """
    definition = context.lake.states(view, context.entry(view).fingerprint)
    for name in folders(context.lake.states(view)):
        if not definition.endswith(f"/{name}"):
            remove_table(f"{context.lake.states(view)}/{name}")
    for number in folders(definition):
        current = log.table_version(f"{definition}/{number}")
        if current is not None and current.version % _VERSIONS_BETWEEN_SWEEPS == 0:
            vacuum(f"{definition}/{number}", days=context.settings.gold.staging_days)
