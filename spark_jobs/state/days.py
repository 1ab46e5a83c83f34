"""Summaries of the ledger for a time span: outcomes, failed audits, publications.

An attempt belongs to the time at which it ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, func, select

from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.tables import ATTEMPTS
from spark_jobs.state.types import JsonObject


@dataclass(frozen=True)
class Published:
    """A publication of a gold view: its time, the versions of its inputs, and what it took."""

    view: str
    at: datetime
    vector: JsonObject
    actual: JsonObject = field(default_factory=dict)


def outcomes(
    connection: Connection, *, start: datetime, end: datetime
) -> dict[str, dict[AttemptStatus, int]]:
    """Number of attempts by view and status, for the half-open time [start, end)."""
    columns = ATTEMPTS.c
    query = select(columns.view, columns.status, func.count().label("count"))
    query = query.where(_between(start, end)).group_by(columns.view, columns.status)
    found: dict[str, dict[AttemptStatus, int]] = {}
    for row in connection.execute(query).mappings():
        found.setdefault(row["view"], {})[AttemptStatus(row["status"])] = row["count"]
    return found


def failed_verdicts(
    connection: Connection, *, start: datetime, end: datetime
) -> list[tuple[str, JsonObject]]:
    """View and verdict, as the ledger has it, of audits with a failed expectation, oldest first."""
    columns = ATTEMPTS.c
    failed = columns.verdict["failed"].as_integer() > 0
    query = select(columns.view, columns.verdict).where(_between(start, end), failed)
    rows = connection.execute(query.order_by(columns.updated_at)).mappings()
    return [(row["view"], row["verdict"]) for row in rows]


def publications(connection: Connection, *, start: datetime, end: datetime) -> list[Published]:
    """The publications, oldest first."""
    columns = ATTEMPTS.c
    query = select(columns.view, columns.updated_at, columns.vector, columns.actual).where(
        _between(start, end), columns.status == AttemptStatus.PUBLISHED
    )
    rows = connection.execute(query.order_by(columns.updated_at)).mappings()
    return [
        Published(row["view"], row["updated_at"], row["vector"] or {}, row["actual"] or {})
        for row in rows
    ]


def _between(start: datetime, end: datetime) -> ColumnElement[bool]:
    return (ATTEMPTS.c.updated_at >= start) & (ATTEMPTS.c.updated_at < end)
