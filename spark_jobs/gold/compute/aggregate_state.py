"""Reads, writes and cleans up aggregate state: a hidden table of counts, sums and extremes.

A publication records the version of the table that belongs to it. Versions that were written by
attempts that were never published are not read.
"""

from __future__ import annotations

from dataclasses import replace

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.compute.state_location import LAYERS, AggregateState
from spark_jobs.names import TableVersion
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import log, policy, writer
from spark_jobs.storage.cleaning import remove_files
from spark_jobs.storage.delta import SHORT_LOG
from spark_jobs.storage.history import discard_table, folders, vacuum
from spark_jobs.storage.log_files import past_entries
from spark_jobs.storage.policy import Place
from spark_jobs.storage.rows import Rows

_VERSIONS_BETWEEN_SWEEPS = 50
# A commit that this attempt has just made is among this many newest ones, even with rivals.
_NEWEST = 20


def takes(groups: AggregateState, work: WorkItem) -> bool:
    """Whether this attempt appends its change to the table; otherwise it rewrites the table."""
    return groups.takes(work.changed)


def append_groups(groups: AggregateState, added: Rows, work: WorkItem) -> None:
    """Append an attempt's change to the aggregate state.

    Raises:
        TableMovedError: another process wrote the table at the same time.
    """
    if groups.known is None:
        raise AssertionError("only groups of a known version take a change")
    said = {"attempt": work.attempt_id, LAYERS: (groups.layers or 0) + 1}
    writer.append(added, groups.location, after=groups.known.version, metadata=said)


def write_groups(groups: AggregateState, after: Rows, work: WorkItem) -> None:
    """Replace all rows of the aggregate state.

    Raises:
        TableMovedError: another process wrote the table at the same time.
    """
    few = groups.known is not None and policy.STATE.fits(rows=groups.rows)
    after = after if few else replace(after, place=Place.SPARK)
    said = {"attempt": work.attempt_id, LAYERS: 0}
    writer.replace(after, groups.location, metadata=said, properties=SHORT_LOG)


def written_groups(location: str, work: WorkItem) -> TableVersion:
    """The version that this attempt wrote; another attempt may have written a newer one."""
    current = log.table_version(location)
    for commit in log.commits(location, limit=_NEWEST):
        if current is not None and (commit.metadata or {}).get("attempt") == work.attempt_id:
            return TableVersion(current.table_id, commit.version)
    raise AssertionError(f"{location} was just written")


def sweep_groups(context: GoldContext, view: str) -> None:
    """Delete the state of old definitions; clean the current one every few dozen versions.

    A refresh that finds its version deleted computes the state again from all rows.
    """
    definition = context.lake.states(view, context.entry(view).fingerprint)
    for name in folders(context.lake.states(view)):
        if not definition.endswith(f"/{name}"):
            discard_table(f"{context.lake.states(view)}/{name}")
    for number in folders(definition):
        current = log.table_version(f"{definition}/{number}")
        if current is not None and current.version % _VERSIONS_BETWEEN_SWEEPS == 0:
            location = f"{definition}/{number}"
            vacuum(location, days=context.settings.gold.staging_days)
            oldest = current.version - context.settings.maintenance.log_commits
            remove_files(location, past_entries(location, before=oldest))
