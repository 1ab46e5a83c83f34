"""Changes of the first transaction after a snapshot, which sort after the snapshot's rows.

Debezium knows no earlier transaction then, so these changes sort by their own log positions. If the
transaction was open while the snapshot was taken, its changes have the position of the snapshot or
lower ones, and the snapshot did not see them. A snapshot's row at a lower offset of the same
partition shows this. Such a change gets the position right after the snapshot's instead, which is
the first that readers get and does not show it, followed by the sum of the snapshot's position and
its own.

A transaction may have been open during several snapshots, if a connector was killed in the first.
Debezium streams from the last one, so none of them saw its changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.silver.parse.rows import COORDINATES
from spark_jobs.silver.parse.sequence import (
    COMMIT_LENGTH,
    MOVED,
    ORDER_DIGITS,
    POSITION_DIGITS,
    SNAPSHOT,
    parts,
)
from spark_jobs.silver.parse.shapes import COMMIT
from spark_jobs.silver.parse.typed import EARLY, SEQUENCE

_PARTITION, _OFFSET = COORDINATES
_SINCE, _SEEN = "__since", "__seen"


def behind_snapshots(rows: DataFrame, held: Iterable[DataFrame] = ()) -> DataFrame:
    """The rows, in which early changes sort after the snapshots that did not see them.

    Those that no snapshot of their partition tells of stay ``EARLY``.

    Args:
        rows: records with ``SEQUENCE``, ``EARLY``, coordinates and possibly ``COMMIT``.
        held: earlier rows of the same source with ``SEQUENCE`` and coordinates.
    """
    place = (SEQUENCE, *COORDINATES)
    known = reduce(DataFrame.unionByName, [one.select(*place) for one in (rows, *held)])
    transaction, position, kind = parts(sf.col(SEQUENCE))
    # A change that was moved tells the snapshot's position too: it may have replaced the last row.
    moved_before = kind.isin(*MOVED.values())
    told = ((transaction == position) & (kind == SNAPSHOT)) | moved_before
    place_of_snapshot = _plus(transaction, sf.when(moved_before, -1).otherwise(0))
    snapshots = (
        known.where(told)
        .groupBy(_PARTITION, place_of_snapshot.alias(_SEEN))
        .agg(sf.min(_OFFSET).alias(_SINCE))
    )
    # A malformed record may have a negative position.
    early = rows.where(sf.col(EARLY) & position.try_cast("bigint").isNotNull())
    early = early.select(*COORDINATES, position.alias("__own"))
    # Of several snapshots the transaction was open during the last, too. See ADR 69.
    moved = (
        early.join(snapshots, _PARTITION)
        .where((sf.col(_SINCE) <= sf.col(_OFFSET)) & (sf.col(_SEEN) >= sf.col("__own")))
        .groupBy(*COORDINATES)
        .agg(sf.max(_SEEN).alias(_SEEN))
    )
    joined = rows.join(sf.broadcast(moved), list(COORDINATES), "left")
    changed = {SEQUENCE: _moved(sf.col(SEQUENCE))}
    if COMMIT in rows.columns:
        changed[COMMIT] = _moved(sf.col(COMMIT))
    placed = {
        name: sf.when(sf.col(_SEEN).isNull(), sf.col(name)).otherwise(value)
        for name, value in changed.items()
    }
    early_still = sf.col(EARLY) & sf.col(_SEEN).isNull()
    return joined.withColumns({**placed, EARLY: early_still}).select(*rows.columns)


def _moved(sequence: Column) -> Column:
    _, position, kind = parts(sequence)
    kinds = sf.create_map(*(sf.lit(one) for pair in MOVED.items() for one in pair))
    declared = sf.left(sequence, sf.length(sequence) - COMMIT_LENGTH)
    order = sf.right(sequence, sf.lit(ORDER_DIGITS))
    after, both = _plus(sf.col(_SEEN), sf.lit(1)), _plus(sf.col(_SEEN), position)
    return sf.concat(declared, sf.concat_ws(".", after, both, kinds[kind], order))


def _plus(position: Column, other: Column) -> Column:
    """The sum of a position and a number, or another position, as text; NULL if one is none."""
    number = f"decimal({POSITION_DIGITS},0)"
    both = (position.try_cast(number) + other.try_cast(number)).cast("string")
    return sf.lpad(both, POSITION_DIGITS, "0")
