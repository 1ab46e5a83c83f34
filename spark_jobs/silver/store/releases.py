"""Releases: decisions about quarantined records, and their outcomes.

A release outlives the row in quarantine. Batch counts have a record as first judged, so the
releases of an epoch correct its counts. If bronze is read again, a record is applied as released.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce

from pyspark.sql import Column as Condition
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import Column, SilverEntry
from spark_jobs.names import BronzeColumn, Disposition
from spark_jobs.state.batches import SilverTotals
from spark_jobs.storage.errors import TableMissingError
from spark_jobs.storage.reader import read_columns

PLACE = (str(BronzeColumn.PARTITION), str(BronzeColumn.OFFSET))
# Partition and offset of a record.
Place = tuple[int, int]


def reprocessing_app(entry: SilverEntry) -> str:
    """The Delta app id of writes next to the stream, in every epoch.

    Reprocessing and rebuilds share it, so that the stream sees from one number that another process
    wrote the table, and drops its caches.
    """
    return f"readmit/{entry.name}"


class ReleaseAction(StrEnum):
    """A decision about a rejected record."""

    # Judge the record again, unchanged.
    RETRIED = "retried"
    # Judge it with a fixed value. The stored name is that of older releases.
    FIXED = "mended"
    # Ignore it for good, as if it had no value.
    DISCARDED = "discarded"


RELEASE_COLUMNS = (
    Column(name="partition", type="int"),
    Column(name="offset", type="bigint"),
    Column(name="epoch", type="int", description="The epoch whose counts this corrects."),
    Column(name="action", type="string", description="retried, mended or discarded."),
    Column(name="mended_value", type="binary", description="What stands for the record's value."),
    Column(name="outcome", type="string", description="The record's disposition from now on."),
    Column(name="reason", type="string", description="Why the record was in quarantine."),
    Column(name="detail", type="string"),
    Column(name="released_by", type="string"),
    Column(name="released_at", type="timestamp"),
    Column(name="reason_text", type="string", description="The person's own words."),
)


@dataclass(frozen=True)
class Release:
    """The outcome of one record."""

    place: Place
    epoch: int
    outcome: Disposition


def releases(location: str) -> list[Release]:
    """All releases of a silver table; empty if the table does not exist."""
    try:
        found = read_columns(location, [*PLACE, "epoch", "outcome"])
    except TableMissingError:
        return []
    return [
        Release((row["partition"], row["offset"]), row["epoch"], Disposition(row["outcome"]))
        for row in found.to_pylist()
    ]


def corrected(totals: SilverTotals, found: Iterable[Release], *, epoch: int) -> SilverTotals:
    """The counts of an epoch's batches, with released records under their outcome.

    >>> one = Release((0, 7), 1, Disposition.DUPLICATE)
    >>> totals = corrected(SilverTotals(silver="x", records=2, quarantined=2), [one], epoch=1)
    >>> totals.quarantined, totals.duplicate
    (1, 1)
    """
    moved = Counter(str(one.outcome) for one in found if one.epoch == epoch)
    moved[str(Disposition.QUARANTINED)] -= moved.total()
    return replace(totals, **{name: getattr(totals, name) + moved[name] for name in moved})


def as_released(bronze: DataFrame, released: DataFrame) -> DataFrame:
    """Bronze records with fixed values, and without a value if discarded.

    Args:
        bronze: records as received, with bronze's columns.
        released: rows of the releases; at most one per record.

    Returns:
        the columns of ``bronze``.
    """
    joined = bronze.join(sf.broadcast(_named(released)), _same_place(), "left")
    value = released_value("__released_action", "__released_mended_value")
    return joined.withColumn("value", value).select(*bronze.columns)


def released_value(action: str, mended_value: str) -> Condition:
    """A record's value after the decision in the given columns."""
    return (
        sf.when(sf.col(action) == str(ReleaseAction.DISCARDED), sf.lit(None).cast("binary"))
        .when(sf.col(action) == str(ReleaseAction.FIXED), sf.col(mended_value))
        .otherwise(sf.col("value"))
    )


def unsettled(
    records: DataFrame,
    released: DataFrame | None,
    rejected: DataFrame | None,
    *,
    epoch: int,
    place: tuple[str, str] = PLACE,
) -> tuple[DataFrame, int]:
    """The records of a batch that this epoch must judge, and the number of others.

    A record that was released in this epoch was rejected in it before: it counts as rejected, and
    the release moves the count. A record in quarantine stays there until a person decides, even if
    the current tables would accept it.

    Args:
        records: the records of the batch, with bronze's columns; or rows, which cannot be replaced,
            if none was released in another epoch.
        released: rows of the releases; None if there are none.
        rejected: the quarantine; None while it is empty.
        epoch: epoch of the batch.
        place: the columns of ``records`` with partition and offset.

    Returns:
        records as ``as_released`` returns them; and how many records are left out.
    """
    places = []
    if rejected is not None:
        waiting = rejected.select(*PLACE)
        if released is not None:
            waiting = waiting.join(released.select(*PLACE), list(PLACE), "left_anti")
        places.append(waiting)
    if released is not None:
        places.append(released.where(sf.col("epoch") == epoch).select(*PLACE))
    if not places:
        return records, 0
    own = sf.broadcast(records.select(*place).toDF(*PLACE))
    found = reduce(DataFrame.unionByName, places).join(own, list(PLACE), "left_semi")
    settled = found.localCheckpoint(eager=False)
    count = settled.count()
    if count:
        # A join by name puts the join columns first; restore the order.
        names = records.columns
        gone = sf.broadcast(settled.toDF(*place))
        records = records.join(gone, list(place), "left_anti").select(*names)
    if released is not None and place == PLACE:
        records = as_released(records, released.where(sf.col("epoch") != epoch))
    return records, count


def _named(released: DataFrame) -> DataFrame:
    names = (*PLACE, "action", "mended_value")
    return released.select(*(sf.col(name).alias(f"__released_{name}") for name in names))


def _same_place() -> list[Condition]:
    return [sf.col(name) == sf.col(f"__released_{name}") for name in PLACE]
