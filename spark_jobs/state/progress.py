"""Progress and heartbeats of the streaming application: one row per query."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, delete, select, update

from spark_jobs.state.tables import STREAM_PROGRESS
from spark_jobs.state.types import JsonObject
from spark_jobs.state.upsert import insert_or_replace

# Prefix of sinks, which report in the same table as streaming queries.
SINK_PREFIX: Final = "sink."
# A running application reports at least this often.
ALIVE: Final = timedelta(seconds=60)


class StreamState(StrEnum):
    """The state of a query at its last report."""

    STARTING = "starting"
    RUNNING = "running"
    # The query's input does not exist yet; it is retried.
    WAITING = "waiting"
    # Records are lost or would be: an operator must decide.
    REFUSED = "refused"
    # The gate blocks a continuous view's result; its inputs or expectations must change.
    BLOCKED = "blocked"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class StreamProgress:
    """A query's last batch and last heartbeat; for a continuous view a batch is a refresh.

    Attributes:
        query: the query's name, for instance ``bronze.orders``.
        batch_id: the last finished batch; -1 before the first. For a view, its table's version.
        records: records in that batch. For a view, changed input rows.
        end_offsets: end of that batch, as reported by the source.
        at: when that batch ended.
        heartbeat_at: time of the last heartbeat.
        lag_records: records behind the source; None if unknown.
        error: why the query failed.
        deployment: number of the deployment that it runs; None if it follows none.
    """

    query: str
    batch_id: int
    records: int
    end_offsets: JsonObject | None = None
    at: datetime
    heartbeat_at: datetime
    state: StreamState = StreamState.RUNNING
    lag_records: int | None = None
    error: str | None = None
    deployment: int | None = None

    def heard(self, *, now: datetime, within: timedelta) -> bool:
        """Whether the last heartbeat is recent.

        One far in the future is not: the clock was set back, and a query that runs has already
        reported since.
        """
        return abs(now - self.heartbeat_at) <= within

    def alive(self, *, now: datetime) -> bool:
        """Whether its application runs; a query that failed is started again."""
        return self.state is not StreamState.STOPPED and self.heard(now=now, within=ALIVE)

    def stale(self, *, now: datetime, after: timedelta) -> bool:
        """Whether a heartbeat is overdue; a query that was stopped on purpose is never stale."""
        return self.state is not StreamState.STOPPED and not self.heard(now=now, within=after)

    def health(self, *, now: datetime, after: timedelta, on_purpose: bool) -> str:
        """The query's state, or ``silent`` or ``down``.

        Args:
            now: the time.
            after: how long a query may be silent, and an application may take to restart.
            on_purpose: whether a person stopped the application.
        """
        if self.heard(now=now, within=after):
            return self.state.value
        if self.state is StreamState.STOPPED:
            return self.state.value if on_purpose else "down"
        return "silent"

    def as_dict(self) -> JsonObject:
        """As a JSON object."""
        return {
            **asdict(self),
            "state": self.state.value,
            "at": self.at.isoformat(),
            "heartbeat_at": self.heartbeat_at.isoformat(),
        }


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """A query's heartbeat, or its end; says nothing about its last batch."""

    query: str
    at: datetime
    state: StreamState = StreamState.RUNNING
    error: str | None = None
    deployment: int | None = None


def sink_query(sink: str) -> str:
    """The query name of a sink."""
    return f"{SINK_PREFIX}{sink}"


def record_progress(connection: Connection, progress: StreamProgress) -> None:
    """Replace the query's row."""
    insert_or_replace(connection, STREAM_PROGRESS, asdict(progress))


def record_heartbeat(connection: Connection, beat: Heartbeat) -> None:
    """Record that a query is alive, or how it ended; its last batch is kept."""
    changed = {
        "heartbeat_at": beat.at,
        "state": beat.state,
        "error": beat.error,
        "deployment": beat.deployment,
    }
    done = connection.execute(
        update(STREAM_PROGRESS).where(STREAM_PROGRESS.c.query == beat.query).values(changed)
    )
    if done.rowcount == 0:
        first = {**asdict(beat), "batch_id": -1, "records": 0, "heartbeat_at": beat.at}
        record_progress(connection, StreamProgress(**first))


def forget_query(connection: Connection, query: str) -> None:
    """Delete the row of a query that no longer exists."""
    connection.execute(delete(STREAM_PROGRESS).where(STREAM_PROGRESS.c.query == query))


def progress(connection: Connection) -> list[StreamProgress]:
    """The rows of all queries, by name."""
    rows = connection.execute(select(STREAM_PROGRESS).order_by(STREAM_PROGRESS.c.query)).mappings()
    return [StreamProgress(**{**row, "state": StreamState(row["state"])}) for row in rows]
