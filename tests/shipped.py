"""The project of this repository, compiled once in a process, and what its cases need."""

from __future__ import annotations

from functools import cache

from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import REPOSITORY

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
    return compile_project(REPOSITORY)
