"""Compares the shapes of a batch's records with the declaration, and may refuse the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from pyspark.sql import functions as sf

from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import SilverEntry, SourceEntry
from spark_jobs.silver.apply.outcome import Outcome
from spark_jobs.silver.check.drift import Place, Seen, arrived, blocking_drifts, differences
from spark_jobs.silver.errors import SchemaDriftError
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.rows import COORDINATES
from spark_jobs.silver.parse.shapes import COMMIT, SHAPE, read_shape
from spark_jobs.state.drift import Arrival, Drift, DriftKind
from spark_jobs.state.store import ControlStore

# A batch with more shapes has data in its field names; only some shapes are checked then.
MOST_SHAPES = 10_000
# Limit of recorded differences: names or values may differ in every record.
MOST_RECORDED = 500
_MISMATCH = str(QuarantineReason.TYPE_MISMATCH)


@dataclass(frozen=True)
class DriftWatch:
    """Checks the records of one source on their way into one silver table.

    Attributes:
        recorded: the differences that this object has recorded.
    """

    source: SourceEntry
    entry: SilverEntry
    store: ControlStore
    recorded: set[tuple[str, str, str]] = field(default_factory=set)

    def look(self, outcome: Outcome) -> None:
        """Record the differences of a batch.

        Raises:
            SchemaDriftError: the source's policy blocks the table; nothing may be written.
        """
        seen = list(_seen(outcome, self.source))
        came = arrived(seen, self.source, self._arrivals)
        if came:
            self.store.record_arrivals(came.values())
            self._arrivals.update(came)
        found = differences(seen, self.source, self._arrivals)
        new = [one for one in found if self._is_new(one)]
        if new:
            self.store.record_drifts(new)
            self.check()
            self.recorded.update(one.identity for one in new)

    def check(self) -> None:
        """Fail if a recorded difference blocks the table.

        Raises:
            SchemaDriftError: a difference blocks it.
        """
        held = blocking_drifts(self.store.drifts(self.source.name), self.source, self.entry)
        if held:
            raise SchemaDriftError(str(self.entry.table_name), self.source.name, held)

    def _is_new(self, drift: Drift) -> bool:
        if drift.identity in self.recorded:
            return False
        endless = drift.kind in {DriftKind.UNKNOWN, DriftKind.VALUE}
        return not endless or len(self.recorded) < MOST_RECORDED

    @cached_property
    def _arrivals(self) -> dict[str, Arrival]:
        return {one.column: one for one in self.store.arrivals(self.source.name)}


def _seen(outcome: Outcome, source: SourceEntry) -> Iterator[Seen]:
    """The shapes of a batch; unusable events are left out."""
    events = source.format is not SourceFormat.DEBEZIUM
    if outcome.here is not None:
        yield from _seen_locally(outcome.here, events=events)
        return
    reason, place = (
        sf.col(f"{PROBLEM}.reason"),
        sf.struct(sf.coalesce(COMMIT, sf.lit("")), *COORDINATES),
    )
    misfit = sf.when(reason == _MISMATCH, sf.col(f"{PROBLEM}.detail")).alias("misfit")
    told = sf.col(SHAPE).isNotNull() & (reason.isNull() if events else sf.lit(True))  # noqa: FBT003
    shapes = outcome.rows.where(told).groupBy(SHAPE, misfit)
    found = shapes.agg(sf.min(place).alias("first"), sf.max(place).alias("last"))
    for row in found.limit(MOST_SHAPES).collect():
        first, last = Place(*row["first"]), Place(*row["last"])
        yield Seen(read_shape(row[SHAPE]), first, last, row["misfit"])


def _seen_locally(batch: pa.Table, *, events: bool) -> Iterator[Seen]:
    ends: dict[tuple[str, str | None], tuple[Place, Place]] = {}
    names = (SHAPE, COMMIT, *COORDINATES, PROBLEM)
    columns = (batch.column(name).to_pylist() for name in names)
    for shape, commit, partition, offset, problem in zip(*columns, strict=True):
        if shape is None or (events and problem):
            continue
        mismatch = problem is not None and problem["reason"] == _MISMATCH
        place = Place(commit or "", partition, offset)
        key = shape, problem["detail"] if mismatch else None
        first, last = ends.get(key, (place, place))
        ends[key] = min(first, place), max(last, place)
    for (shape, misfit), (first, last) in ends.items():
        yield Seen(read_shape(shape), first, last, misfit)
