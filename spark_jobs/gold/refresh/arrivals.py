"""Counts the records that reached a view's silver inputs since its publication."""

from __future__ import annotations

from datetime import datetime

import pyarrow.compute as pc

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.names import Layer, TableName
from spark_jobs.planning.breaker import Arrivals, quarantines_much
from spark_jobs.planning.watermark import Watermark
from spark_jobs.storage.errors import TableMissingError
from spark_jobs.storage.reader import read_columns


def arrivals(context: GoldContext, view: str, *, published: Watermark | None) -> list[Arrivals]:
    """Records and rejected records of each silver input since the publication; [] before the first.

    The control database counts the records that each batch rejected. Only if these are many is the
    quarantine table read, which knows what a person has reprocessed or discarded since.
    """
    if published is None:
        return []
    inputs = map(TableName.parse, context.entry(view).inputs)
    return [_of(context, one, published.clock) for one in inputs if one.layer is Layer.SILVER]


def _of(context: GoldContext, table: TableName, since: datetime) -> Arrivals:
    counted = context.store.silver_totals(table.name, since=since)
    rejected = counted.quarantined
    if quarantines_much(rejected, counted.records, context.settings.breaker):
        rejected = min(rejected, _in_quarantine(context, table, since))
    return Arrivals(str(table), counted.records, rejected)


def _in_quarantine(context: GoldContext, table: TableName, since: datetime) -> int:
    late = pc.field("quarantined_at") > pc.scalar(since)
    try:
        found = read_columns(context.lake.quarantine(table.name), ["offset"], where=late)
    except TableMissingError:
        return 0
    return int(found.num_rows)
