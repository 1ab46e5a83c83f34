"""Rebuilds a silver table from bronze next to the live one, with the code that applies batches.

Decisions about rejected records apply here too: a record in quarantine is skipped, a released one
is applied as released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.names import BronzeColumn, TableVersion
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.apply.outcome import HeldTables
from spark_jobs.silver.parse.expiry import horizon
from spark_jobs.silver.parse.rows import COORDINATES
from spark_jobs.silver.repair.expiring import delete_expired
from spark_jobs.silver.store.releases import PLACE, unsettled
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.batches import COUNTS, SilverBatch, SilverTotals
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.log import table_version
from spark_jobs.storage.policy import Limit
from spark_jobs.storage.reader import read

PIECE_RECORDS = 500_000
# No release has this epoch, so all released records are judged as released.
_NO_EPOCH = 0


@dataclass(frozen=True)
class _Applier(BatchApplier):
    """Judges all records again except those in the live table's quarantine."""

    live: SilverTables | None = field(kw_only=True)

    def _unsettled(
        self, records: DataFrame, *, place: tuple[str, str] = PLACE
    ) -> tuple[DataFrame, int]:
        if self.live is None:
            return records, 0
        spark = records.sparkSession
        rejected = HeldTables().read(spark, self.live.quarantine)
        known = table_version(self.live.releases) is not None
        released = read(spark, self.live.releases) if known else None
        return unsettled(records, released, rejected, epoch=_NO_EPOCH, place=place)


@dataclass
class ShadowTable:
    """A silver table that is rebuilt from bronze, next to the live one.

    Attributes:
        bronze: location of the source's records.
        live: the live table and its helper tables; None if there is none over these records.
        tables: its own tables.
        decided: version of the releases at the start; None if there are none.
        began: the start; rows that had expired by then are left out.
        few: the largest piece that is judged and written without Spark.
        version: bronze version that it has applied; -1 before the first.
        batches: counts of its batches.
    """

    spark: SparkSession
    source: SourceEntry
    entry: SilverEntry
    bronze: str
    live: SilverTables | None
    tables: SilverTables
    max_bytes: int
    placeholder: str
    decided: TableVersion | None
    began: datetime
    few: Limit
    version: int = -1
    batches: list[SilverBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables.create(self.spark, self.source)
        self._number = 0
        self._applier = _Applier(
            source=self.source,
            entry=self.entry,
            tables=self.tables,
            epoch=1,
            max_bytes=self.max_bytes,
            record=self.batches.append,
            clock=lambda: self.began,
            placeholder=self.placeholder,
            few=self.few,
            live=self.live,
        )

    @property
    def totals(self) -> SilverTotals:
        """The sum of its batch counts."""
        sums = {name: sum(getattr(one, name) for one in self.batches) for name in COUNTS}
        return SilverTotals(silver=self.entry.name, batches=len(self.batches), **sums)

    def apply_up_to(self, version: int) -> None:
        """Apply the records of bronze up to a version."""
        if version <= self.version:
            return
        # Read the current content of these records: some may have been emptied since.
        records = read(self.spark, self.bronze)
        records = records.where(~came_after(self.spark, self.bronze, version))
        records = records.where(came_after(self.spark, self.bronze, self.version))
        for part in self._parts(records):
            for piece in pieces(part):
                self._applier.apply(piece, self._number)
                self._number += 1
        self.version = version

    def expire(self) -> None:
        """Delete expired rows, as in the live table, whenever they arrived."""
        if self.entry.expiry is not None:
            before, txn = horizon(self.entry.expiry, self.began), Txn("expiry", 1)
            delete_expired(self.spark, self.tables, self.entry.expiry, txn=txn, before=before)

    def _parts(self, records: DataFrame) -> Iterator[DataFrame]:
        """For events, first the records that the live table has a row of.

        Of repeated events the first counts. If the first was rejected and reprocessed later,
        another one counts; the live table's choice is kept.
        """
        if self.entry.apply is not ApplyMode.APPEND or self.live is None:
            yield records
            return
        names = [sf.col(new).alias(old) for old, new in zip(PLACE, COORDINATES, strict=True)]
        held = read(self.spark, self.live.table).select(*names)
        for how in ("left_semi", "left_anti"):
            yield records.join(held, list(PLACE), how).select(*records.columns)


def came_after(spark: SparkSession, bronze: str, version: int) -> Column:
    """Whether a record landed after a version of its bronze table, by the partition's offsets.

    Args:
        spark: any session.
        bronze: location of the bronze table.
        version: -1 means before the first.
    """
    if version < 0:
        return sf.expr("TRUE")
    partition, offset = PLACE
    tops = read(spark, bronze, version).groupBy(partition).agg(sf.max(offset)).collect()
    later = ~sf.col(partition).isin([row[0] for row in tops])
    for number, top in tops:
        later |= (sf.col(partition) == number) & (sf.col(offset) > top)
    return later


def pieces(records: DataFrame) -> Iterator[DataFrame]:
    """Bronze records in order of ``arrived_at``, in pieces that fit into memory."""
    micros = sf.unix_micros(BronzeColumn.ARRIVED_AT).alias("micros")
    arrivals = records.groupBy(micros).count().orderBy("micros").collect()
    arrived = sf.col(BronzeColumn.ARRIVED_AT)
    first, held = 0, 0
    for at, (_, count) in enumerate(arrivals):
        held += count
        if held >= PIECE_RECORDS or at + 1 == len(arrivals):
            begin, end = (sf.timestamp_micros(sf.lit(arrivals[one][0])) for one in (first, at))
            yield records.where(arrived.between(begin, end))
            first, held = at + 1, 0
