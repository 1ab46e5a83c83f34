"""Trims the control database: deletes or sums up old rows that nothing needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, Table, delete, func, select, update

from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.batches import COUNTS
from spark_jobs.state.incidents import forget_incidents
from spark_jobs.state.tables import ATTEMPTS, SILVER_BATCHES, TICKS, VERIFICATIONS

# The newest rows are kept at any age: the cost model uses the last refreshes of a view, and a
# repeated batch replaces its own row.
NEWEST_KEPT = 100
_ENDED = (
    AttemptStatus.PUBLISHED,
    AttemptStatus.SKIPPED,
    AttemptStatus.FAILED,
    AttemptStatus.SUPERSEDED,
)


@dataclass(frozen=True)
class Trimmed:
    """Number of rows that were, or would be, deleted."""

    attempts: int
    verifications: int
    silver_batches: int
    incidents: int = 0

    @property
    def total(self) -> int:
        return self.attempts + self.verifications + self.silver_batches + self.incidents


def trim(connection: Connection, *, before: datetime, keep: int = NEWEST_KEPT) -> Trimmed:
    """Delete old finished attempts and verifications, and sum up old batches.

    Args:
        connection: a write transaction.
        before: newer rows are kept.
        keep: rows to keep of each view and status, of each view, and of each silver table and
            epoch.
    """
    attempts = _drop(
        connection,
        ATTEMPTS,
        group=(ATTEMPTS.c.view, ATTEMPTS.c.status),
        at=ATTEMPTS.c.started_at,
        before=before,
        keep=keep,
        among=ATTEMPTS.c.status.in_(_ENDED),
    )
    verified = _drop(
        connection,
        VERIFICATIONS,
        group=(VERIFICATIONS.c.view,),
        at=VERIFICATIONS.c.at,
        before=before,
        keep=keep,
    )
    folded = _fold_batches(connection, before=before, keep=keep)
    return Trimmed(attempts, verified, folded, forget_incidents(connection, before=before))


def oldest_pins(connection: Connection, *, since: datetime) -> dict[tuple[str, str], int]:
    """The oldest version of each table, by name and id, that ticks have pinned since a time."""
    columns = TICKS.c.table_name, TICKS.c.table_id
    query = select(*columns, func.min(TICKS.c.version)).where(TICKS.c.pinned_at >= since)
    return {
        (name, key): int(version)
        for name, key, version in connection.execute(query.group_by(*columns))
    }


def _drop(
    connection: Connection,
    table: Table,
    *,
    group: tuple[Column[Any], ...],
    at: Column[Any],
    before: datetime,
    keep: int,
    among: Any = True,
) -> int:
    key = next(iter(table.primary_key))
    place = func.row_number().over(partition_by=group, order_by=at.desc()).label("place")
    ranked = select(key.label("id"), at.label("at"), place).where(among).subquery()
    old = select(ranked.c.id).where(ranked.c.place > keep, ranked.c.at < before)
    return connection.execute(delete(table).where(key.in_(old))).rowcount


def _fold_batches(connection: Connection, *, before: datetime, keep: int) -> int:
    """Sum up the older batches of each table and epoch in the last of them.

    Reconciliation uses only sums, so it is not affected.
    """
    columns = SILVER_BATCHES.c
    groups = connection.execute(select(columns.silver, columns.epoch).distinct()).all()
    folded = 0
    for silver, epoch in groups:
        ours = (columns.silver == silver) & (columns.epoch == epoch)
        newest = select(columns.batch_id).where(ours).order_by(columns.batch_id.desc())
        first_kept = connection.scalar(newest.offset(keep - 1).limit(1))
        if first_kept is None:
            continue
        old = ours & (columns.batch_id < first_kept) & (columns.at < before)
        last = connection.scalar(select(func.max(columns.batch_id)).where(old))
        sums = [func.sum(columns[name]).label(name) for name in COUNTS]
        first = func.min(columns.first_bronze_version).label("first_bronze_version")
        total = connection.execute(select(*sums, first).where(old)).mappings().one()
        gone = connection.execute(delete(SILVER_BATCHES).where(old & (columns.batch_id < last)))
        if gone.rowcount:
            values = {name: int(total[name]) for name in COUNTS}
            into = update(SILVER_BATCHES).where(ours & (columns.batch_id == last))
            connection.execute(
                into.values(
                    **values,
                    first_bronze_version=total["first_bronze_version"],
                    # A verdict is about one batch.
                    outcome=None,
                    verdict=None,
                )
            )
            folded += gone.rowcount
    return folded
