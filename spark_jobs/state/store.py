"""The control database as one object; each method is one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Self, Unpack

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DatabaseError, OperationalError

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state import (
    asset_cursors,
    attempts,
    batches,
    days,
    drift,
    epochs,
    frontiers,
    leases,
    migrate,
    progress,
    ticks,
    trimming,
    verifications,
)
from spark_jobs.state.asset_cursors import AssetCursor
from spark_jobs.state.attempts import AttemptChange, AttemptStatus, RefreshAttempt
from spark_jobs.state.batches import JudgedBatches, SilverBatch, SilverTotals
from spark_jobs.state.deployment_store import DeploymentStore
from spark_jobs.state.engine import WRITES, make_engine
from spark_jobs.state.environment_store import EnvironmentStore
from spark_jobs.state.errors import ControlUnreachableError
from spark_jobs.state.frontiers import TableAtFrontier
from spark_jobs.state.incidents import IncidentStore
from spark_jobs.state.keeper import LeaseKeeper
from spark_jobs.state.leases import Lease
from spark_jobs.state.progress import Heartbeat, StreamProgress, StreamState
from spark_jobs.state.replay_store import ReplayStore
from spark_jobs.state.tables import SCHEMA_VERSION
from spark_jobs.state.types import JsonObject
from spark_jobs.state.verifications import VerificationRecord


class ControlStore(
    ReplayStore,
    DeploymentStore,
    EnvironmentStore,
    IncidentStore,
    AbstractContextManager["ControlStore"],
):
    """Control state, for concurrent processes and threads; open one per process.

    Each method raises ``ControlUnreachableError`` if the database is away, locked or full.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, url: str) -> Self:
        """Connect to a control database, and migrate it if necessary.

        Args:
            url: SQLAlchemy URL of SQLite or PostgreSQL, as from ``Settings.control_url``.

        Raises:
            ControlUnreachableError: the database cannot be reached.
            ControlSchemaNewerError: a newer release migrated it.
        """
        store = cls(make_engine(url))
        try:
            store.migrate()
        except DatabaseError as error:
            shown = store._engine.url.render_as_string(hide_password=True)
            store.close()
            raise ControlUnreachableError(shown, str(error.orig)) from error
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __exit__(self, *_: object) -> None:
        self.close()

    def migrate(self) -> None:
        """Migrate to this release's schema, idempotently; raises ``ControlSchemaNewerError``."""
        with self._read() as connection:
            if migrate.schema_version(connection) == SCHEMA_VERSION:
                return
        with self._write() as connection:
            migrate.migrate(connection)

    # The ledger.

    def create_attempt(self, attempt: RefreshAttempt, *, above: int = 0) -> RefreshAttempt:
        """See ``attempts.create_attempt``: the first writer of an attempt id wins."""
        table = f"gold.{attempt.view}"
        with self._write() as connection:
            return attempts.create_attempt(connection, attempt, table=table, above=above)

    def update_attempt(self, attempt_id: str, **change: Unpack[AttemptChange]) -> RefreshAttempt:
        """Change the given columns and ``updated_at``; raises ``AttemptNotFoundError``."""
        with self._write() as connection:
            return attempts.update_attempt(connection, attempt_id, change=change)

    def attempt(self, attempt_id: str) -> RefreshAttempt:
        """The attempt; raises ``AttemptNotFoundError``."""
        with self._read() as connection:
            return attempts.get_attempt(connection, attempt_id)

    def find_attempt(self, attempt_id: str) -> RefreshAttempt | None:
        """The attempt, or None."""
        with self._read() as connection:
            return attempts.find_attempt(connection, attempt_id)

    def attempts(
        self,
        view: str | None = None,
        *,
        tick: str | None = None,
        statuses: Collection[AttemptStatus] = (),
        limit: int = 20,
    ) -> list[RefreshAttempt]:
        """Attempts, newest first; an empty ``statuses`` means any."""
        with self._read() as connection:
            return attempts.attempts(
                connection, view=view, tick=tick, statuses=statuses, limit=limit
            )

    def judged(self, views: Collection[str], *, after: datetime) -> list[RefreshAttempt]:
        """See ``attempts.judged``."""
        with self._read() as connection:
            return attempts.judged(connection, views, after=after)

    def judged_before(self, attempt: RefreshAttempt) -> RefreshAttempt | None:
        """See ``attempts.judged_before``."""
        with self._read() as connection:
            return attempts.judged_before(connection, attempt)

    def forget_attempts(self, view: str, *, tick: str, before: datetime, keep: int) -> int:
        """Delete older attempts of a tick, except for the newest; returns their number."""
        with self._write() as connection:
            return attempts.forget_attempts(connection, view, tick=tick, before=before, keep=keep)

    def outcomes(self, *, start: datetime, end: datetime) -> dict[str, dict[AttemptStatus, int]]:
        """Number of attempts by view and status, for the half-open time [start, end)."""
        with self._read() as connection:
            return days.outcomes(connection, start=start, end=end)

    def failed_verdicts(self, *, start: datetime, end: datetime) -> list[tuple[str, JsonObject]]:
        """View and verdict of audits with a failed expectation, oldest first."""
        with self._read() as connection:
            return days.failed_verdicts(connection, start=start, end=end)

    def publications(self, *, start: datetime, end: datetime) -> list[days.Published]:
        """The publications in a time span, oldest first."""
        with self._read() as connection:
            return days.publications(connection, start=start, end=end)

    # Asset events.

    def asset_cursors(self) -> dict[str, AssetCursor]:
        """The cursor of each view's asset events, by view."""
        with self._read() as connection:
            return asset_cursors.asset_cursors(connection)

    def set_asset_cursor(self, cursor: AssetCursor) -> None:
        """Replace a view's cursor."""
        with self._write() as connection:
            asset_cursors.set_asset_cursor(connection, cursor)

    # Verifications.

    def record_verification(self, record: VerificationRecord) -> None:
        """Record the result of a verification."""
        with self._write() as connection:
            verifications.record_verification(connection, record)

    def verifications(
        self, view: str | None = None, *, limit: int = 20
    ) -> list[VerificationRecord]:
        """Results of verifications, newest first."""
        with self._read() as connection:
            return verifications.verifications(connection, view, limit=limit)

    # Ticks.

    def pin_version(self, tick: str, table: TableName, version: TableVersion) -> TableVersion:
        """Pin an input's version for a tick; the first caller wins and all get its version."""
        return self.pin_versions(tick, {table: version})[table]

    def pin_versions(
        self, tick: str, versions: Mapping[TableName, TableVersion]
    ) -> dict[TableName, TableVersion]:
        """The same for several tables; one of concurrent callers pins all shared tables."""
        with self._write() as connection:
            return ticks.pin_versions(connection, tick, versions=versions)

    def pins(self, tick: str) -> dict[TableName, TableVersion]:
        """The versions that the tick has pinned so far, by table."""
        with self._read() as connection:
            return ticks.pins(connection, tick)

    def note_frontiers(
        self, notes: Iterable[TableAtFrontier], *, keep: Collection[int] = ()
    ) -> None:
        """Record versions at which tables show the same transactions of a database.

        Args:
            notes: the versions.
            keep: positions that are not deleted, although many newer ones are recorded.
        """
        with self._write() as connection:
            frontiers.note_frontiers(connection, notes, keep=keep)

    def frontiers(self, database: str) -> list[TableAtFrontier]:
        """All recorded versions of a source database, newest frontier first."""
        with self._read() as connection:
            return frontiers.frontiers(connection, database)

    def forget_ticks(self, *, before: datetime) -> int:
        """Delete pins of older ticks; returns their number."""
        with self._write() as connection:
            return ticks.forget_ticks(connection, before=before)

    def oldest_pins(self, *, since: datetime) -> dict[tuple[str, str], int]:
        """The oldest version of each table, by name and id, that ticks have pinned since a time."""
        with self._read() as connection:
            return trimming.oldest_pins(connection, since=since)

    def trim(self, *, before: datetime, dry_run: bool = False) -> trimming.Trimmed:
        """Delete or sum up old rows; see ``trimming``."""
        with self._write() as connection:
            trimmed = trimming.trim(connection, before=before)
            if dry_run:
                connection.rollback()
            return trimmed

    # Leases and epochs.

    @contextmanager
    def lease(self, table: TableName | str, *, owner: str, seconds: float) -> Iterator[LeaseKeeper]:
        """Hold the table's lease and renew it while the context lasts.

        Raises:
            LeaseTakenError: another owner holds it.
        """
        resource = str(table)
        with self._write() as connection:
            taken = leases.acquire(connection, resource, owner=owner, seconds=seconds)
        keeper = LeaseKeeper(
            taken, renew=lambda lease: self.renew_lease(lease, seconds=seconds), seconds=seconds
        )
        keeper.start()
        try:
            yield keeper
        finally:
            keeper.stop()
            with self._write() as connection:
                leases.release(connection, taken)

    def renew_lease(self, lease: Lease, *, seconds: float) -> Lease:
        """Extend a lease; raises ``LeaseLostError``."""
        with self._write() as connection:
            return leases.renew(connection, lease, seconds=seconds)

    def lease_holder(self, table: TableName | str) -> Lease | None:
        """The current lease of the table, or None."""
        with self._read() as connection:
            return leases.holder(connection, str(table))

    def epoch(self, table: TableName | str) -> int:
        """The table's epoch; starts at 1."""
        with self._read() as connection:
            return epochs.epoch(connection, str(table))

    def bump_epoch(self, table: TableName | str, *, reason: str, above: int = 0) -> int:
        """Raise the table's epoch, to more than ``above``, and return it."""
        with self._write() as connection:
            return epochs.bump_epoch(connection, str(table), reason=reason, above=above)

    # Silver batches and streams.

    def record_silver_batch(self, batch: SilverBatch) -> None:
        """Record the counts of a batch; a repeat replaces its row."""
        with self._write() as connection:
            batches.record_silver_batch(connection, batch)

    def silver_batch_recorded(self, silver: str, *, epoch: int, batch_id: int) -> bool:
        """Whether a batch of a silver table has finished."""
        with self._read() as connection:
            return batches.silver_batch_recorded(connection, silver, epoch=epoch, batch_id=batch_id)

    def silver_totals(
        self, silver: str, *, epoch: int | None = None, since: datetime | None = None
    ) -> SilverTotals:
        """Sums over a silver table's batches, optionally of one epoch or since a time."""
        with self._read() as connection:
            return batches.silver_totals(connection, silver, epoch=epoch, since=since)

    def held_batch(self, silver: str, *, epoch: int) -> SilverBatch | None:
        """The batch that a silver table waits before; None if it does not wait."""
        with self._read() as connection:
            return batches.held_batch(connection, silver, epoch=epoch)

    def judged_batches(self, silver: str, *, since: datetime) -> JudgedBatches | None:
        """What the suite of a silver table found since a time; None if nothing was judged."""
        with self._read() as connection:
            return batches.judged_batches(connection, silver, since=since)

    def record_progress(self, entry: StreamProgress) -> None:
        """Replace a query's row."""
        with self._write() as connection:
            progress.record_progress(connection, entry)

    def record_heartbeat(
        self,
        query: str,
        *,
        at: datetime,
        state: StreamState = StreamState.RUNNING,
        error: str | None = None,
    ) -> None:
        """Record that a query is alive, or how it ended."""
        beat = Heartbeat(query=query, at=at, state=state, error=error)
        self.record_reports([beat])

    def record_reports(self, reports: Iterable[StreamProgress | Heartbeat]) -> None:
        """Record the reports of several queries in one transaction."""
        with self._write() as connection:
            for report in reports:
                if isinstance(report, Heartbeat):
                    progress.record_heartbeat(connection, report)
                else:
                    progress.record_progress(connection, report)

    # Schema drift.

    def record_arrivals(self, found: Iterable[drift.Arrival]) -> None:
        """Record since when columns of a source arrive."""
        with self._write() as connection:
            drift.record_arrivals(connection, found)

    def arrivals(self, source: str) -> list[drift.Arrival]:
        """All declared columns of a source that have arrived."""
        with self._read() as connection:
            return drift.arrivals(connection, source)

    def record_drifts(self, found: Iterable[drift.Drift]) -> None:
        """Record differences from a declaration, each once."""
        with self._write() as connection:
            drift.record_drifts(connection, found)

    def drifts(self, source: str | None = None) -> list[drift.Drift]:
        """The differences of a source, or of all."""
        with self._read() as connection:
            return drift.drifts(connection, source)

    def accept_drifts(self, source: str, *, columns: Iterable[str], by: str, reason: str) -> int:
        """Accept the open differences of some columns; returns their number."""
        with self._write() as connection:
            return drift.accept_drifts(connection, source, columns=columns, by=by, reason=reason)

    def forget_query(self, query: str) -> None:
        """Delete the row of a query that no longer exists."""
        with self._write() as connection:
            progress.forget_query(connection, query)

    def progress(self) -> list[StreamProgress]:
        """The rows of all queries, by name."""
        with self._read() as connection:
            return progress.progress(connection)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._reached(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        writing = self._engine.execution_options(**{WRITES: True})
        with self._reached(), writing.begin() as connection:
            yield connection

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Name what the database says when it is away, locked or full; it may pass."""
        try:
            yield
        except OperationalError as error:
            shown = self._engine.url.render_as_string(hide_password=True)
            raise ControlUnreachableError(shown, str(error.orig)) from error
