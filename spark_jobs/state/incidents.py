"""Incidents: a fault of an Airflow task, from its first failure until a run succeeds.

A task that fails again for the same reason belongs to the same incident, so that people are alerted
once. A long incident is alerted again, and its end is reported too.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, delete, func, select, update

from spark_jobs.state.tables import INCIDENTS

# Ages, counts and versions may differ between failures with the same fault.
_NUMBERS = re.compile(
    r"(?<!\w)(\d[\d.,:T+-]*Z?\s*(seconds?|minutes?|hours?|days?|[smhd]\b|min\b)?\s*)+"
)


@dataclass(frozen=True, kw_only=True)
class Incident:
    """A fault that was alerted.

    Attributes:
        fault: identifies the fault within the task; see ``fault_of``.
        table: name of the gold view in SQL; None if the task covers several.
        times: number of failures.
        told_at: time of the last alert.
        resolved_at: when a run succeeded; None: the incident is open.
    """

    incident_id: str
    dag_id: str
    task_id: str
    fault: str
    table: str | None
    condition: str
    message: str
    runbook: str
    opened_at: datetime
    last_at: datetime
    times: int
    told_at: datetime
    resolved_at: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)


def fault_of(condition: str, message: str) -> str:
    """A key that is equal for failures that differ only in numbers.

    >>> seen = ["users_2: last seen 65 s ago", "users_2: last seen 2 minutes 5 s ago"]
    >>> len({fault_of("TASK_FAILED", one) for one in seen})
    1
    >>> fault_of("TASK_FAILED", "users_2 is down") == fault_of("TASK_FAILED", "users_3 is down")
    False
    >>> fault_of("GATE_BLOCKED", "a") == fault_of("GATE_BLOCKED", "b")
    False
    """
    return sha256(f"{condition}\n{_NUMBERS.sub('#', message)}".encode()).hexdigest()[:32]


def open_incident(
    connection: Connection, failure: Incident, *, again_after: timedelta
) -> tuple[Incident, bool]:
    """Record a failure; returns its incident, and whether to send an alert.

    Args:
        connection: a write transaction.
        failure: the failure as a new incident.
        again_after: time after which an open incident is alerted again.
    """
    _one_at_a_time(connection, failure)
    columns = INCIDENTS.c
    same = (
        (columns.dag_id == failure.dag_id)
        & (columns.task_id == failure.task_id)
        & (columns.fault == failure.fault)
        & columns.resolved_at.is_(None)
    )
    row = connection.execute(select(INCIDENTS).where(same).with_for_update()).mappings().first()
    if row is None:
        connection.execute(INCIDENTS.insert().values(asdict(failure)))
        return failure, True
    known = Incident(**row)
    told = failure.last_at - known.told_at >= again_after
    change = {
        "times": known.times + 1,
        "last_at": failure.last_at,
        "message": failure.message,
        "told_at": failure.last_at if told else known.told_at,
    }
    connection.execute(
        update(INCIDENTS).where(columns.incident_id == known.incident_id).values(change)
    )
    return Incident(**{**row, **change}), told


def _one_at_a_time(connection: Connection, failure: Incident) -> None:
    """Wait for other writers of this fault: while it is not recorded, there is no row to lock."""
    # SQLite has one writer anyway.
    if connection.dialect.name == "postgresql":
        name = f"{failure.dag_id}\n{failure.task_id}\n{failure.fault}"
        key = int.from_bytes(sha256(name.encode()).digest()[:8], signed=True)
        connection.execute(select(func.pg_advisory_xact_lock(key))).close()


def open_incidents(
    connection: Connection, dag_id: str, *, task_id: str | None, locked: bool = False
) -> list[Incident]:
    """Open incidents of a DAG or of one of its tasks, oldest first."""
    columns = INCIDENTS.c
    mine = (columns.dag_id == dag_id) & columns.resolved_at.is_(None)
    if task_id is not None:
        mine &= columns.task_id == task_id
    query = select(INCIDENTS).where(mine).order_by(columns.opened_at)
    rows = connection.execute(query.with_for_update() if locked else query).mappings()
    return [Incident(**row) for row in rows]


def resolve_incidents(
    connection: Connection,
    dag_id: str,
    *,
    task_id: str | None,
    tables: Collection[str | None] | None = None,
    now: datetime,
) -> list[Incident]:
    """Close open incidents of a DAG or of one of its tasks; returns them, oldest first.

    Args:
        connection: a write transaction.
        dag_id: the DAG.
        task_id: None: of all its tasks.
        tables: only those about one of these tables; None among them: about no table.
        now: the time of their end.
    """
    columns = INCIDENTS.c
    found = open_incidents(connection, dag_id, task_id=task_id, locked=True)
    if tables is not None:
        found = [one for one in found if one.table in tables]
    if found:
        ids = [one.incident_id for one in found]
        ended = update(INCIDENTS).where(columns.incident_id.in_(ids))
        connection.execute(ended.values(resolved_at=now))
    return [Incident(**{**asdict(one), "resolved_at": now}) for one in found]


def incidents(connection: Connection, *, open_only: bool, limit: int) -> list[Incident]:
    """Incidents, open ones first, then the latest closed ones."""
    columns = INCIDENTS.c
    query = select(INCIDENTS).order_by(
        columns.resolved_at.isnot(None), columns.last_at.desc(), columns.incident_id
    )
    if open_only:
        query = query.where(columns.resolved_at.is_(None))
    return [Incident(**row) for row in connection.execute(query.limit(limit)).mappings()]


def forget_incidents(connection: Connection, *, before: datetime) -> int:
    """Delete incidents that were closed before a time; returns their number."""
    old = delete(INCIDENTS).where(INCIDENTS.c.resolved_at < before)
    return connection.execute(old).rowcount


def new_incident_id() -> str:
    """A new unique id."""
    return uuid4().hex


class IncidentStore:
    """The methods of ``ControlStore`` for incidents; each is one transaction."""

    @abstractmethod
    def _read(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _write(self) -> AbstractContextManager[Connection]: ...

    def open_incident(self, failure: Incident, *, again_after: timedelta) -> tuple[Incident, bool]:
        """See ``incidents.open_incident``."""
        with self._write() as connection:
            return open_incident(connection, failure, again_after=again_after)

    def has_open_incident(self, dag_id: str) -> bool:
        """Whether a DAG has an open incident."""
        columns = INCIDENTS.c
        query = select(columns.incident_id).where(
            columns.dag_id == dag_id, columns.resolved_at.is_(None)
        )
        with self._read() as connection:
            return connection.scalar(query.limit(1)) is not None

    def open_incidents(self, dag_id: str, *, task_id: str | None = None) -> list[Incident]:
        """See ``incidents.open_incidents``."""
        with self._read() as connection:
            return open_incidents(connection, dag_id, task_id=task_id)

    def resolve_incidents(
        self,
        dag_id: str,
        *,
        task_id: str | None = None,
        tables: Collection[str | None] | None = None,
        now: datetime,
    ) -> list[Incident]:
        """See ``incidents.resolve_incidents``."""
        with self._write() as connection:
            return resolve_incidents(connection, dag_id, task_id=task_id, tables=tables, now=now)

    def incidents(self, *, open_only: bool = False, limit: int = 20) -> list[Incident]:
        """Incidents, open ones first."""
        with self._read() as connection:
            return incidents(connection, open_only=open_only, limit=limit)
