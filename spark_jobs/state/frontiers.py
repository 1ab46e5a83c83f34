"""Frontiers: table versions that show the same transactions of a source database."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, select

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.tables import FRONTIERS
from spark_jobs.state.upsert import insert_or_replace

# The newest positions that are kept of each database.
FRONTIERS_KEPT = 50


class AfterSnapshot(int):
    """The commit position right after a snapshot, before any commit: views show its rows only."""


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


def note_frontiers(
    connection: Connection, notes: Iterable[TableAtFrontier], *, keep: Collection[int] = ()
) -> None:
    """Record versions, and delete old ones.

    The newest positions of each database stay, and the newest of each table: those that lag behind
    have only older ones.

    Args:
        connection: a transaction of the control database.
        notes: the versions.
        keep: positions that stay although they are old.
    """
    databases = set()
    for note in notes:
        row = {
            "database": note.database,
            "position": int(note.position),
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
        if last is None:
            continue
        of_tables = select(func.max(FRONTIERS.c.position)).where(ours).group_by("table_name")
        kept = {*map(int, keep), *connection.scalars(of_tables)}
        old = ours & (FRONTIERS.c.position < last) & FRONTIERS.c.position.not_in(kept)
        connection.execute(delete(FRONTIERS).where(old))


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
