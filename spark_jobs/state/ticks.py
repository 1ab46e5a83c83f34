"""Ticks: the input versions that every view of one scheduling tick shares."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, select

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.tables import TICKS
from spark_jobs.state.types import utc_now
from spark_jobs.state.upsert import insert_or_keep


def pin_version(
    connection: Connection, tick: str, table: TableName, *, version: TableVersion
) -> TableVersion:
    """Pin a table's version for a tick; the first caller wins, and all get what it pinned."""
    row = {
        "tick": tick,
        "table_name": str(table),
        "table_id": version.table_id,
        "version": version.version,
        "pinned_at": utc_now(),
    }
    if insert_or_keep(connection, TICKS, row):
        return version
    query = select(TICKS.c.table_id, TICKS.c.version).where(
        TICKS.c.tick == tick, TICKS.c.table_name == str(table)
    )
    won = connection.execute(query).one()
    return TableVersion(won.table_id, won.version)


def pins(connection: Connection, tick: str) -> dict[TableName, TableVersion]:
    """What the tick has pinned so far."""
    rows = connection.execute(select(TICKS).where(TICKS.c.tick == tick)).all()
    return {
        TableName.parse(row.table_name): TableVersion(row.table_id, row.version) for row in rows
    }


def forget_ticks(connection: Connection, *, before: datetime) -> int:
    """Drop pins that are older; returns how many."""
    return connection.execute(delete(TICKS).where(TICKS.c.pinned_at < before)).rowcount
