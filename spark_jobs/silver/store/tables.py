"""The tables behind a silver table: rows, quarantine, and helper tables.

A table of current rows has tombstones of deleted keys. An SCD type 2 table stores every change that
it has applied, because a late one may need values of any earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry, SourceEntry
from spark_jobs.names import HistoryColumn
from spark_jobs.silver.errors import TypesDifferError
from spark_jobs.silver.parse.row_steps import projected_columns
from spark_jobs.silver.parse.rows import DELETED, EVENT_ID
from spark_jobs.silver.parse.unavailable import UNFILLED
from spark_jobs.silver.store.evolution import Evolution, evolve, repartition, types_of
from spark_jobs.silver.store.releases import reprocessing_app
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.layout import Layout, partition_columns, set_clustering
from spark_jobs.storage.log import table_version, transaction_version
from spark_jobs.storage.streams import create_stream_table

_COORDINATES = (
    Column(name="__partition", type="int", description="Kafka partition of the row's record."),
    Column(name="__offset", type="bigint", description="Kafka offset of the row's record."),
)
_ARRIVED_AT = Column(
    name="__arrived_at", type="timestamp", description="When bronze received the record."
)
_SEQUENCE = Column(
    name="__sequence", type="string", description="The change's place in the source's order."
)
_DELETED = Column(name=DELETED, type="boolean", description="Whether the change removed the row.")
_UNFILLED = Column(
    name=UNFILLED,
    type="array<string>",
    description="The columns whose values the database did not send.",
)
_EVENT_ID = Column(name=EVENT_ID, type="string", description="The event's identity.")

QUARANTINE_COLUMNS = (
    Column(name="key", type="binary", description="The Kafka key as received."),
    Column(name="value", type="binary", description="The Kafka value as received."),
    Column(name="headers", type="array<struct<key:string,value:binary>>"),
    Column(name="topic", type="string"),
    Column(name="partition", type="int"),
    Column(name="offset", type="bigint"),
    Column(name="timestamp", type="timestamp", description="The record's Kafka timestamp."),
    Column(name="arrived_at", type="timestamp", description="When bronze received the record."),
    Column(name="reason", type="string", description="A stable code."),
    Column(name="detail", type="string", description="The column or what else the reason names."),
    Column(name="quarantined_at", type="timestamp"),
    Column(name="attempts", type="int", description="How often the record was tried."),
)


@dataclass(frozen=True)
class SilverTables:
    """Locations and columns of the tables behind one silver table."""

    entry: SilverEntry
    table: str
    quarantine: str
    tombstones: str
    changes: str
    releases: str

    @classmethod
    def of(cls, lake: Lake, entry: SilverEntry) -> SilverTables:
        """The tables of a silver table in a lake."""
        return cls(
            entry=entry,
            table=lake.location(entry.table_name),
            quarantine=lake.quarantine(entry.name),
            tombstones=lake.tombstones(entry.name),
            changes=lake.changes(entry.name),
            releases=lake.releases(entry.name),
        )

    def below(self, root: str) -> SilverTables:
        """The same tables in another directory, except for the releases."""
        return replace(
            self,
            table=f"{root}/table",
            quarantine=f"{root}/quarantine",
            tombstones=f"{root}/tombstones",
            changes=f"{root}/changes",
        )

    @property
    def identity(self) -> str:
        """The column with the event id."""
        return self.entry.event_id or EVENT_ID

    @property
    def places(self) -> tuple[str, ...]:
        """Locations that a batch may write."""
        remembered = {
            ApplyMode.APPEND: (),
            ApplyMode.UPSERT: (self.tombstones,),
            ApplyMode.HISTORY: (self.changes,),
        }
        return (self.table, self.quarantine, *remembered[self.entry.apply])

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the silver table."""
        if self.entry.apply is not ApplyMode.APPEND:
            return (*self.entry.columns, *_COORDINATES, _ARRIVED_AT, _SEQUENCE)
        added = () if self.entry.event_id else (_EVENT_ID,)
        return (*self.entry.columns, *added, *_COORDINATES, _ARRIVED_AT)

    @property
    def tombstone_columns(self) -> tuple[Column, ...]:
        """Columns of the tombstones; a truncation has a NULL key."""
        keys = [column for column in self.entry.columns if column.name in self.entry.keys]
        return (*keys, *_COORDINATES, _ARRIVED_AT, _SEQUENCE)

    @property
    def change_columns(self) -> tuple[Column, ...]:
        """Columns of the stored changes; a truncation has a NULL key."""
        valid_to = str(HistoryColumn.VALID_TO)
        given = [column for column in self.entry.columns if column.name != valid_to]
        return (*given, _DELETED, _UNFILLED, *_COORDINATES, _ARRIVED_AT, _SEQUENCE)

    def next_number(self) -> int:
        """The number of the next transaction beside the stream; the caller holds the guard."""
        app = reprocessing_app(self.entry)
        numbers = (transaction_version(place, app) for place in (self.releases, *self.places))
        return 1 + max((number for number in numbers if number is not None), default=-1)

    def check_types(self, spark: SparkSession, source: SourceEntry, *, entry: SilverEntry) -> None:
        """Compare the table's columns with those of the current declarations.

        Raises:
            TypesDifferError: a column is missing or has another type.
        """
        held = types_of(self.table)
        for column in projected_columns(spark, source, entry):
            kept = held.get(column.name, "missing")
            if kept != column.type:
                raise TypesDifferError(entry.name, column.name, kept, column.type)

    def create(self, spark: SparkSession, source: SourceEntry) -> None:
        """Create missing tables, empty, with the types that Spark derives from the SELECT."""
        new = table_version(self.table) is None
        for place, columns in self._declared(spark, source).items():
            own = place == self.table
            partitions = self.entry.partition_by if own else ()
            create_stream_table(spark, place, columns, partition_by=partitions, change_feed=own)
        if new:
            self.cluster(spark)

    def evolve(self, spark: SparkSession, source: SourceEntry) -> None:
        """Add new columns, widen types and change the layout of existing tables.

        The caller holds the table's guard.

        Raises:
            TypesDifferError: a column's values may not fit the declared type.
        """
        found = {
            place: Evolution.of(types_of(place), columns)
            for place, columns in self._declared(spark, source).items()
        }
        for one in found.values():
            if one.unfit:
                raise TypesDifferError(self.entry.name, *one.unfit)
        for place, one in found.items():
            evolve(spark, place, one)
        if partition_columns(self.table) != self.entry.partition_by:
            repartition(spark, self.table, self.entry.partition_by)
        self.cluster(spark)

    def cluster(self, spark: SparkSession) -> None:
        """Set the declared clustering columns, if they differ; the caller holds the guard."""
        set_clustering(self.table, Layout.of(self.entry), lambda: spark)

    def _declared(self, spark: SparkSession, source: SourceEntry) -> dict[str, tuple[Column, ...]]:
        """The columns of all tables, with the types that Spark derives from the SELECT."""
        columns = projected_columns(spark, source, self.entry)
        own = replace(self, entry=self.entry.model_copy(update={"columns": columns}))
        found = {own.table: own.columns, own.quarantine: QUARANTINE_COLUMNS}
        match own.entry.apply:
            case ApplyMode.UPSERT:
                found[own.tombstones] = own.tombstone_columns
            case ApplyMode.HISTORY:
                found[own.changes] = own.change_columns
            case ApplyMode.APPEND:
                pass
        return found
