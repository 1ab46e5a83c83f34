"""Cursors: up to which version the asset events of each gold view were emitted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from spark_jobs.state.tables import ASSET_CURSORS
from spark_jobs.state.upsert import insert_or_replace


@dataclass(frozen=True)
class AssetCursor:
    """The last version of a published table whose asset event was emitted.

    Attributes:
        view: the gold view's name, without the layer.
        table_id: id of the Delta table; empty if there was none yet.
        version: the last version that was processed; -1: none.
        at: when it was written.
        error: why the next event could not be emitted; None: nothing waits.
        waits_since: commit time of the oldest publication that waits.
    """

    view: str
    table_id: str
    version: int
    at: datetime
    error: str | None = None
    waits_since: datetime | None = None


def asset_cursors(connection: Connection) -> dict[str, AssetCursor]:
    """The cursor of each view's asset events, by view."""
    rows = connection.execute(select(ASSET_CURSORS)).mappings()
    return {row["view"]: AssetCursor(**row) for row in rows}


def set_asset_cursor(connection: Connection, cursor: AssetCursor) -> None:
    """Replace a view's cursor, in a write transaction."""
    insert_or_replace(connection, ASSET_CURSORS, asdict(cursor))
