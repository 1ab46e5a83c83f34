"""The streaming application as a part of the stack."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from spark_jobs.errors import LakehouseError
from spark_jobs.names import Layer
from spark_jobs.sections import ControlDatabase
from spark_jobs.settings import Settings
from spark_jobs.stack.object_store import store_names
from spark_jobs.stack.parts import READY_SECONDS, Part
from spark_jobs.stack.spark_cluster import cluster_names
from spark_jobs.state.progress import SINK_PREFIX, StreamProgress, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.conf import pages_enabled, session_environment

# A running application reports at least this often, even without records.
FRESH = timedelta(seconds=60)
NAME = "streams"


def streams_part(settings: Settings) -> Part:
    """The application as a part of the stack."""
    return Part(
        name=NAME,
        command=(str(Path(sys.executable).parent / "tidemark"), "stream", "run"),
        needs=(
            "topics",
            *cluster_names(settings),
            *store_names(settings),
            *control_needs(settings),
        ),
        environment=session_environment(settings),
        ports={"ports.streams_ui": settings.ports.streams_ui} if pages_enabled(settings) else {},
        probe=partial(probe_streams, settings),
        alive=partial(silent_streams, settings),
        stop_seconds=60,
        # It is ready when each of its queries runs; they start one after another.
        ready_seconds=2 * READY_SECONDS,
    )


def control_needs(settings: Settings) -> tuple[str, ...]:
    """The part with the control database, if it is in the stack's PostgreSQL."""
    local = not settings.control_db and settings.local.control is ControlDatabase.POSTGRES
    return ("postgres",) if local else ()


_SERVING = frozenset({StreamState.RUNNING, StreamState.REFUSED})


def probe_streams(settings: Settings) -> str | None:
    """Why the application is not ready; None as long as every query of this run reports.

    A query that refuses its source has reported: the others run, and a person must decide. A
    continuous view has reported even if its refresh failed, because the streams that it reads
    work. A sink whose system is down does not count.
    """
    rows = reported(settings)
    if isinstance(rows, str):
        return rows
    for row in rows:
        if row.state not in _SERVING and not row.query.startswith(f"{Layer.GOLD}."):
            return f"query {row.query} is {row.state}"
    return _first_silent(rows)


def silent_streams(settings: Settings) -> str | None:
    """The queries of this run that do not report; those that wait or were refused do."""
    rows = reported(settings)
    return rows if isinstance(rows, str) else _first_silent(rows)


def reported(settings: Settings) -> list[StreamProgress] | str:
    """The last reports of this run's queries, without sinks, or why there are none."""
    record = settings.state / "run" / f"{NAME}.pid"
    if not record.exists():
        return "has not started"
    started = datetime.fromtimestamp(record.stat().st_mtime, UTC)
    try:
        with ControlStore.open(settings.control_url) as store:
            rows = [
                row
                for row in store.progress()
                if row.heartbeat_at >= started and not row.query.startswith(SINK_PREFIX)
            ]
    except LakehouseError as error:
        return error.primary
    return rows or "has reported no query yet"


def _first_silent(rows: Sequence[StreamProgress]) -> str | None:
    now = datetime.now(UTC)
    silent = (row.query for row in rows if row.stale(now=now, after=FRESH))
    return next((f"query {name} is silent" for name in silent), None)
