"""Holds: views that stay at an earlier content, so that no refresh undoes a rollback."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from spark_jobs.state.tables import HOLDS
from spark_jobs.state.types import utc_now
from spark_jobs.state.upsert import insert_or_replace


@dataclass(frozen=True, kw_only=True)
class Hold:
    """A view that no refresh may touch.

    Attributes:
        view: the gold view's name, without the layer.
        version: of the published table, whose content is held.
        who: asked for it.
        replay_id: the rollback that made it.
    """

    view: str
    version: int
    who: str
    reason: str
    replay_id: str
    since: datetime = field(default_factory=utc_now)

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {**asdict(self), "since": self.since.isoformat()}


def put_hold(connection: Connection, hold: Hold) -> None:
    """Hold a view; another hold of it is replaced."""
    insert_or_replace(connection, HOLDS, asdict(hold))


def holds(connection: Connection) -> dict[str, Hold]:
    """Every held view."""
    rows = connection.execute(select(HOLDS).order_by(HOLDS.c.view)).mappings()
    return {row["view"]: Hold(**row) for row in rows}


def release(connection: Connection, view: str) -> bool:
    """Let refreshes touch a view again; False where it was not held."""
    return connection.execute(delete(HOLDS).where(HOLDS.c.view == view)).rowcount > 0
