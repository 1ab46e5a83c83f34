"""The part of the control database that replays, rollbacks and holds are kept in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Unpack

from sqlalchemy import Connection

from spark_jobs.state import holds, replays
from spark_jobs.state.errors import ReplayNotFoundError
from spark_jobs.state.holds import Hold
from spark_jobs.state.replays import ReplayRecord, ReplayStatus, ReplayView, ViewChange


class ReplayStore:
    """What ``ControlStore`` knows of replays; each method is one transaction."""

    @abstractmethod
    def _read(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _write(self) -> AbstractContextManager[Connection]: ...

    def begin_replay(self, record: ReplayRecord, *, views: Collection[str]) -> ReplayRecord:
        """See ``replays.begin_replay``: the first writer of an id wins."""
        with self._write() as connection:
            return replays.begin_replay(connection, record, views=views)

    def end_replay(self, replay_id: str, *, status: ReplayStatus, error: str | None = None) -> None:
        """Note how a replay ended."""
        with self._write() as connection:
            replays.end_replay(connection, replay_id, status=status, error=error)

    def replay(self, replay_id: str) -> ReplayRecord:
        """The replay; ``ReplayNotFoundError`` where there is none."""
        with self._read() as connection:
            return replays.get_replay(connection, replay_id)

    def replays(
        self, *, statuses: Collection[ReplayStatus] = (), limit: int = 20
    ) -> list[ReplayRecord]:
        """Replays and rollbacks, the newest first."""
        with self._read() as connection:
            return replays.replays(connection, statuses=statuses, limit=limit)

    def replay_views(self, replay_id: str) -> list[ReplayView]:
        """The views of a replay in their order."""
        with self._read() as connection:
            return replays.replay_views(connection, replay_id)

    def replay_view(self, replay_id: str, view: str) -> ReplayView:
        """One view of a replay; ``ReplayNotFoundError`` where it has no such view."""
        for one in self.replay_views(replay_id):
            if one.view == view:
                return one
        raise ReplayNotFoundError(replay_id, view)

    def update_replay_view(self, replay_id: str, view: str, **change: Unpack[ViewChange]) -> None:
        """Change the given columns of one view's row."""
        with self._write() as connection:
            replays.update_view(connection, replay_id, view, change=change)

    def put_hold(self, hold: Hold) -> None:
        """Hold a view; another hold of it is replaced."""
        with self._write() as connection:
            holds.put_hold(connection, hold)

    def holds(self) -> dict[str, Hold]:
        """Every held view."""
        with self._read() as connection:
            return holds.holds(connection)

    def release(self, view: str) -> bool:
        """Let refreshes touch a view again; False where it was not held."""
        with self._write() as connection:
            return holds.release(connection, view)
