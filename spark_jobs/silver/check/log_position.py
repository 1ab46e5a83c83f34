"""Finds a source database whose log is behind the changes that silver has from it.

A server that was restored to an earlier time, or that replaced another one, begins its log at lower
positions. Silver orders changes by position, so it would take all that comes for older.
"""

from __future__ import annotations

from collections.abc import Collection

import psycopg

from spark_jobs.access.source_log import log_position, place
from spark_jobs.graph.manifest import ApplyMode, Manifest, SilverEntry
from spark_jobs.silver.errors import DatabaseUnreachableError, SourceLogBehindError
from spark_jobs.silver.frontier import reached_by
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import table_version


def check_log_position(
    lake: Lake, manifest: Manifest, sources: Collection[str], *, dsn: str
) -> None:
    """Refuse a database whose log is behind the silver tables over it.

    Args:
        lake: with the tables.
        manifest: declares them.
        sources: those that capture the database.
        dsn: the database, as any role.

    Raises:
        SourceLogBehindError: a table has changes from beyond the end of the log.
        DatabaseUnreachableError: the database does not answer.
    """
    # The log is asked after the tables, which continue.
    reached = {
        str(entry.table_name): _reached(SilverTables.of(lake, entry), entry)
        for entry in manifest.silver.values()
        if entry.source in sources
    }
    if not reached:
        return
    try:
        position = log_position(dsn)
    except psycopg.Error as error:
        raise DatabaseUnreachableError(min(sources), str(error)) from error
    newest = max(reached, key=lambda name: reached[name])
    if reached[newest] > position:
        raise SourceLogBehindError(place(position), newest, place(reached[newest]))


def _reached(tables: SilverTables, entry: SilverEntry) -> int:
    # A table that only appends has no order, and one without a first batch no changes.
    written = all(table_version(place) is not None for place in tables.places)
    return reached_by(tables) if written and entry.apply is not ApplyMode.APPEND else 0
