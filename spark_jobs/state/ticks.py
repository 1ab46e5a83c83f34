"""Ticks: the input versions that all views of a scheduling tick read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, delete, select

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.tables import TICKS
from spark_jobs.state.types import utc_now
from spark_jobs.state.upsert import insert_or_keep

# The tick of continuous refreshes: they follow no schedule, and the views of a pass share versions
# in memory.
CONTINUOUS: Final = "continuous"


def pin_versions(
    connection: Connection, tick: str, *, versions: Mapping[TableName, TableVersion]
) -> dict[TableName, TableVersion]:
    """Pin versions of tables for a tick; the first caller wins, and all get its versions.

    Rows are inserted in the order of names. So of concurrent callers with the same tables, one pins
    all of them, and the others wait at the first row.
    """
    now = utc_now()
    for table, version in sorted(versions.items()):
        row = {
            "tick": tick,
            "table_name": str(table),
            "table_id": version.table_id,
            "version": version.version,
            "pinned_at": now,
        }
        insert_or_keep(connection, TICKS, row)
    won = pins(connection, tick)
    return {table: won[table] for table in versions}


def pins(connection: Connection, tick: str) -> dict[TableName, TableVersion]:
    """The versions that the tick has pinned so far, by table."""
    rows = connection.execute(select(TICKS).where(TICKS.c.tick == tick)).all()
    return {
        TableName.parse(row.table_name): TableVersion(row.table_id, row.version) for row in rows
    }


def forget_ticks(connection: Connection, *, before: datetime) -> int:
    """Delete older pins; returns their number."""
    return connection.execute(delete(TICKS).where(TICKS.c.pinned_at < before)).rowcount
