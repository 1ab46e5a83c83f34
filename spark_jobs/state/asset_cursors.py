"""How far the publications of each gold view were told to Airflow, as events of its asset."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from spark_jobs.state.tables import ASSET_CURSORS
from spark_jobs.state.upsert import insert_or_replace


@dataclass(frozen=True)
class AssetCursor:
    """Up to which version of a published table Airflow knows of it.

    Attributes:
        view: the gold view's name, without the layer.
        table_id: of the Delta table; empty where there was none yet.
        version: the last version that was looked at; -1: none.
        at: when it was written.
        error: why the next publication could not be told; None: nothing waits.
        waits_since: when the oldest publication that waits was committed.
    """

    view: str
    table_id: str
    version: int
    at: datetime
    error: str | None = None
    waits_since: datetime | None = None


def asset_cursors(connection: Connection) -> dict[str, AssetCursor]:
    """The cursor of each view."""
    rows = connection.execute(select(ASSET_CURSORS)).mappings()
    return {row["view"]: AssetCursor(**row) for row in rows}


def set_asset_cursor(connection: Connection, cursor: AssetCursor) -> None:
    """Replace a view's cursor; to be called in a transaction that writes."""
    insert_or_replace(connection, ASSET_CURSORS, asdict(cursor))
