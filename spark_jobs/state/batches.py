"""Counts of each silver batch by disposition; a repeated batch replaces its row."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, func, select

from spark_jobs.state.tables import SILVER_BATCHES
from spark_jobs.state.types import JsonObject
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
    # The suite's verdict, as ``quality.verdict`` writes it, and its outcome; None without a suite.
    # A blocked batch is not applied; its row is replaced when it is.
    outcome: str | None = None
    verdict: JsonObject | None = None


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


# Outcome of a verdict without a failed expectation.
PASSED = "passed"
# Outcome of a verdict that keeps its batch out of the table.
BLOCKED = "blocked"
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
    ours &= _applied()
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
    ).where((columns.silver == silver) & _applied())
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


def _applied() -> ColumnElement[bool]:
    outcome = SILVER_BATCHES.c.outcome
    return outcome.is_(None) | (outcome != BLOCKED)


def held_batch(connection: Connection, silver: str, *, epoch: int) -> SilverBatch | None:
    """The batch that a table waits before; None if it does not wait."""
    columns = SILVER_BATCHES.c
    ours = (columns.silver == silver) & (columns.epoch == epoch)
    query = select(SILVER_BATCHES).where(ours).order_by(columns.batch_id.desc()).limit(1)
    row = connection.execute(query).mappings().first()
    return SilverBatch(**row) if row is not None and row["outcome"] == BLOCKED else None


@dataclass(frozen=True, kw_only=True)
class JudgedBatches:
    """What the suite of a silver table found in its latest batches.

    Attributes:
        last: the last batch that it judged.
        judged: number of judged batches.
        failed: number of those in which an expectation failed.
        failing: the last of those; None if there are none.
    """

    last: SilverBatch
    judged: int
    failed: int
    failing: SilverBatch | None

    def as_dict(self) -> JsonObject:
        """As a JSON object."""
        failing = self.failing
        return {
            "silver": self.last.silver,
            "batch_id": self.last.batch_id,
            "at": self.last.at.isoformat(),
            "outcome": self.last.outcome,
            "judged": self.judged,
            "failed": self.failed,
            "last_failed_at": None if failing is None else failing.at.isoformat(),
            "last_failed": None if failing is None else failing.verdict,
        }


def judged_batches(connection: Connection, silver: str, *, since: datetime) -> JudgedBatches | None:
    """The verdicts on a table's batches since a time; None if none was judged."""
    columns = SILVER_BATCHES.c
    ours = (columns.silver == silver) & columns.outcome.is_not(None) & (columns.at > since)
    failed = ours & (columns.outcome != PASSED)
    last, failing = _newest(connection, ours), _newest(connection, failed)
    if last is None:
        return None
    numbers = [
        connection.scalar(select(func.count()).select_from(SILVER_BATCHES).where(which)) or 0
        for which in (ours, failed)
    ]
    return JudgedBatches(last=last, judged=numbers[0], failed=numbers[1], failing=failing)


def _newest(connection: Connection, which: ColumnElement[bool]) -> SilverBatch | None:
    columns = SILVER_BATCHES.c
    order = columns.at.desc(), columns.epoch.desc(), columns.batch_id.desc()
    query = select(SILVER_BATCHES).where(which).order_by(*order).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else SilverBatch(**row)
