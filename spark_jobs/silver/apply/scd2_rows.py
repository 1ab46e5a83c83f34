"""Applies a batch to an SCD type 2 table.

The changes are stored first. Then the rows of their keys are recomputed from all stored changes and
compared with the table, so that a repeated batch writes only what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.names import Disposition
from spark_jobs.silver.apply.dispositions import KNOWN
from spark_jobs.silver.apply.early_changes import behind_snapshots
from spark_jobs.silver.apply.outcome import HeldTables, Outcome, in_few_files
from spark_jobs.silver.apply.scd2 import (
    ACTION,
    DELETE,
    INSERT,
    UPDATE,
    actions,
    intervals,
    timeline,
)
from spark_jobs.silver.apply.truncations import RememberedTruncations, joined, truncations_in
from spark_jobs.silver.parse.rows import BYTES, CANDIDATE
from spark_jobs.silver.parse.typed import EARLY, OPERATION, TRUNCATE
from spark_jobs.silver.parse.unavailable import UNFILLED
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.policy import Limit, Place
from spark_jobs.storage.rows import Merge, Rows, place_of, row_length
from spark_jobs.storage.writer import Joining

_TRUNCATES, _LACKS = "__truncates", "__lacks"


@dataclass(frozen=True)
class Scd2Rows:
    """Writes an SCD type 2 table.

    Attributes:
        names: columns that may have to be filled from an earlier row.
        few: the largest batch that is written without Spark. Spark judges all.
    """

    tables: SilverTables
    held: HeldTables
    names: tuple[str, ...]
    joining: Joining
    few: Limit

    @cached_property
    def truncations(self) -> RememberedTruncations:
        """The truncations among the stored changes."""
        return RememberedTruncations(self.tables.changes, self.tables.entry, timed=True)

    def outcome(self, rows: DataFrame) -> Outcome:
        """The disposition of each record of a batch, as ``silver_rows`` returns it.

        The outcome's rows are all changes of the affected keys.
        """
        place = place_of(rows, sf.col(BYTES), few=self.few)
        kept = self.held.read(rows.sparkSession, self.tables.changes)
        first = self._outcome(rows, kept, place=place)
        if not any(group[EARLY] for group in first.groups):
            return first
        return self._outcome(self.behind_snapshots(rows), kept, place=place)

    def behind_snapshots(self, rows: DataFrame) -> DataFrame:
        """The batch, in which changes that a snapshot did not see sort after its rows."""
        kept = self.held.read(rows.sparkSession, self.tables.changes)
        held = [] if kept is None else [kept]
        return behind_snapshots(rows, held).localCheckpoint(eager=False)

    def _outcome(self, rows: DataFrame, kept: DataFrame | None, *, place: Place) -> Outcome:
        keys = self.tables.entry.keys
        known = () if kept is None else self.truncations.now()
        own = truncations_in(rows, timed=True)
        if kept is not None:
            kept = kept.where(sf.col(keys[0]).isNotNull())
            kept = self._in_reach(kept, rows, everything=bool(own))
        every = joined(known, own)
        changes = timeline(rows, kept, known=known, truncations=every, keys=keys, names=self.names)
        # A rejected truncation affects no key.
        truncates = (sf.col(CANDIDATE) & (sf.col(OPERATION) == TRUNCATE)).alias(_TRUNCATES)
        lacks = sf.col(UNFILLED).isNotNull().alias(_LACKS)
        return Outcome.of(changes, truncates, lacks, EARLY, place=place)

    def _in_reach(self, table: DataFrame, rows: DataFrame, *, everything: bool) -> DataFrame:
        """The rows of a table whose keys a batch affects; a truncation affects all."""
        if everything:
            return table
        keys = list(self.tables.entry.keys)
        touched = rows.where(CANDIDATE).select(*keys).distinct()
        return table.join(sf.broadcast(touched), keys, "left_semi")

    def write(self, outcome: Outcome, txn: Txn) -> None:
        """Store the changes, then write the rows that differ.

        Raises:
            TableMovedError: another writer committed at the same time.
        """
        taken = (Disposition.APPLIED, Disposition.SUPERSEDED)
        if not any(outcome.counts[one] for one in taken):
            return
        fresh = outcome.having(*taken).where(~sf.col(KNOWN))
        remembered = [column.name for column in self.tables.change_columns]
        # Filled values come from other rows, so the size of the result is unknown.
        filled = any(group[_LACKS] for group in outcome.groups)
        place = Place.SPARK if filled else outcome.place
        stored = Rows(lambda: fresh.select(*remembered), place=place, counted=True)
        writer.append(stored, self.tables.changes, txn=txn, joining=self.joining)
        if any(group[_TRUNCATES] for group in outcome.groups):
            self.truncations.forget()
        failpoint("silver.after_changes")
        self._write_history(outcome, txn)

    def _write_history(self, outcome: Outcome, txn: Txn) -> None:
        entry = self.tables.entry
        selected = [column.name for column in entry.selected]
        target = intervals(outcome.rows, keys=entry.keys, names=selected)
        current = self.held.read(target.sparkSession, self.tables.table)
        if current is not None:
            truncates = any(group[_TRUNCATES] for group in outcome.groups)
            current = self._in_reach(current, outcome.rows, everything=truncates)
        names = tuple(column.name for column in self.tables.columns)
        found = actions(
            target.select(*names), current, keys=entry.row_key, names=selected
        ).localCheckpoint(eager=False)
        sums = sf.count(sf.lit(1)), sf.sum(row_length(found.select(*names)))
        groups = found.groupBy(ACTION).agg(*sums).collect()
        count = sum(group[1] for group in groups)
        found = in_few_files(found, count)
        # Rows that the batch only ends may be longer than its records.
        place = self.few.place(rows=count, size=sum(group[2] for group in groups))
        if [group[ACTION] for group in groups] == [INSERT]:
            added = Rows(lambda: found.select(*names), place=place, counted=True)
            writer.append(added, self.tables.table, txn=txn, joining=self.joining)
        elif groups:
            how = Merge(
                entry.row_key,
                names,
                update=f"s.{ACTION} = '{UPDATE}'",
                insert=f"s.{ACTION} = '{INSERT}'",
                delete=f"s.{ACTION} = '{DELETE}'",
            )
            merged = Rows(lambda: found.select(*names, ACTION), place=place, counted=True)
            writer.merge(merged, self.tables.table, how, txn=txn, joining=self.joining)
