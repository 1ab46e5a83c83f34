"""Applies a batch to a table of events: each event id is appended once."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.names import Disposition
from spark_jobs.silver.dispositions import KNOWN, append_dispositions
from spark_jobs.silver.outcome import HeldTables, Outcome
from spark_jobs.silver.rows import EVENT_ID
from spark_jobs.silver.tables import SilverTables
from spark_jobs.storage.tables import Txn, append


@dataclass(frozen=True)
class EventRows:
    """A table of events."""

    tables: SilverTables
    held: HeldTables

    def outcome(self, rows: DataFrame) -> Outcome:
        """What becomes of each record of a batch."""
        table = self.held.read(rows.sparkSession, self.tables.table)
        return Outcome.of(append_dispositions(rows, table, identity=self.tables.identity))

    def write(self, outcome: Outcome, txn: Txn) -> None:
        """Append the events that are new."""
        if not outcome.counts[Disposition.APPLIED]:
            return
        identity = [EVENT_ID] if self.tables.entry.event_id is None else []
        names = [column.name for column in self.tables.columns if column.name not in identity]
        fresh = outcome.having(Disposition.APPLIED).where(~sf.col(KNOWN))
        append(fresh.select(*names, *identity), self.tables.table, txn=txn)
