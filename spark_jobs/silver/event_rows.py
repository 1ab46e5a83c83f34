"""Applies a batch to a table of events: each event id is appended once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.names import Disposition
from spark_jobs.silver.dispositions import KNOWN, append_dispositions
from spark_jobs.silver.expiry import expired_sql, horizon
from spark_jobs.silver.outcome import HeldTables, Outcome, fits_here
from spark_jobs.silver.rows import CANDIDATE, COORDINATES, EVENT_ID
from spark_jobs.silver.tables import SilverTables
from spark_jobs.storage.batches import BatchWriter
from spark_jobs.storage.tables import Txn


@dataclass(frozen=True)
class EventRows:
    """A table of events; the clock tells which have expired."""

    tables: SilverTables
    held: HeldTables
    clock: Callable[[], datetime]
    writer: BatchWriter

    def outcome(self, rows: DataFrame) -> Outcome:
        """What becomes of each record of a batch."""
        few = fits_here(rows)
        found = append_dispositions(
            rows,
            self._held(rows, few=few),
            identity=self.tables.identity,
            expired=self._expired(),
        )
        return Outcome.of(found, few=few)

    def _held(self, rows: DataFrame, *, few: bool) -> DataFrame | None:
        identity = self.tables.identity
        if few:
            asked = rows.where(CANDIDATE).select(identity)
            read = rows.select(identity, *COORDINATES).schema
            near = self.held.near(asked, [self.tables.table], read)
            if near is not None:
                return near[0] if near else None
        return self.held.read(rows.sparkSession, self.tables.table)

    def _expired(self) -> Column | None:
        expiry = self.tables.entry.expiry
        if expiry is None:
            return None
        before = horizon(expiry, self.clock())
        return sf.expr(expired_sql(expiry, "timestamp", before=before))

    def write(self, outcome: Outcome, txn: Txn) -> None:
        """Append the events that are new."""
        if not outcome.counts[Disposition.APPLIED]:
            return
        identity = [EVENT_ID] if self.tables.entry.event_id is None else []
        names = [column.name for column in self.tables.columns if column.name not in identity]
        fresh = outcome.having(Disposition.APPLIED).where(~sf.col(KNOWN))
        fresh = fresh.select(*names, *identity)
        self.writer.append(fresh, self.tables.table, txn=txn, few=outcome.few)
