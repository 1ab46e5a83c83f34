"""Frontiers: the versions at which tables show the same transactions of their source database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.tables import FRONTIERS
from spark_jobs.state.upsert import insert_or_replace

# Refreshes ask for the newest that several tables have; those that fell behind have older ones.
FRONTIERS_KEPT = 50


@dataclass(frozen=True)
class TableAtFrontier:
    """A version of a table that has every change up to a commit, and none after it.

    Attributes:
        database: the prefix of its topics.
        position: the end of that commit in the database's log.
        at: when the version was noted.
    """

    database: str
    position: int
    table: TableName
    version: TableVersion
    at: datetime


def note_frontiers(connection: Connection, notes: Iterable[TableAtFrontier]) -> None:
    """Keep versions; of each database the newest frontiers stay."""
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
    """What is noted of a database, the newest frontier first."""
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
