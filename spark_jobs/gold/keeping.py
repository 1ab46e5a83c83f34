"""Kept groups: counts and sums beside a view, which an incremental refresh adds changes to.

A publication names the versions that belong to it. The groups of an attempt that was never
published are other versions of the same table, and nobody reads them.
"""

from __future__ import annotations

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.relations import Relations
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.maintenance.delta import StateUpdate
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.names import TableVersion
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import log, plain, small, tables
from spark_jobs.storage.history import folders, readable, remove_table, vacuum
from spark_jobs.storage.small import MOST_ROWS

_VERSIONS_BETWEEN_SWEEPS = 50
# What an attempt has just written is among so many commits, however many rivals it has.
_NEWEST = 20


def keep_groups(
    relations: Relations, step: StateUpdate, attempt: RefreshAttempt, *, few: bool
) -> dict[str, TableVersion]:
    """Name the groups before and after, and write those after.

    Args:
        relations: what the program reads.
        step: how the groups change.
        attempt: the refresh.
        few: whether few rows of the inputs changed.

    Returns:
        the version of the groups after, by their name; nothing where they were not written.
    """
    name = step.state.table
    spark = relations.context.spark
    location = location_of(relations, name)
    known = known_groups(relations, name)
    if known is None:
        before = spark.sql(to_sql(step.content)).persist()
        relations.persisted.append(before)
        relations.counted = True
    else:
        before = plain.read(spark, location, known.version)
    relations.register(before, relations.content(name, When.OLD).name)
    if step.update is None:
        relations.register(before, relations.content(name, When.NEW).name)
        return {} if known is None else {name: known}
    # Adding two decimals makes a wider one.
    after = tables.with_types_of(spark.sql(to_sql(step.update)), before)
    metadata = {"attempt": attempt.attempt_id}
    few = few and known is not None and (log.size(location, known.version).rows or 0) <= MOST_ROWS
    rows = small.fetched(after) if few else None
    if rows is None:
        tables.overwrite(after, location, metadata=metadata)
    else:
        small.write_rows(rows, location, metadata=metadata)
    failpoint("gold.stage.groups_written")
    written = _written(location, attempt)
    frame = plain.read(spark, location, written.version)
    relations.register(frame, relations.content(name, When.NEW).name)
    return {name: written}


def _written(location: str, attempt: RefreshAttempt) -> TableVersion:
    """The groups that an attempt wrote; a rival's may be newer."""
    current = log.table_version(location)
    for commit in log.commits(location, limit=_NEWEST):
        if current is not None and (commit.metadata or {}).get("attempt") == attempt.attempt_id:
            return TableVersion(current.table_id, commit.version)
    raise AssertionError(f"{location} was just written")


def known_groups(relations: Relations, name: str) -> TableVersion | None:
    """The groups that belong to the publication, unless they or their files are gone."""
    known = relations.base.watermark.states.get(name)
    location = location_of(relations, name)
    current = log.table_version(location)
    if known is None or current is None or current.table_id != known.table_id:
        return None
    return known if readable(location, known.version) else None


def location_of(relations: Relations, name: str) -> str:
    """Where groups are kept."""
    number = int(name.rpartition(".")[2])
    fingerprint = relations.base.watermark.fingerprint
    return relations.context.lake.state(relations.view, fingerprint, number)


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
