"""Leases: one writer per table across machines, with fencing numbers that only grow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from spark_jobs.state.errors import LeaseLostError, LeaseTakenError
from spark_jobs.state.tables import LEASES
from spark_jobs.state.types import utc_now
from spark_jobs.state.upsert import insert_or_keep


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right to write a table until it expires.

    Later owners have higher fencing numbers, so that a writer whose lease expired can be refused.
    """

    resource: str
    owner: str
    fencing: int
    expires_at: datetime


def acquire(connection: Connection, resource: str, *, owner: str, seconds: float) -> Lease:
    """Take the lease. Its current owner gets it again, with a new number that fences the old one.

    Raises:
        LeaseTakenError: another owner holds it, and it has not expired.
    """
    now = database_now(connection)
    vacant = {
        "resource": resource,
        "owner": None,
        "fencing": 0,
        "acquired_at": now,
        "expires_at": now,
    }
    insert_or_keep(connection, LEASES, vacant)
    query = select(LEASES).where(LEASES.c.resource == resource).with_for_update()
    row = connection.execute(query).one()
    if row.owner not in {None, owner} and not _expired(row, now):
        raise LeaseTakenError(resource, holder=row.owner, expires_at=row.expires_at)
    lease = Lease(
        resource=resource,
        owner=owner,
        fencing=row.fencing + 1,
        expires_at=now + timedelta(seconds=seconds),
    )
    connection.execute(
        update(LEASES)
        .where(LEASES.c.resource == resource)
        .values(owner=owner, fencing=lease.fencing, acquired_at=now, expires_at=lease.expires_at)
    )
    return lease


def renew(connection: Connection, lease: Lease, *, seconds: float) -> Lease:
    """Extend a lease; an expired lease can be extended unless another owner has taken it.

    Raises:
        LeaseLostError: it was released, or another owner has it.
    """
    now = database_now(connection)
    expires_at = now + timedelta(seconds=seconds)
    done = connection.execute(
        update(LEASES)
        .where(
            LEASES.c.resource == lease.resource,
            LEASES.c.owner == lease.owner,
            LEASES.c.fencing == lease.fencing,
        )
        .values(acquired_at=now, expires_at=expires_at)
    )
    if done.rowcount == 0:
        raise LeaseLostError(lease.resource, owner=lease.owner, fencing=lease.fencing)
    return Lease(
        resource=lease.resource, owner=lease.owner, fencing=lease.fencing, expires_at=expires_at
    )


def release(connection: Connection, lease: Lease) -> None:
    """Release the lease, unless another owner has it."""
    connection.execute(
        update(LEASES)
        .where(LEASES.c.resource == lease.resource, LEASES.c.fencing == lease.fencing)
        .values(owner=None, expires_at=database_now(connection))
    )


def holder(connection: Connection, resource: str) -> Lease | None:
    """The current owner's lease, or None."""
    query = select(LEASES).where(LEASES.c.resource == resource)
    row = connection.execute(query).one_or_none()
    if row is None or row.owner is None or _expired(row, database_now(connection)):
        return None
    return Lease(resource=resource, owner=row.owner, fencing=row.fencing, expires_at=row.expires_at)


def _expired(row: Row[Any], now: datetime) -> bool:
    """Whether a lease has expired: its time is over, or lies ahead because a clock was set back.

    ``acquired_at`` is when it was taken or last renewed. A living owner renews it several times
    within its duration, and then it does not lie ahead any more.
    """
    ahead = row.acquired_at - now
    return bool(row.expires_at <= now or ahead > row.expires_at - row.acquired_at)


def database_now(connection: Connection) -> datetime:
    """The time of the database server, which decides about expiry: clocks of writers may differ."""
    if connection.dialect.name == "postgresql":
        now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
        return now
    return utc_now()
