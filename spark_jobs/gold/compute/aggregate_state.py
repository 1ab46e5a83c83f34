"""Aggregate state: counts and sums beside a view, which an incremental refresh adds changes to.

A publication names the versions that belong to it. The groups of an attempt that was never
published are other versions of the same table, and nobody reads them.
"""

from __future__ import annotations

from dataclasses import replace

from spark_jobs.gold.compute.state_location import LAYERS, AggregateState
from spark_jobs.gold.context import GoldContext
from spark_jobs.names import TableVersion
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import log, policy, writer
from spark_jobs.storage.delta import SHORT_LOG
from spark_jobs.storage.history import folders, remove_table, vacuum
from spark_jobs.storage.policy import Place
from spark_jobs.storage.rows import Rows

_VERSIONS_BETWEEN_SWEEPS = 50
# What an attempt has just written is among so many commits, however many rivals it has.
_NEWEST = 20


def takes(groups: AggregateState, work: WorkItem) -> bool:
    """Whether an attempt's change is appended to the groups; otherwise they are rewritten."""
    return groups.takes(work.changed)


def append_groups(groups: AggregateState, added: Rows, work: WorkItem) -> None:
    """Append what an attempt adds to groups that take it.

    Raises:
        TableMovedError: somebody else wrote them at the same moment.
    """
    if groups.known is None:
        raise AssertionError("only groups of a known version take a change")
    said = {"attempt": work.attempt_id, LAYERS: (groups.layers or 0) + 1}
    writer.append(added, groups.location, after=groups.known.version, metadata=said)


def write_groups(groups: AggregateState, after: Rows, work: WorkItem) -> None:
    """Write all groups again.

    Raises:
        TableMovedError: somebody else wrote them at the same moment.
    """
    few = groups.known is not None and policy.STATE.fits(rows=groups.rows)
    after = after if few else replace(after, place=Place.SPARK)
    said = {"attempt": work.attempt_id, LAYERS: 0}
    writer.replace(after, groups.location, metadata=said, properties=SHORT_LOG)


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
