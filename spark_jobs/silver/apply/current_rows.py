"""Applies a batch to a table of current rows: the last change of each key wins.

Truncations, values that the database did not send, and changes of the first transaction after a
snapshot are rare. A first pass checks whether the batch has any; only then is the batch processed
again with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.graph.type_agreement import keyed
from spark_jobs.names import Disposition
from spark_jobs.silver.apply.dispositions import DISPOSITION, KNOWN, upsert_dispositions
from spark_jobs.silver.apply.early_changes import behind_snapshots
from spark_jobs.silver.apply.filling import fill_current
from spark_jobs.silver.apply.local_judgement import judged_changes
from spark_jobs.silver.apply.outcome import HeldTables, Outcome
from spark_jobs.silver.apply.truncations import (
    RememberedTruncations,
    Truncation,
    joined,
    truncations_in,
)
from spark_jobs.silver.parse.expiry import expired_sql, horizon
from spark_jobs.silver.parse.rows import BYTES, CANDIDATE, COORDINATES, DELETED
from spark_jobs.silver.parse.typed import EARLY, OPERATION, SEQUENCE, TRUNCATE
from spark_jobs.silver.parse.unavailable import UNFILLED
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.policy import Limit, Place
from spark_jobs.storage.rows import Merge, fits_arrow, place_of, to_arrow
from spark_jobs.storage.writer import Joining

NEWER = "s.__sequence > t.__sequence"
_TRUNCATES, _LACKS = "__truncates", "__lacks"
_RARE = _TRUNCATES, _LACKS, EARLY


@dataclass(frozen=True)
class CurrentRows:
    """Writes a table of current rows.

    Attributes:
        clock: returns the current time, which decides which rows have expired.
        names: columns that may have to be filled from an earlier row.
        few: the largest batch that is judged and written without Spark.
    """

    tables: SilverTables
    held: HeldTables
    clock: Callable[[], datetime]
    names: tuple[str, ...]
    joining: Joining
    few: Limit

    @cached_property
    def truncations(self) -> RememberedTruncations:
        """The truncations in the tombstones."""
        return RememberedTruncations(self.tables.tombstones, self.tables.entry, timed=False)

    def outcome(self, rows: DataFrame) -> Outcome:
        """The disposition of each record of a batch, as ``silver_rows`` returns it."""
        rows = self._without_expired(rows)
        place = place_of(rows, sf.col(BYTES), few=self.few)
        known = self.truncations.now() if self.held.has_rows(self.tables.tombstones) else ()
        local = place is Place.LOCAL
        here = self._judged_locally(rows, after=known[-1] if known else None) if local else None
        if here is not None:
            return here
        near = self._near(rows) if local else None
        held = self._held(rows) if near is None else near
        first = self._outcome(rows, held, known, place=place)
        truncates, lacks, early = (any(one[kind] for one in first.groups) for kind in _RARE)
        if not truncates and not lacks and not early:
            return first
        if early:
            rows = self.behind_snapshots(rows)
        if truncates:
            known = joined(known, truncations_in(rows, timed=False))
        if lacks:
            after, keys = (known[-1] if known else None), self.tables.entry.keys
            whole = self._held(rows)
            rows = fill_current(rows, whole, keys=keys, names=self.names, after=after)
            # Filled values come from other rows, so the size of the result is unknown.
            place = Place.SPARK
        return self._outcome(rows, held, known, place=place)

    def behind_snapshots(self, rows: DataFrame) -> DataFrame:
        """The batch, in which changes that a snapshot did not see sort after its rows."""
        return behind_snapshots(rows, self._held(rows)).localCheckpoint(eager=False)

    def _without_expired(self, rows: DataFrame) -> DataFrame:
        """The batch, in which a row that has expired by now counts as deleted.

        Bronze may be read again after its row was deleted, and the record that had written the row
        would write it once more.
        """
        expiry = self.tables.entry.expiry
        if expiry is None:
            return rows
        before = horizon(expiry, self.clock())
        expired = sf.expr(expired_sql(expiry, "timestamp", before=before))
        gone = sf.coalesce(expired, sf.lit(False))  # noqa: FBT003
        return rows.withColumns(
            {DELETED: sf.col(DELETED) | gone, UNFILLED: sf.when(~gone, sf.col(UNFILLED))}
        )

    def _judged_locally(self, rows: DataFrame, *, after: Truncation | None) -> Outcome | None:
        """The dispositions of a small batch, without Spark; None if Spark is needed.

        Args:
            rows: the batch.
            after: the last truncation. Changes that are not behind it need Spark.
        """
        keys = self.tables.entry.keys
        kinds = (rows.schema[key].dataType.simpleString() for key in keys)
        if not keyed(kinds) or not fits_arrow(rows):
            return None
        batch = to_arrow(rows)
        truncated = pc.any(pc.equal(batch.column(OPERATION), TRUNCATE)).as_py()
        early = pc.any(batch.column(EARLY)).as_py()
        if truncated or early or batch.column(UNFILLED).null_count < batch.num_rows:
            return None
        if after and pc.any(pc.less_equal(batch.column(SEQUENCE), after.sequence)).as_py():
            return None
        asked = batch.filter(batch.column(CANDIDATE)).select(list(keys))
        names = (*keys, SEQUENCE, *COORDINATES)
        held = self.held.near_here(asked, self._places, names)
        if held is None:
            return None
        judged = judged_changes(batch, held, keys=keys)
        return Outcome.of_here(judged, rows, KNOWN, DELETED, constants=dict.fromkeys(_RARE, False))

    def _outcome(
        self,
        rows: DataFrame,
        held: list[DataFrame],
        known: tuple[Truncation, ...],
        *,
        place: Place,
    ) -> Outcome:
        last = known[-1] if known else None
        annotated = upsert_dispositions(rows, held, keys=self.tables.entry.keys, truncation=last)
        truncates = (sf.col(OPERATION) == TRUNCATE).alias(_TRUNCATES)
        lacks = sf.col(UNFILLED).isNotNull().alias(_LACKS)
        return Outcome.of(annotated, KNOWN, DELETED, truncates, lacks, EARLY, place=place)

    @property
    def _places(self) -> tuple[str, ...]:
        return self.tables.table, self.tables.tombstones

    def _near(self, rows: DataFrame) -> list[DataFrame] | None:
        keys = self.tables.entry.keys
        read = rows.select(*keys, SEQUENCE, *COORDINATES).schema
        return self.held.near(rows.where(CANDIDATE).select(*keys), self._places, read)

    def _held(self, rows: DataFrame) -> list[DataFrame]:
        found = (self.held.read(rows.sparkSession, place) for place in self._places)
        return [table for table in found if table is not None]

    def write(self, outcome: Outcome, txn: Txn) -> None:
        """Write tombstones first: a repeated batch then deletes keys that are left in the table.

        Raises:
            TableMovedError: another writer committed at the same time.
        """
        groups = [one for one in outcome.groups if one[DISPOSITION] == Disposition.APPLIED]
        if not groups:
            return
        names = tuple(column.name for column in self.tables.columns)
        truncates = any(group[_TRUNCATES] for group in groups)
        if any(group[DELETED] for group in groups):
            # A key may have several tombstones; readers take the last.
            columns = [column.name for column in self.tables.tombstone_columns]
            gone = outcome.applied(columns, {DELETED: True})
            writer.append(gone, self.tables.tombstones, txn=txn, joining=self.joining)
            if truncates:
                self.truncations.forget()
            failpoint("silver.after_tombstones")
        if truncates or any(group[KNOWN] for group in groups):
            # Only the last truncation of a batch is applied.
            applied = outcome.having(Disposition.APPLIED) if truncates else None
            last = None if applied is None else truncations_in(applied, timed=False)[-1].sequence
            how = Merge(
                self.tables.entry.keys,
                names,
                update=f"NOT s.{DELETED} AND {NEWER}",
                insert=f"NOT s.{DELETED}",
                delete=f"s.{DELETED} AND {NEWER}",
                delete_others=None if last is None else sf.col(f"t.{SEQUENCE}") < last,
            )
            merged = outcome.applied([*names, DELETED])
            writer.merge(merged, self.tables.table, how, txn=txn, joining=self.joining)
        elif not all(group[DELETED] for group in groups):
            added = outcome.applied(names, {DELETED: False})
            writer.append(added, self.tables.table, txn=txn, joining=self.joining)
