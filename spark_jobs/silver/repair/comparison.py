"""Compares a silver table with its rebuilt copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import ApplyMode
from spark_jobs.names import HistoryColumn
from spark_jobs.silver.apply.net_change import NetChange, tombstone_change
from spark_jobs.silver.parse.rows import ARRIVED_AT, COORDINATES
from spark_jobs.silver.parse.typed import SEQUENCE
from spark_jobs.silver.repair.shadow import ShadowTable
from spark_jobs.silver.store.releases import PLACE
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.batches import COUNTS, SilverTotals
from spark_jobs.storage.log import existing_table
from spark_jobs.storage.reader import read

EXAMPLES = 5


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """The result of a rebuild or of its preview.

    Attributes:
        table: the silver table.
        bronze_version: bronze version up to which records were applied.
        outcomes: number of records by disposition.
        rows: rows of the live table.
        leave: rows that only the live table has, to be deleted.
        enter: rows that only the rebuilt table has, to be inserted.
        rejected: applied records that are rejected now.
        remembered: tombstones or stored changes that are wrong or missing.
        miscounted: whether the batch counts differ from the records.
        reshaped: whether the table's columns differ from the declaration, so that all rows differ.
        examples: the first rows to delete and insert, each with the action.
        version: the commit that changed the rows; None if there is none.
    """

    table: str
    bronze_version: int
    outcomes: Mapping[str, int]
    rows: int
    leave: int
    enter: int
    rejected: int
    remembered: int
    miscounted: bool
    reshaped: bool
    examples: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    version: int | None = None

    @property
    def right(self) -> bool:
        """Whether nothing differs."""
        wrong = (self.leave, self.enter, self.rejected, self.remembered, self.miscounted)
        return not any((*wrong, self.reshaped))

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, and ``right``: whether nothing was wrong."""
        return {**asdict(self), "right": self.right}


@dataclass(frozen=True)
class LiveTable:
    """A snapshot of a silver table: later commits do not affect it.

    Attributes:
        version: of the table.
        remembered: tombstones or stored changes; None for events.
        totals: counts of its batches, with released records under their outcome.
    """

    version: int
    rows: DataFrame
    quarantine: DataFrame
    remembered: DataFrame | None
    totals: SilverTotals

    @classmethod
    def now(cls, spark: SparkSession, tables: SilverTables, totals: SilverTotals) -> LiveTable:
        """The current table; the caller holds its guard.

        Raises:
            TableMissingError: the table, or one of its helper tables, does not exist.
        """
        versions = [existing_table(place).version() for place in tables.places]
        rows, quarantine, *rest = (
            read(spark, place, version)
            for place, version in zip(tables.places, versions, strict=True)
        )
        return cls(versions[0], rows, quarantine, rest[0] if rest else None, totals)

    @property
    def shape(self) -> list[dict[str, str]]:
        """Types by column name, of the table and of the tombstones or stored changes, if any."""
        return [dict(one.dtypes) for one in (self.rows, self.remembered) if one is not None]


@dataclass(frozen=True)
class TableDifference:
    """The changes that make a silver table equal to its rebuilt copy.

    Attributes:
        remembered: change of tombstones or stored changes; None for events.
        rejected: rows to add to quarantine.
        gained: records missing from the batch counts, by disposition.
    """

    rows: NetChange
    remembered: NetChange | None
    rejected: DataFrame
    gained: Mapping[str, int]
    report: Rebuilt

    @classmethod
    def of(cls, live: LiveTable, shadow: ShadowTable) -> TableDifference:
        """Compare the live table with the rebuilt one."""
        built = LiveTable.now(shadow.spark, shadow.tables, shadow.totals)
        reshaped = live.shape != built.shape
        if reshaped:
            rows, remembered = _everything(live, built)
        else:
            rows = _row_change(live.rows, built.rows, shadow.tables)
            remembered = _remembered_change(live, built, shadow.tables)
        rejected = built.quarantine.join(
            live.quarantine.select(*PLACE), list(PLACE), "left_anti"
        ).select(*built.quarantine.columns)
        counts = _counts(
            {
                "rows": live.rows,
                "deletes": rows.deleted,
                "inserts": rows.inserted,
                "rejected": rejected,
                **_parts(remembered),
            }
        )
        report = Rebuilt(
            table=shadow.entry.name,
            bronze_version=shadow.version,
            outcomes={name: getattr(built.totals, name) for name in COUNTS[1:]},
            rows=counts["rows"],
            leave=counts["deletes"],
            enter=counts["inserts"],
            rejected=counts["rejected"],
            remembered=counts.get("forgotten", 0) + counts.get("remembered", 0),
            miscounted=_checked(live.totals, shadow) != _checked(built.totals, shadow),
            reshaped=reshaped,
            examples=(
                *(_examples("deleted", rows.deleted) if counts["deletes"] else ()),
                *(_examples("inserted", rows.inserted) if counts["inserts"] else ()),
            ),
        )
        gained = {name: getattr(built.totals, name) - getattr(live.totals, name) for name in COUNTS}
        return cls(rows, remembered, rejected, gained, report)


