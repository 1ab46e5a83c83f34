"""Views that are pinned to an earlier version, so that no refresh undoes a rollback."""

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
    """A view that no refresh may touch.

    Attributes:
        view: the gold view's name, without the layer.
        version: the version of the published table that the view is pinned to.
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


def pin_view(connection: Connection, pinned: PinnedView) -> None:
    """Pin a view; an earlier pin of it is replaced."""
    insert_or_replace(connection, PINNED_VIEWS, asdict(pinned))


def pinned_views(connection: Connection) -> dict[str, PinnedView]:
    """Every pinned view."""
    rows = connection.execute(select(PINNED_VIEWS).order_by(PINNED_VIEWS.c.view)).mappings()
    return {row["view"]: PinnedView(**row) for row in rows}


def release(connection: Connection, view: str) -> bool:
    """Let refreshes touch a view again; False where it was not pinned."""
    return connection.execute(delete(PINNED_VIEWS).where(PINNED_VIEWS.c.view == view)).rowcount > 0
