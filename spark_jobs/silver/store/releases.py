"""Records that a person took out of quarantine: what was decided, and what became of each.

A release outlives the quarantine's row. Batches count a record as it was first judged, so the
releases of an epoch correct that epoch's counts; and where bronze is read again, a record is what
the person made of it.
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
    """The application id of writes to a silver table beside its stream, in every epoch.

    Reprocessing and rebuilds share it, so a stream that remembers what it read of a table sees by
    one number that another process wrote it.
    """
    return f"readmit/{entry.name}"


class ReleaseAction(StrEnum):
    """What a person made of a rejected record."""

    # Judged again with its own value.
    RETRIED = "retried"
    # Judged with a value that a person wrote.
    # The stored name is the one of older releases.
    FIXED = "mended"
    # Left aside for good, as if it had no value.
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
    """What became of one record."""

    place: Place
    epoch: int
    outcome: Disposition


def releases(location: str) -> list[Release]:
    """Every release of a silver table; none where there is no such table yet."""
    try:
        found = read_columns(location, [*PLACE, "epoch", "outcome"])
    except TableMissingError:
        return []
    return [
        Release((row["partition"], row["offset"]), row["epoch"], Disposition(row["outcome"]))
        for row in found.to_pylist()
    ]


def corrected(totals: SilverTotals, found: Iterable[Release], *, epoch: int) -> SilverTotals:
    """The counts of an epoch's batches with each released record where it ended.

    >>> one = Release((0, 7), 1, Disposition.DUPLICATE)
    >>> totals = corrected(SilverTotals(silver="x", records=2, quarantined=2), [one], epoch=1)
    >>> totals.quarantined, totals.duplicate
    (1, 1)
    """
    moved = Counter(str(one.outcome) for one in found if one.epoch == epoch)
    moved[str(Disposition.QUARANTINED)] -= moved.total()
    return replace(totals, **{name: getattr(totals, name) + moved[name] for name in moved})


def as_released(bronze: DataFrame, released: DataFrame) -> DataFrame:
    """Bronze records with the values that were fixed, and none where a record is discarded.

    Args:
        bronze: records as received.
        released: rows of the releases; a record has at most one.
    """
    joined = bronze.join(sf.broadcast(_named(released)), _same_place(), "left")
    value = released_value("__released_action", "__released_mended_value")
    return joined.withColumn("value", value).select(*bronze.columns)


def released_value(action: str, mended_value: str) -> Condition:
    """The value of a record of bronze with what was decided about it in columns beside it."""
    return (
        sf.when(sf.col(action) == str(ReleaseAction.DISCARDED), sf.lit(None).cast("binary"))
        .when(sf.col(action) == str(ReleaseAction.FIXED), sf.col(mended_value))
        .otherwise(sf.col("value"))
    )


def unsettled(
    bronze: DataFrame, released: DataFrame | None, rejected: DataFrame | None, *, epoch: int
) -> tuple[DataFrame, int]:
    """The records of a batch that this epoch must judge, as released before; and how many not.

    A record that was released in this epoch was rejected in it before: it counts as that, and the
    release moves the count. One that is in quarantine stays there until a person decides: the
    tables as they are now could make something else of it.

    Args:
        bronze: the records of the batch.
        released: rows of the releases; None where there are none.
        rejected: the quarantine; None while it is empty.
        epoch: whose batch it is.
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
        return bronze, 0
    own = sf.broadcast(bronze.select(*PLACE))
    found = reduce(DataFrame.unionByName, places).join(own, list(PLACE), "left_semi")
    settled = found.localCheckpoint(eager=False)
    count = settled.count()
    if count:
        # A join by names would put these first.
        names = bronze.columns
        bronze = bronze.join(sf.broadcast(settled), list(PLACE), "left_anti").select(*names)
    if released is not None:
        bronze = as_released(bronze, released.where(sf.col("epoch") != epoch))
    return bronze, count


def _named(released: DataFrame) -> DataFrame:
    names = (*PLACE, "action", "mended_value")
    return released.select(*(sf.col(name).alias(f"__released_{name}") for name in names))


def _same_place() -> list[Condition]:
    return [sf.col(name) == sf.col(f"__released_{name}") for name in PLACE]
