"""Counts of each silver batch by disposition; a repeated batch replaces its row."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from spark_jobs.state.tables import SILVER_BATCHES
from spark_jobs.state.upsert import insert_or_replace


@dataclass(frozen=True, kw_only=True)
class SilverBatch:
    """The counts of one micro-batch of a silver table."""

    silver: str
    epoch: int
    batch_id: int
    records: int
    applied: int = 0
    superseded: int = 0
    quarantined: int = 0
    duplicate: int = 0
    ignored: int = 0
    first_bronze_version: int | None = None
    last_bronze_version: int | None = None
    at: datetime


@dataclass(frozen=True, kw_only=True)
class SilverTotals:
    """The sums over all batches of one silver table and all epochs."""

    silver: str
    batches: int = 0
    records: int = 0
    applied: int = 0
    superseded: int = 0
    quarantined: int = 0
    duplicate: int = 0
    ignored: int = 0
    last_bronze_version: int | None = None
    last_at: datetime | None = None

    @property
    def accounted(self) -> int:
        """Records with a disposition; if fewer than ``records``, some are lost."""
        return self.applied + self.superseded + self.quarantined + self.duplicate + self.ignored


COUNTS = ("records", "applied", "superseded", "quarantined", "duplicate", "ignored")


def record_silver_batch(connection: Connection, batch: SilverBatch) -> None:
    """Record a batch; a repeat replaces its row."""
    insert_or_replace(connection, SILVER_BATCHES, asdict(batch))


def silver_batch_recorded(
    connection: Connection, silver: str, *, epoch: int, batch_id: int
) -> bool:
    """Whether a batch has finished; old batches are summed up and no longer known."""
    columns = SILVER_BATCHES.c
    ours = (columns.silver == silver) & (columns.epoch == epoch) & (columns.batch_id == batch_id)
    return connection.scalar(select(columns.batch_id).where(ours)) is not None


def silver_totals(
    connection: Connection,
    silver: str,
    *,
    epoch: int | None = None,
    since: datetime | None = None,
) -> SilverTotals:
    """The sums for one silver table.

    Args:
        connection: any transaction.
        silver: the silver table's name.
        epoch: only batches of this epoch; None: all epochs.
        since: only batches that finished later.
    """
    columns = SILVER_BATCHES.c
    query = select(
        func.count().label("batches"),
        *(func.coalesce(func.sum(columns[name]), 0).label(name) for name in COUNTS),
        func.max(columns.last_bronze_version).label("last_bronze_version"),
        func.max(columns.at).label("last_at"),
    ).where(columns.silver == silver)
    if epoch is not None:
        query = query.where(columns.epoch == epoch)
    if since is not None:
        query = query.where(columns.at > since)
    row = connection.execute(query).mappings().one()
    return SilverTotals(
        silver=silver,
        batches=row["batches"],
        last_bronze_version=row["last_bronze_version"],
        last_at=row["last_at"],
        # PostgreSQL sums big integers into a decimal.
        **{name: int(row[name]) for name in COUNTS},
    )
