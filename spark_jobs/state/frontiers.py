"""Frontiers: table versions that show the same transactions of a source database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.tables import FRONTIERS
from spark_jobs.state.upsert import insert_or_replace

# Frontiers kept per database: tables that lag behind have only older ones.
FRONTIERS_KEPT = 50


@dataclass(frozen=True)
class TableAtFrontier:
    """A table version with all changes up to a commit, and none after it.

    Attributes:
        database: prefix of its topics.
        position: log position of the end of that commit.
        at: when it was recorded.
    """

    database: str
    position: int
    table: TableName
    version: TableVersion
    at: datetime


def note_frontiers(connection: Connection, notes: Iterable[TableAtFrontier]) -> None:
    """Record versions; keeps the newest frontiers of each database."""
    databases = set()
    for note in notes:
        row = {
            "database": note.database,
            "position": note.position,
            "table_name": str(note.table),
            "table_id": note.version.table_id,
            "version": note.version.version,
            "at": note.at,
        }
        insert_or_replace(connection, FRONTIERS, row)
        databases.add(note.database)
    for name in databases:
        ours = FRONTIERS.c.database == name
        positions = select(FRONTIERS.c.position).where(ours).distinct()
        newest = positions.order_by(FRONTIERS.c.position.desc())
        last = connection.scalar(newest.offset(FRONTIERS_KEPT - 1).limit(1))
        if last is not None:
            connection.execute(delete(FRONTIERS).where(ours & (FRONTIERS.c.position < last)))


def frontiers(connection: Connection, database: str) -> list[TableAtFrontier]:
    """All recorded versions of a database, newest frontier first."""
    ours = select(FRONTIERS).where(FRONTIERS.c.database == database)
    rows = connection.execute(ours.order_by(FRONTIERS.c.position.desc(), FRONTIERS.c.table_name))
    return [
        TableAtFrontier(
            row.database,
            row.position,
            TableName.parse(row.table_name),
            TableVersion(row.table_id, row.version),
            row.at,
        )
        for row in rows
    ]
