"""Replays and rollbacks: who asked for what and why, and how far it came."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypedDict

from sqlalchemy import Connection, insert, select, update

from spark_jobs.state.errors import ReplayNotFoundError
from spark_jobs.state.tables import REPLAY_VIEWS, REPLAYS
from spark_jobs.state.types import JsonObject, utc_now
from spark_jobs.state.upsert import insert_or_keep


class ReplayKind(StrEnum):
    """What was asked for."""

    REPLAY = "replay"
    ROLLBACK = "rollback"


class ReplayStatus(StrEnum):
    """How far it came; one that was killed stays running until it is taken up again."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REJECTED = "rejected"


class ViewProgress(StrEnum):
    """How far one view of it came."""

    WAITING = "waiting"
    BUILT = "built"
    PUBLISHED = "published"
    SKIPPED = "skipped"
    FAILED = "failed"


class DecisionKind(StrEnum):
    """What a person decided about a replay or a rollback."""

    APPROVED = "approved"
    REJECTED = "rejected"
    # Refreshes of a view that was rolled back go on.
    PIN_ENDED = "pin ended"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Who decided what, and when.

    Attributes:
        reason: as it was written; None where nobody was asked for one.
        approved_by: who agreed; None where nobody else was asked.
    """

    what: DecisionKind
    who: str
    reason: str | None = None
    ticket: str | None = None
    approved_by: str | None = None
    at: datetime = field(default_factory=utc_now)

    def as_dict(self) -> JsonObject:
        """The form that the control database keeps."""
        return {**asdict(self), "what": self.what.value, "at": self.at.isoformat()}


@dataclass(frozen=True, kw_only=True)
class ReplayRecord:
    """A replay or a rollback.

    Attributes:
        request: what was asked for; two of one request are the same piece of work.
        plan: what was shown before it began.
        decisions: of people, as ``Decision.as_dict`` writes them, the oldest first.
    """

    replay_id: str
    kind: ReplayKind
    status: ReplayStatus = ReplayStatus.RUNNING
    who: str
    reason: str
    ticket: str | None = None
    request: JsonObject
    plan: JsonObject
    error: str | None = None
    started_at: datetime = field(default_factory=utc_now)
    updated_at: datetime = field(default_factory=utc_now)
    decisions: list[JsonObject] = field(default_factory=list)

    @property
    def approved_by(self) -> str | None:
        """Who approved it; None where nobody was asked."""
        return self._who(DecisionKind.APPROVED)

    @property
    def rejected_by(self) -> str | None:
        """Who rejected it; None where nobody did."""
        return self._who(DecisionKind.REJECTED)

    def _who(self, decided: DecisionKind) -> str | None:
        return next((one["who"] for one in self.decisions if one["what"] == decided.value), None)

    def as_dict(self) -> JsonObject:
        """The form for programs."""
        return {
            **asdict(self),
            "approved_by": self.approved_by,
            "started_at": self.started_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


def approval(who: str | None) -> list[JsonObject]:
    """What a record begins with: who approved it, where somebody was asked."""
    return [] if who is None else [Decision(what=DecisionKind.APPROVED, who=who).as_dict()]


@dataclass(frozen=True, kw_only=True)
class ReplayView:
    """One view of it.

    Attributes:
        position: in the order of the work, from 0.
        attempt_id: the newest attempt of the ledger; chunks that are done are counted there.
        before_version: the published table's version before; None where there was none.
        difference: how many rows are deleted and inserted, and some of them.
    """

    replay_id: str
    view: str
    position: int
    status: ViewProgress = ViewProgress.WAITING
    attempt_id: str | None = None
    before_version: int | None = None
    published_version: int | None = None
    difference: JsonObject | None = None
    error: str | None = None
    updated_at: datetime = field(default_factory=utc_now)

    def as_dict(self) -> JsonObject:
        """The form for programs."""
        return {**asdict(self), "updated_at": self.updated_at.isoformat()}


class ViewChange(TypedDict, total=False):
    """The columns of a view's row that change."""

    status: ViewProgress
    attempt_id: str | None
    before_version: int | None
    published_version: int | None
    difference: JsonObject | None
    error: str | None


def begin_replay(
    connection: Connection, record: ReplayRecord, *, views: Collection[str]
) -> ReplayRecord:
    """Record a replay and its views in their order; one of that id is returned as it stands."""
    if insert_or_keep(connection, REPLAYS, asdict(record)):
        for position, view in enumerate(views):
            row = ReplayView(replay_id=record.replay_id, view=view, position=position)
            connection.execute(insert(REPLAY_VIEWS).values(asdict(row)))
    return get_replay(connection, record.replay_id)


def get_replay(connection: Connection, replay_id: str) -> ReplayRecord:
    """The replay.

    Raises:
        ReplayNotFoundError: there is none of that id.
    """
    query = select(REPLAYS).where(REPLAYS.c.replay_id == replay_id)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise ReplayNotFoundError(replay_id)
    return _record(row)


def replays(
    connection: Connection, *, statuses: Collection[ReplayStatus] = (), limit: int = 20
) -> list[ReplayRecord]:
    """Replays and rollbacks, the newest first; an empty ``statuses`` means any."""
    query = select(REPLAYS).order_by(REPLAYS.c.started_at.desc()).limit(limit)
    if statuses:
        query = query.where(REPLAYS.c.status.in_(statuses))
    return [_record(row) for row in connection.execute(query).mappings()]


def end_replay(
    connection: Connection, replay_id: str, *, status: ReplayStatus, error: str | None = None
) -> None:
    """Note how a replay ended."""
    values = {"status": status, "error": error, "updated_at": utc_now()}
    connection.execute(update(REPLAYS).where(REPLAYS.c.replay_id == replay_id).values(values))


def add_decision(connection: Connection, replay_id: str, decision: Decision) -> None:
    """Keep what a person decided; of a replay that is not kept any more, nothing is."""
    mine = REPLAYS.c.replay_id == replay_id
    known = connection.scalar(select(REPLAYS.c.decisions).where(mine)) or []
    values = {"decisions": [*known, decision.as_dict()], "updated_at": utc_now()}
    connection.execute(update(REPLAYS).where(mine).values(values))


def replay_views(connection: Connection, replay_id: str) -> list[ReplayView]:
    """The views of a replay in their order."""
    query = select(REPLAY_VIEWS).where(REPLAY_VIEWS.c.replay_id == replay_id)
    rows = connection.execute(query.order_by(REPLAY_VIEWS.c.position)).mappings()
    return [ReplayView(**{**row, "status": ViewProgress(row["status"])}) for row in rows]


def update_view(connection: Connection, replay_id: str, view: str, *, change: ViewChange) -> None:
    """Change the given columns and ``updated_at``."""
    values: dict[str, Any] = {**change, "updated_at": utc_now()}
    mine = (REPLAY_VIEWS.c.replay_id == replay_id, REPLAY_VIEWS.c.view == view)
    connection.execute(update(REPLAY_VIEWS).where(*mine).values(values))


def _record(row: Any) -> ReplayRecord:
    words = {"kind": ReplayKind(row["kind"]), "status": ReplayStatus(row["status"])}
    return ReplayRecord(**{**row, **words, "decisions": row["decisions"] or []})