def _everything(live: LiveTable, built: LiveTable) -> tuple[NetChange, NetChange | None]:
    rows = NetChange(live.rows, built.rows, ())
    if live.remembered is None or built.remembered is None:
        return rows, None
    return rows, NetChange(live.remembered, built.remembered, ())


def _row_change(live: DataFrame, built: DataFrame, tables: SilverTables) -> NetChange:
    entry = tables.entry
    selected = [column.name for column in entry.selected]
    match entry.apply:
        case ApplyMode.APPEND:
            identity: tuple[str, ...] = (tables.identity,)
            content = [*selected, *COORDINATES, ARRIVED_AT]
        case ApplyMode.UPSERT:
            # A change that was sent twice has two offsets, and either may have been applied.
            identity, content = entry.row_key, [*selected, SEQUENCE]
        case ApplyMode.HISTORY:
            identity, content = entry.row_key, [*selected, str(HistoryColumn.VALID_TO)]
    return NetChange.of(live, built, identity=identity, content=content)


def _remembered_change(live: LiveTable, built: LiveTable, tables: SilverTables) -> NetChange | None:
    if live.remembered is None or built.remembered is None:
        return None
    entry = tables.entry
    if entry.apply is ApplyMode.UPSERT:
        return tombstone_change(live.remembered, built.remembered, built.rows, keys=entry.keys)
    told = [column.name for column in entry.selected]
    return NetChange.of_changes(
        live.remembered,
        built.remembered,
        keys=entry.keys,
        content=[*told, str(HistoryColumn.VALID_FROM)],
    )


def _checked(totals: SilverTotals, shadow: ShadowTable) -> tuple[int, ...]:
    """The counts that do not depend on how records were split into batches."""
    match shadow.entry.apply:
        case ApplyMode.APPEND:
            more: tuple[int, ...] = (totals.applied,)
        case ApplyMode.UPSERT:
            more = ()
        case ApplyMode.HISTORY:
            more = (totals.applied + totals.superseded,)
    return (totals.records, totals.quarantined, *more)


def _parts(remembered: NetChange | None) -> dict[str, DataFrame]:
    if remembered is None:
        return {}
    return {"forgotten": remembered.deleted, "remembered": remembered.inserted}


def _counts(frames: Mapping[str, DataFrame]) -> dict[str, int]:
    """The number of rows of each frame, in one Spark job."""
    counted = [
        frame.agg(sf.count(sf.lit(1)).alias("rows")).select(sf.lit(name).alias("name"), "rows")
        for name, frame in frames.items()
    ]
    return {row["name"]: row["rows"] for row in reduce(DataFrame.unionAll, counted).collect()}


def _examples(what: str, rows: DataFrame) -> list[tuple[str, dict[str, Any]]]:
    texts = rows.select(*(sf.col(name).cast("string").alias(name) for name in rows.columns))
    # Sorted, so that preview and run show the same rows.
    first = texts.orderBy(*texts.columns).limit(EXAMPLES)
    return [(what, row.asDict()) for row in first.collect()]
