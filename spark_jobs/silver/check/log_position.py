"""Finds a source database whose log is behind the changes that the lake has from it.

A server that was restored to an earlier time, or that replaced another one, begins its log at lower
positions. Silver orders changes by position, so it would take all that comes for older.
"""

from __future__ import annotations

from typing import NamedTuple

import psycopg

from spark_jobs.access.postgres import certificate_refusal
from spark_jobs.access.source_log import log_position, place
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph import databases
from spark_jobs.graph.manifest import ApplyMode, Manifest, SilverEntry
from spark_jobs.silver.check.change_positions import newest_position
from spark_jobs.silver.errors import DatabaseUnreachableError, SourceLogBehindError
from spark_jobs.silver.frontier import reached_by
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import table_version


class Reached(NamedTuple):
    """The newest position of a change in a table."""

    position: int
    table: str


def check_log_position(lake: Lake, store: ControlStore, manifest: Manifest, *, dsn: str) -> None:
    """Refuse a database whose log is behind the tables over it.

    Args:
        lake: with the tables.
        store: the control database.
        manifest: declares the tables.
        dsn: the database, as any role.

    Raises:
        SourceLogBehindError: a table has changes from beyond the end of the log.
        DatabaseUnreachableError: the database does not answer.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    # The log is asked after the tables, which continue.
    newest = newest_change(lake, store, manifest)
    try:
        position = log_position(dsn)
    except psycopg.Error as error:
        raise certificate_refusal(dsn, error) or DatabaseUnreachableError("", str(error)) from error
    if newest.position > position:
        raise SourceLogBehindError(place(position), newest.table, place(newest.position))


def newest_change(lake: Lake, store: ControlStore, manifest: Manifest) -> Reached:
    """The newest change of the captured database in any table; at 0 if there is none.

    Bronze has records that silver has not applied yet; silver has changes whose records are no
    longer among the last of bronze; and what was shown whole may be ahead of what is left of both.

    Raises:
        LogUnreadableError: the log of a silver table cannot be read.
    """
    found = [Reached(0, "")]
    for database in databases.transactional_tables(manifest):
        found += (Reached(one.position, str(one.table)) for one in store.frontiers(database))
    captured = _captured(manifest)
    for name in captured:
        source = manifest.sources[name]
        found.append(Reached(newest_position(lake, source), str(source.table_name)))
    for entry in manifest.silver.values():
        if entry.source in captured:
            reached = _reached(SilverTables.of(lake, entry), entry)
            found.append(Reached(reached, str(entry.table_name)))
    return max(found)


def _captured(manifest: Manifest) -> list[str]:
    """The sources that capture the database."""
    sources = manifest.sources.values()
    return [one.name for one in sources if one.format is SourceFormat.DEBEZIUM]


def _reached(tables: SilverTables, entry: SilverEntry) -> int:
    # A table that only appends has no order, and one without a first batch no changes.
    written = all(table_version(place) is not None for place in tables.places)
    return reached_by(tables) if written and entry.apply is not ApplyMode.APPEND else 0
