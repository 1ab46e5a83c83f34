"""Replays and rollbacks: who asked for what and why, and their progress."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict

from sqlalchemy import Connection, insert, select, update

from spark_jobs.state.errors import ReplayNotFoundError
from spark_jobs.state.tables import REPLAY_VIEWS, REPLAYS
from spark_jobs.state.types import JsonObject, utc_now
from spark_jobs.state.upsert import insert_or_keep


class ReplayKind(StrEnum):
    """What was requested."""

    REPLAY = "replay"
    ROLLBACK = "rollback"


class ReplayStatus(StrEnum):
    """How far it has come; a killed one stays RUNNING until it is resumed."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REJECTED = "rejected"


class ViewProgress(StrEnum):
    """How far one of its views has come."""

    WAITING = "waiting"
    BUILT = "built"
    PUBLISHED = "published"
    SKIPPED = "skipped"
    FAILED = "failed"


class DecisionKind(StrEnum):
    """A person's decision about a replay or rollback."""

    APPROVED = "approved"
    REJECTED = "rejected"
    # One that was killed is continued by another request.
    ASKED_AGAIN = "asked again"
    # A rolled back view is refreshed again.
    PIN_ENDED = "pin ended"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Who decided what, and when.

    Attributes:
        reason: as written; None if it was not asked for.
        approved_by: the person who approved; None if nobody was asked.
    """

    what: DecisionKind
    who: str
    reason: str | None = None
    ticket: str | None = None
    approved_by: str | None = None
    at: datetime = field(default_factory=utc_now)

    def as_dict(self) -> JsonObject:
        """As stored in the control database."""
        return {**asdict(self), "what": self.what.value, "at": self.at.isoformat()}


class Asked(NamedTuple):
    """Who asked for a replay or rollback, why, and who approved it."""

    who: str
    reason: str
    ticket: str | None
    approved_by: str | None


@dataclass(frozen=True, kw_only=True)
class ReplayRecord:
    """A replay or rollback.

    Attributes:
        request: the request; equal requests are the same work.
        plan: the plan as shown before it began.
        decisions: people's decisions, as from ``Decision.as_dict``, oldest first.
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
    def asked(self) -> Asked:
        """The last request for it."""
        for one in reversed(self.decisions):
            if one["what"] == DecisionKind.ASKED_AGAIN.value:
                return Asked(*(one[name] for name in Asked._fields))
        return Asked(self.who, self.reason, self.ticket, self._who(DecisionKind.APPROVED))

    @property
    def approved_by(self) -> str | None:
        """The person who approved the last request; None if nobody was asked."""
        return self.asked.approved_by

    @property
    def rejected_by(self) -> str | None:
        """The person who rejected it; None if nobody did."""
        return self._who(DecisionKind.REJECTED)

    def _who(self, decided: DecisionKind) -> str | None:
        return next((one["who"] for one in self.decisions if one["what"] == decided.value), None)

    def as_dict(self) -> JsonObject:
        """As a JSON object."""
        return {
            **asdict(self),
            "approved_by": self.approved_by,
            "started_at": self.started_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


def approval(who: str | None) -> list[JsonObject]:
    """The initial decisions of a record: the approval, if there is one."""
    return [] if who is None else [Decision(what=DecisionKind.APPROVED, who=who).as_dict()]


@dataclass(frozen=True, kw_only=True)
class ReplayView:
    """One view of a replay.

    Attributes:
        position: in the order of processing, from 0.
        attempt_id: the newest attempt in the ledger, which counts finished pieces.
        before_version: version of the published table before; None if there was none.
        difference: numbers of deleted and inserted rows, with examples.
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
        """As a JSON object."""
        return {**asdict(self), "updated_at": self.updated_at.isoformat()}


class ViewChange(TypedDict, total=False):
    """The columns of a view's row that may change."""

    status: ViewProgress
    attempt_id: str | None
    before_version: int | None
    published_version: int | None
    difference: JsonObject | None
    error: str | None


def begin_replay(
    connection: Connection, record: ReplayRecord, *, views: Collection[str]
) -> ReplayRecord:
    """Record a replay and its views in order; an existing one of that id is returned unchanged."""
    if insert_or_keep(connection, REPLAYS, asdict(record)):
        for position, view in enumerate(views):
            row = ReplayView(replay_id=record.replay_id, view=view, position=position)
            connection.execute(insert(REPLAY_VIEWS).values(asdict(row)))
    return get_replay(connection, record.replay_id)


def get_replay(connection: Connection, replay_id: str) -> ReplayRecord:
    """The replay.

    Raises:
        ReplayNotFoundError: there is no such replay.
    """
    query = select(REPLAYS).where(REPLAYS.c.replay_id == replay_id)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise ReplayNotFoundError(replay_id)
    return _record(row)


def replays(
    connection: Connection, *, statuses: Collection[ReplayStatus] = (), limit: int = 20
) -> list[ReplayRecord]:
    """Replays and rollbacks, newest first; an empty ``statuses`` means any."""
    query = select(REPLAYS).order_by(REPLAYS.c.started_at.desc()).limit(limit)
    if statuses:
        query = query.where(REPLAYS.c.status.in_(statuses))
    return [_record(row) for row in connection.execute(query).mappings()]


def end_replay(
    connection: Connection, replay_id: str, *, status: ReplayStatus, error: str | None = None
) -> None:
    """Record how a replay ended."""
    values = {"status": status, "error": error, "updated_at": utc_now()}
    connection.execute(update(REPLAYS).where(REPLAYS.c.replay_id == replay_id).values(values))


def add_decision(connection: Connection, replay_id: str, decision: Decision) -> None:
    """Record a person's decision; ignored if the replay's record was trimmed."""
    mine = REPLAYS.c.replay_id == replay_id
    known = connection.scalar(select(REPLAYS.c.decisions).where(mine)) or []
    values = {"decisions": [*known, decision.as_dict()], "updated_at": utc_now()}
    connection.execute(update(REPLAYS).where(mine).values(values))


def ask_again(connection: Connection, replay_id: str, asked: Asked) -> ReplayRecord:
    """Continue a replay; another person, reason, ticket or approval is recorded.

    Raises:
        ReplayNotFoundError: there is no such replay.
    """
    if asked != get_replay(connection, replay_id).asked:
        decision = Decision(what=DecisionKind.ASKED_AGAIN, **asked._asdict())
        add_decision(connection, replay_id, decision)
    return get_replay(connection, replay_id)


def replay_views(connection: Connection, replay_id: str) -> list[ReplayView]:
    """The views of a replay, in order."""
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
