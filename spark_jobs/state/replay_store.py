"""The replays, rollbacks and pinned views in the control database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Unpack

from sqlalchemy import Connection

from spark_jobs.state import pinned_views, replays
from spark_jobs.state.errors import ReplayNotFoundError
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.replays import Decision, ReplayRecord, ReplayStatus, ReplayView, ViewChange


class ReplayStore:
    """The methods of ``ControlStore`` for replays; each is one transaction."""

    @abstractmethod
    def _read(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _write(self) -> AbstractContextManager[Connection]: ...

    def begin_replay(self, record: ReplayRecord, *, views: Collection[str]) -> ReplayRecord:
        """See ``replays.begin_replay``: the first writer of an id wins."""
        with self._write() as connection:
            return replays.begin_replay(connection, record, views=views)

    def ask_again(self, replay_id: str, asked: replays.Asked) -> ReplayRecord:
        """See ``replays.ask_again``; raises ``ReplayNotFoundError``."""
        with self._write() as connection:
            return replays.ask_again(connection, replay_id, asked)

    def end_replay(self, replay_id: str, *, status: ReplayStatus, error: str | None = None) -> None:
        """Record how a replay ended."""
        with self._write() as connection:
            replays.end_replay(connection, replay_id, status=status, error=error)

    def replay(self, replay_id: str) -> ReplayRecord:
        """The replay; raises ``ReplayNotFoundError``."""
        with self._read() as connection:
            return replays.get_replay(connection, replay_id)

    def replays(
        self, *, statuses: Collection[ReplayStatus] = (), limit: int = 20
    ) -> list[ReplayRecord]:
        """Replays and rollbacks, newest first."""
        with self._read() as connection:
            return replays.replays(connection, statuses=statuses, limit=limit)

    def replay_views(self, replay_id: str) -> list[ReplayView]:
        """The views of a replay, in order."""
        with self._read() as connection:
            return replays.replay_views(connection, replay_id)

    def replay_view(self, replay_id: str, view: str) -> ReplayView:
        """One view of a replay.

        Raises:
            ReplayNotFoundError: there is no such replay, or it has no such view.
        """
        for one in self.replay_views(replay_id):
            if one.view == view:
                return one
        raise ReplayNotFoundError(replay_id, view)

    def update_replay_view(self, replay_id: str, view: str, **change: Unpack[ViewChange]) -> None:
        """Change the given columns of one view's row."""
        with self._write() as connection:
            replays.update_view(connection, replay_id, view, change=change)

    def pin_view(self, pinned: PinnedView) -> None:
        """Pin a view; replaces an earlier pin."""
        with self._write() as connection:
            pinned_views.pin_view(connection, pinned)

    def pinned_views(self) -> dict[str, PinnedView]:
        """All pinned views, by name."""
        with self._read() as connection:
            return pinned_views.pinned_views(connection)

    def add_decision(self, replay_id: str, decision: Decision) -> None:
        """Record a person's decision about a replay or rollback."""
        with self._write() as connection:
            replays.add_decision(connection, replay_id, decision)

    def end_pin(self, pinned: PinnedView, decision: Decision) -> bool:
        """End a pin, and record the decision; False if the view was not pinned."""
        with self._write() as connection:
            ended = pinned_views.release(connection, pinned.view)
            if ended:
                replays.add_decision(connection, pinned.replay_id, decision)
            return ended

    def release(self, view: str) -> bool:
        """End a view's pin; False if it was not pinned."""
        with self._write() as connection:
            return pinned_views.release(connection, view)
