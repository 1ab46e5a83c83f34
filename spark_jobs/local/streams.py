"""The streaming application as a part of the stack."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from spark_jobs.errors import LakehouseError
from spark_jobs.local.parts import Part
from spark_jobs.names import Layer
from spark_jobs.settings import Settings
from spark_jobs.state.progress import SINK_PREFIX, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.conf import session_environment

# A live application reports at least this often, whether or not records arrive.
FRESH = timedelta(seconds=60)
NAME = "streams"


def streams_part(settings: Settings) -> Part:
    """The application as a part of the stack."""
    return Part(
        name=NAME,
        command=(str(Path(sys.executable).parent / "tidemark"), "stream", "run"),
        needs=("topics",),
        environment=session_environment(settings),
        ports={"ports.streams_ui": settings.ports.streams_ui},
        probe=partial(probe_streams, settings),
        stop_seconds=60,
    )


_SERVING = frozenset({StreamState.RUNNING, StreamState.REFUSED})


def probe_streams(settings: Settings) -> str | None:
    """What the application still lacks: it serves while every query of this run reports.

    A query that refuses its source has reported: the others run, and a person must decide. So has
    a continuous view, whatever became of its refresh: the streams below it serve. A sink whose
    system is down is no lack of the application.
    """
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
    if not rows:
        return "has reported no query yet"
    now = datetime.now(UTC)
    for row in rows:
        if row.stale(now=now, after=FRESH):
            return f"query {row.query} is silent"
        if row.state not in _SERVING and not row.query.startswith(f"{Layer.GOLD}."):
            return f"query {row.query} is {row.state}"
    return None
