"""Pinned views: refreshes skip them, so that they do not undo a rollback."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from spark_jobs.state.tables import PINNED_VIEWS
from spark_jobs.state.types import utc_now
from spark_jobs.state.upsert import insert_or_replace


@dataclass(frozen=True, kw_only=True)
class PinnedView:
    """A view that refreshes skip.

    Attributes:
        view: the gold view's name, without the layer.
        version: version of the published table that the view is pinned to.
        who: the person who asked for it.
        replay_id: the rollback.
    """

    view: str
    version: int
    who: str
    reason: str
    replay_id: str
    since: datetime = field(default_factory=utc_now)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes; ``since`` in ISO 8601."""
        return {**asdict(self), "since": self.since.isoformat()}


def pin_view(connection: Connection, pinned: PinnedView) -> None:
    """Pin a view; replaces an earlier pin."""
    insert_or_replace(connection, PINNED_VIEWS, asdict(pinned))


def pinned_views(connection: Connection) -> dict[str, PinnedView]:
    """All pinned views, by name."""
    rows = connection.execute(select(PINNED_VIEWS).order_by(PINNED_VIEWS.c.view)).mappings()
    return {row["view"]: PinnedView(**row) for row in rows}


def release(connection: Connection, view: str) -> bool:
    """End a view's pin; False if it was not pinned."""
    return connection.execute(delete(PINNED_VIEWS).where(PINNED_VIEWS.c.view == view)).rowcount > 0
