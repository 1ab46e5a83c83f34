"""The streaming application's sign of life: one row per query."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, delete, select, update

from spark_jobs.state.tables import STREAM_PROGRESS
from spark_jobs.state.types import JsonObject
from spark_jobs.state.upsert import insert_or_replace

# Sinks report in the same table as streaming queries, under names that begin so.
SINK_PREFIX: Final = "sink."


class StreamState(StrEnum):
    """What a query was doing when it last reported."""

    STARTING = "starting"
    RUNNING = "running"
    # What the query reads is not there yet; it is asked for again and again.
    WAITING = "waiting"
    # Records are lost, or would be: an operator must decide.
    REFUSED = "refused"
    # The quality gate blocks a continuous view's result; its inputs or its rules must change.
    BLOCKED = "blocked"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class StreamProgress:
    """A query's last batch and its last sign of life; a continuous view's refreshes are batches.

    Attributes:
        query: the query's name, for instance ``bronze.orders``.
        batch_id: the last batch that ended; -1 before the first. Of a view: its
            table's version.
        records: records in that batch. Of a view: rows of its inputs that had changed.
        end_offsets: where that batch ended, as the source tells it.
        at: when that batch ended.
        heartbeat_at: when the query was last seen alive.
        lag_records: records behind the source; None where the source cannot tell.
        error: why the query failed.
        deployment: the number of the deployment that it runs as; None where it follows none.
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

    def stale(self, *, now: datetime, after: timedelta) -> bool:
        """Should this query have been seen since? One that was stopped on purpose is not stale."""
        return self.state is not StreamState.STOPPED and now - self.heartbeat_at > after

    def health(self, *, now: datetime, after: timedelta, on_purpose: bool) -> str:
        """How the query stands now: its state, or ``silent`` or ``down``.

        Args:
            now: the moment.
            after: how long a query may say nothing, and an application take to come back.
            on_purpose: a person stopped the application; otherwise it should run.
        """
        if now - self.heartbeat_at <= after:
            return self.state.value
        if self.state is StreamState.STOPPED:
            return self.state.value if on_purpose else "down"
        return "silent"

    def as_dict(self) -> JsonObject:
        """The row for programs."""
        return {
            **asdict(self),
            "state": self.state.value,
            "at": self.at.isoformat(),
            "heartbeat_at": self.heartbeat_at.isoformat(),
        }


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """A query's sign of life, or how it ended; says nothing of its last batch."""

    query: str
    at: datetime
    state: StreamState = StreamState.RUNNING
    error: str | None = None
    deployment: int | None = None


def sink_query(sink: str) -> str:
    """The name under which a sink reports."""
    return f"{SINK_PREFIX}{sink}"


def record_progress(connection: Connection, progress: StreamProgress) -> None:
    """Replace the query's row."""
    insert_or_replace(connection, STREAM_PROGRESS, asdict(progress))


def record_heartbeat(connection: Connection, beat: Heartbeat) -> None:
    """Note that a query lives, or how it ended; its last batch stays as recorded."""
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
    """Drop the row of a query that runs no more."""
    connection.execute(delete(STREAM_PROGRESS).where(STREAM_PROGRESS.c.query == query))


def progress(connection: Connection) -> list[StreamProgress]:
    """Every query's row, by name."""
    rows = connection.execute(select(STREAM_PROGRESS).order_by(STREAM_PROGRESS.c.query)).mappings()
    return [StreamProgress(**{**row, "state": StreamState(row["state"])}) for row in rows]
