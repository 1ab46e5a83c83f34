"""The project of this repository, compiled once in a process, and what its cases need."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.storage.compiled import CACHE, compiled

# Why Spark runs the cases of these views.
ON_SPARK = {
    "clicks_per_user_5m": "window",
    "content_popularity": "window",
    "failed_logins": "window",
    "order_amount_hopping": "window",
    "orders_by_user": "the type of column order_ids",
    "request_latency_p95": "window",
    "user_dashboard": "a text joined with another type",
    "user_sessions": "session_window",
}


@cache
def shipped_project() -> Manifest:
    """The manifest; nothing may modify it."""
    return _compiled()[0]


def put_compiled_views(state: Path) -> None:
    """Leave in a state directory what a command that compiled this project leaves there."""
    (state / CACHE).write_bytes(_compiled()[1])


@cache
def _compiled() -> tuple[Manifest, bytes]:
    """The manifest, and the file with the compiled views."""
    with TemporaryDirectory() as state:
        settings = load_settings(REPOSITORY, state_dir=Path(state))
        return compiled(settings), (settings.state / CACHE).read_bytes()
