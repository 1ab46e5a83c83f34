"""Applies a batch to an event table: each event id is appended once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.graph.type_agreement import agreement
from spark_jobs.names import Disposition
from spark_jobs.silver.apply.dispositions import KNOWN, append_dispositions
from spark_jobs.silver.apply.local_judgement import EXPIRED, judged_events
from spark_jobs.silver.apply.outcome import HeldTables, Outcome
from spark_jobs.silver.parse.expiry import expired_sql, horizon
from spark_jobs.silver.parse.rows import BYTES, CANDIDATE, COORDINATES, EVENT_ID
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage import writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.policy import Limit, Place
from spark_jobs.storage.rows import fits_arrow, place_of, to_arrow
from spark_jobs.storage.writer import Joining


@dataclass(frozen=True)
class EventRows:
    """Writes an event table; the clock decides which events have expired.

    Attributes:
        few: the largest batch that is judged and written without Spark.
    """

    tables: SilverTables
    held: HeldTables
    clock: Callable[[], datetime]
    joining: Joining
    few: Limit

    def outcome(self, rows: DataFrame) -> Outcome:
        """The disposition of each record of a batch, as ``silver_rows`` returns it."""
        place = place_of(rows, sf.col(BYTES), few=self.few)
        here = self._judged_locally(rows) if place is Place.LOCAL else None
        if here is not None:
            return here
        found = append_dispositions(
            rows,
            self.held.read(rows.sparkSession, self.tables.table),
            identity=self.tables.identity,
            expired=self._expired(),
        )
        return Outcome.of(found, place=place)

    def _judged_locally(self, rows: DataFrame) -> Outcome | None:
        """The dispositions of a small batch, without Spark; None if Spark is needed."""
        identity, table = self.tables.identity, self.tables.table
        kind = rows.schema[identity].dataType.simpleString()
        if not agreement(kind).as_text or not fits_arrow(rows):
            return None
        expired = self._expired()
        told = rows if expired is None else rows.withColumn(EXPIRED, expired)
        batch = to_arrow(told)
        asked = batch.filter(batch.column(CANDIDATE)).select([identity])
        held = self.held.near_here(asked, [table], (identity, *COORDINATES))
        if held is None:
            return None
        return Outcome.of_here(judged_events(batch, held, identity=identity), rows)

    def _expired(self) -> Column | None:
        expiry = self.tables.entry.expiry
        if expiry is None:
            return None
        before = horizon(expiry, self.clock())
        return sf.expr(expired_sql(expiry, "timestamp", before=before))

    def write(self, outcome: Outcome, txn: Txn) -> None:
        """Append the new events.

        Raises:
            TableMovedError: another writer committed at the same time.
        """
        if not outcome.counts[Disposition.APPLIED]:
            return
        identity = [EVENT_ID] if self.tables.entry.event_id is None else []
        names = [column.name for column in self.tables.columns if column.name not in identity]
        fresh = outcome.applied([*names, *identity], {KNOWN: False})
        writer.append(fresh, self.tables.table, txn=txn, joining=self.joining)
