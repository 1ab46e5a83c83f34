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
from spark_jobs.silver.outcome import HeldTables, Outcome
from spark_jobs.silver.rows import EVENT_ID
from spark_jobs.silver.tables import SilverTables
from spark_jobs.storage.tables import Txn, append


@dataclass(frozen=True)
class EventRows:
    """A table of events; the clock tells which have expired."""

    tables: SilverTables
    held: HeldTables
    clock: Callable[[], datetime]

    def outcome(self, rows: DataFrame) -> Outcome:
        """What becomes of each record of a batch."""
        table = self.held.read(rows.sparkSession, self.tables.table)
        found = append_dispositions(
            rows, table, identity=self.tables.identity, expired=self._expired()
        )
        return Outcome.of(found)

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
        append(fresh.select(*names, *identity), self.tables.table, txn=txn)
