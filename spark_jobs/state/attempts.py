"""The ledger: one row per attempt to refresh a gold view, from plan to publication."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypedDict

from sqlalchemy import Connection, RowMapping, case, delete, func, select, update

from spark_jobs.names import current_strategy
from spark_jobs.state.epochs import lock_epoch
from spark_jobs.state.errors import AttemptNotFoundError
from spark_jobs.state.tables import ATTEMPTS
from spark_jobs.state.types import JsonObject, utc_now
from spark_jobs.state.upsert import insert_or_keep

LONGEST_ATTEMPT = timedelta(hours=6)
_TICK = timedelta(microseconds=1)


class AttemptStatus(StrEnum):
    """How far an attempt has come."""

    PLANNED = "planned"
    STAGED = "staged"
    AUDITED = "audited"
    BLOCKED = "blocked"
    PUBLISHED = "published"
    SKIPPED = "skipped"
    FAILED = "failed"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, kw_only=True)
class RefreshAttempt:
    """A row of the ledger.

    Attributes:
        view: the gold view's name, without the layer.
        tick: the tick whose pinned versions the attempt reads.
        decision: ``skip``, ``full``, ``incremental``, ``range`` or ``rollback``; the reason is a
            code and a sentence.
        rule: the maintenance strategy of an incremental refresh; None for any other.
        sequence: version of its Delta transaction within the epoch.
        fingerprint: of the view's definition.
        vector: version of each input, as stored by the planner.
        scope: the range of rows, or the version of a rollback; None: the whole view.
        estimate: what the planner expected; ``actual`` is what happened (rows, bytes, seconds).
        verdict: the gate's verdict, as from ``Verdict.as_dict``.
        published_version: the published table's Delta version.
        error: the last error, rendered.
        asked_by: the person who asked for it; None: a schedule or a stream.
    """

    attempt_id: str
    view: str
    tick: str
    status: AttemptStatus = AttemptStatus.PLANNED
    decision: str | None = None
    rule: str | None = None
    reason_code: str | None = None
    reason: str | None = None
    sequence: int | None = None
    epoch: int
    fingerprint: str | None = None
    vector: JsonObject | None = None
    scope: JsonObject | None = None
    estimate: JsonObject | None = None
    actual: JsonObject | None = None
    verdict: JsonObject | None = None
    published_version: int | None = None
    started_at: datetime
    updated_at: datetime
    error: str | None = None
    asked_by: str | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Its epoch and sequence: a publication at a higher place overtakes it."""
        return self.epoch, self.sequence or 0

    @property
    def resumed(self) -> bool:
        """Whether a killed process had staged its result, so that its seconds are unknown."""
        return bool((self.actual or {}).get("resumed"))

    def as_dict(self) -> JsonObject:
        """As a JSON object."""
        return {
            **asdict(self),
            "status": self.status.value,
            "started_at": self.started_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


class AttemptChange(TypedDict, total=False):
    """The columns of an attempt that may change after planning."""

    status: AttemptStatus
    decision: str | None
    reason_code: str | None
    reason: str | None
    fingerprint: str | None
    vector: JsonObject | None
    estimate: JsonObject | None
    actual: JsonObject | None
    verdict: JsonObject | None
    published_version: int | None
    error: str | None


def create_attempt(
    connection: Connection, attempt: RefreshAttempt, *, table: str, above: int = 0
) -> RefreshAttempt:
    """Insert an attempt; an existing one of that id is returned unchanged.

    If the clock was set back, its times follow those of the view's newest attempt: a hybrid logical
    clock, as in Kulkarni et al., "Logical Physical Clocks", 2014. So the newest attempt is always
    the one with the newest start.

    Args:
        connection: a write transaction.
        attempt: if its sequence is None, it gets the next one of its view and epoch.
        table: name under which the view's epoch is stored.
        above: lower bound (exclusive) of the sequence, for instance the last one in the Delta log.
    """
    lock_epoch(connection, table)
    found = find_attempt(connection, attempt.attempt_id)
    if found is not None:
        return found
    if attempt.sequence is None:
        last = connection.scalar(
            select(func.max(ATTEMPTS.c.sequence)).where(
                ATTEMPTS.c.view == attempt.view, ATTEMPTS.c.epoch == attempt.epoch
            )
        )
        attempt = replace(attempt, sequence=max(last or 0, above) + 1)
    newest = next(iter(attempts(connection, view=attempt.view, limit=1)), attempt)
    if attempt.started_at < newest.started_at:
        now = max(newest.started_at, newest.updated_at) + _TICK
        attempt = replace(attempt, started_at=now, updated_at=now)
    insert_or_keep(connection, ATTEMPTS, asdict(attempt))
    return get_attempt(connection, attempt.attempt_id)


def update_attempt(
    connection: Connection, attempt_id: str, *, change: AttemptChange
) -> RefreshAttempt:
    """Change an attempt and return it.

    Raises:
        AttemptNotFoundError: there is no such attempt.
    """
    now, before = utc_now(), ATTEMPTS.c.updated_at
    # The clock may have been set back.
    values: dict[str, Any] = {**change, "updated_at": case((before > now, before), else_=now)}
    change_it = update(ATTEMPTS).where(ATTEMPTS.c.attempt_id == attempt_id).values(values)
    row = connection.execute(change_it.returning(*ATTEMPTS.c)).mappings().one_or_none()
    if row is None:
        raise AttemptNotFoundError(attempt_id)
    return _attempt(row)


def find_attempt(connection: Connection, attempt_id: str) -> RefreshAttempt | None:
    """The attempt, or None."""
    query = select(ATTEMPTS).where(ATTEMPTS.c.attempt_id == attempt_id)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _attempt(row)


def get_attempt(connection: Connection, attempt_id: str) -> RefreshAttempt:
    """The attempt.

    Raises:
        AttemptNotFoundError: there is no such attempt.
    """
    found = find_attempt(connection, attempt_id)
    if found is None:
        raise AttemptNotFoundError(attempt_id)
    return found


def attempts(
    connection: Connection,
    *,
    view: str | None = None,
    tick: str | None = None,
    statuses: Collection[AttemptStatus] = (),
    limit: int = 20,
) -> list[RefreshAttempt]:
    """Attempts, newest first; an empty ``statuses`` means any."""
    query = select(ATTEMPTS).order_by(
        ATTEMPTS.c.started_at.desc(), ATTEMPTS.c.epoch.desc(), ATTEMPTS.c.sequence.desc()
    )
    if view is not None:
        query = query.where(ATTEMPTS.c.view == view)
    if tick is not None:
        query = query.where(ATTEMPTS.c.tick == tick)
    if statuses:
        query = query.where(ATTEMPTS.c.status.in_(statuses))
    return [_attempt(row) for row in connection.execute(query.limit(limit)).mappings()]


def judged(
    connection: Connection, views: Collection[str], *, after: datetime
) -> list[RefreshAttempt]:
    """The attempts of some views that have a verdict and changed later, the first change first."""
    columns = ATTEMPTS.c
    query = select(ATTEMPTS).where(
        columns.view.in_(views),
        # By the index; no attempt takes longer from its plan to its audit.
        columns.started_at > after - LONGEST_ATTEMPT,
        columns.updated_at > after,
        columns.verdict.isnot(None),
    )
    ordered = query.order_by(columns.updated_at, columns.attempt_id)
    return [_attempt(row) for row in connection.execute(ordered).mappings()]


def judged_before(connection: Connection, attempt: RefreshAttempt) -> RefreshAttempt | None:
    """The newest attempt of the same view with a verdict that was planned earlier."""
    columns = ATTEMPTS.c
    query = select(ATTEMPTS).where(
        columns.view == attempt.view,
        columns.started_at < attempt.started_at,
        columns.verdict.isnot(None),
    )
    newest = query.order_by(columns.started_at.desc()).limit(1)
    row = connection.execute(newest).mappings().first()
    return None if row is None else _attempt(row)


def forget_attempts(
    connection: Connection, view: str, *, tick: str, before: datetime, keep: int
) -> int:
    """Delete a view's older attempts of a tick, except for the newest ``keep``."""
    ours = (ATTEMPTS.c.view == view) & (ATTEMPTS.c.tick == tick)
    started = ATTEMPTS.c.started_at
    newest = select(started).where(ours).order_by(started.desc()).offset(keep - 1).limit(1)
    last_kept = connection.scalar(newest)
    if last_kept is None:
        return 0
    old = started < min(last_kept, before)
    return connection.execute(delete(ATTEMPTS).where(ours & old)).rowcount


def _attempt(row: RowMapping) -> RefreshAttempt:
    rule, verdict = row["rule"], row["verdict"]
    if verdict is not None and verdict.get("outcome") == "held":
        # The value that older releases stored.
        verdict = {**verdict, "outcome": "blocked"}
    return RefreshAttempt(
        **{
            **row,
            "status": AttemptStatus(row["status"]),
            "rule": None if rule is None else current_strategy(rule),
            "verdict": verdict,
        }
    )
