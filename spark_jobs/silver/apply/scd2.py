"""Computes SCD type 2 rows from all changes of their keys; pure functions of DataFrames.

Changes are ordered as the source committed them. A change is valid from its own time until that of
the next change; it is never valid if a later change has the same or an earlier time. So the rows
depend only on the set of changes, not on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from spark_jobs.names import Disposition, HistoryColumn
from spark_jobs.silver.apply.dispositions import DISPOSITION, KNOWN, common_disposition
from spark_jobs.silver.apply.filling import BASED, STATE, unavailable_value, with_values_before
from spark_jobs.silver.apply.net_change import values
from spark_jobs.silver.apply.truncations import Truncation
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.rows import CANDIDATE, COORDINATES, DELETED
from spark_jobs.silver.parse.typed import SEQUENCE
from spark_jobs.silver.parse.unavailable import UNFILLED

VALID_FROM, VALID_TO = str(HistoryColumn.VALID_FROM), str(HistoryColumn.VALID_TO)
# Whether a change is visible in the history.
SHOWN = "__shown"
# The action for a row of the table.
ACTION = "__action"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
# Whether a copy of a change is the one that counts, and whether a record repeats an earlier one.
_COUNTS, _REPEATS = "__counts", "__repeats"


def timeline(
    rows: DataFrame,
    kept: DataFrame | None,
    *,
    known: Sequence[Truncation],
    truncations: Sequence[Truncation],
    keys: Sequence[str],
    names: Sequence[str],
) -> DataFrame:
    """All changes of the affected keys; those of the batch have a disposition.

    Args:
        rows: the persisted batch, as ``silver_rows`` returns it.
        kept: the stored changes of the affected keys; None if there are none.
        known: the stored truncations.
        truncations: the stored truncations and the batch's own.
        keys: the columns that identify a row; NULL in a truncation.
        names: columns that may have to be filled.

    Returns:
        the columns of the batch, ``STATE``, ``KNOWN``, ``SHOWN`` and ``DISPOSITION``, which is NULL
            for stored changes.
    """
    parts = [rows.withColumn(STATE, sf.expr("FALSE"))]
    marks = {STATE: sf.expr("TRUE"), CANDIDATE: sf.expr("TRUE")}
    if kept is not None:
        parts.append(kept.withColumns(marks))
    if truncations:
        present = [one.where(sf.col(keys[0]).isNotNull()).select(*keys) for one in parts]
        reached = reduce(DataFrame.unionByName, present).distinct()
        each = _truncation_rows(rows.sparkSession, truncations).withColumns(marks)
        parts.append(reached.crossJoin(sf.broadcast(each)))
    if known:
        # They have no key; needed to recognise repeats among the batch's truncations.
        parts.append(_truncation_rows(rows.sparkSession, known).withColumns(marks))
    together = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), parts)
    group = (*keys, CANDIDATE)
    marked = _mark_copies(together.repartition(*group), group)
    if names:
        marked = _filled(marked, group, names)
    return _placed(marked, group)


def _truncation_rows(spark: SparkSession, truncations: Sequence[Truncation]) -> DataFrame:
    values = [(one.sequence, one.partition, one.offset, one.micros) for one in truncations]
    schema = f"{SEQUENCE} string, {COORDINATES[0]} int, {COORDINATES[1]} bigint, micros bigint"
    return (
        spark.createDataFrame(values, schema)
        .withColumns({VALID_FROM: sf.timestamp_micros("micros"), DELETED: sf.expr("TRUE")})
        .drop("micros")
    )


def _mark_copies(changes: DataFrame, group: Sequence[str]) -> DataFrame:
    """Mark the copy of a repeated change that counts: the first, or the batch's own copy of it."""
    same = Window.partitionBy(*group, SEQUENCE)
    place = sf.struct(*COORDINATES)
    first = sf.first(place).over(same.orderBy(sf.desc(STATE), *COORDINATES))
    own = ~sf.col(STATE) & (place == sf.col("__first"))
    return (
        changes.withColumn("__first", first)
        .withColumns({KNOWN: sf.max(STATE).over(same), _REPEATS: ~own})
        .withColumn("__again", sf.max(~sf.col(_REPEATS)).over(same))
        .withColumn(
            _COUNTS, sf.when(sf.col(STATE), ~sf.col("__again")).otherwise(~sf.col(_REPEATS))
        )
        .drop("__first", "__again")
    )


def _filled(marked: DataFrame, group: Sequence[str], names: Sequence[str]) -> DataFrame:
    found = with_values_before(marked, keys=group, names=names)
    lost = sf.col(CANDIDATE) & sf.col(UNFILLED).isNotNull() & ~sf.col(BASED)
    # Stored changes stay, even if a late deletion leaves them without a complete predecessor.
    refused = lost & ~sf.col(KNOWN)
    return found.withColumns(
        {
            PROBLEM: sf.when(refused, unavailable_value()).otherwise(sf.col(PROBLEM)),
            _COUNTS: sf.col(_COUNTS) & ~lost,
        }
    ).drop(BASED)


def _placed(marked: DataFrame, group: Sequence[str]) -> DataFrame:
    """Mark the visible changes, and set the dispositions of the batch's records."""
    later = Window.partitionBy(*group).orderBy(sf.desc(SEQUENCE))
    counts = sf.col(_COUNTS) & sf.col(CANDIDATE)
    next_time = sf.min(sf.when(counts, sf.col(VALID_FROM))).over(
        later.rowsBetween(Window.unboundedPreceding, -1)
    )
    overtaken = sf.coalesce(sf.col("__next") <= sf.col(VALID_FROM), sf.expr("FALSE"))
    disposition = (
        common_disposition()
        .when(sf.col(_REPEATS), str(Disposition.DUPLICATE))
        .when(overtaken, str(Disposition.SUPERSEDED))
        .otherwise(str(Disposition.APPLIED))
    )
    return (
        marked.withColumn("__next", next_time)
        .withColumns(
            {SHOWN: counts & ~overtaken, DISPOSITION: sf.when(~sf.col(STATE), disposition)}
        )
        .drop("__next", _COUNTS, _REPEATS)
    )


def intervals(changes: DataFrame, *, keys: Sequence[str], names: Sequence[str]) -> DataFrame:
    """The history's rows: one per period in which a key had the same values.

    Args:
        changes: the result of ``timeline``.
        keys: the columns that identify a row.
        names: the columns of the SELECT.

    Returns:
        the columns of ``changes``, and ``valid_to``: when the next period of the key begins.
    """
    order = Window.partitionBy(*keys).orderBy(SEQUENCE)
    deleted, row_values = sf.col(DELETED), sf.col("__values")
    shown = changes.where(sf.col(SHOWN) & sf.col(keys[0]).isNotNull())
    # NULL means no row: before the first change, and after a deletion.
    marked = shown.withColumn("__values", sf.when(~deleted, values(shown, names)))
    begins = marked.withColumn("__same", sf.lag(row_values).over(order).eqNullSafe(row_values))
    return (
        begins.where(~sf.col("__same"))
        .withColumn(VALID_TO, sf.lead(VALID_FROM).over(order))
        .where(~deleted)
        .drop("__values", "__same")
    )


def actions(
    target: DataFrame, current: DataFrame | None, *, keys: Sequence[str], names: Sequence[str]
) -> DataFrame:
    """The inserts, updates and deletes that turn the current rows into the target.

    Args:
        target: the new rows of the affected keys.
        current: the current rows of the same keys; None if there are none.
        keys: columns that identify a row of the history, including ``valid_from``.
        names: the columns of the SELECT.

    Returns:
        the columns of ``target`` and ``ACTION``: ``INSERT``, ``UPDATE`` or ``DELETE``.
    """
    if current is None:
        return target.withColumn(ACTION, sf.lit(INSERT))
    content = sf.struct(values(target, names), sf.col(VALID_TO))
    before = current.select(*keys, content.alias("__before"))
    joined = target.withColumn("__after", content).join(before, list(keys), "full_outer")
    action = (
        sf.when(sf.col("__after").isNull(), DELETE)
        .when(sf.col("__before").isNull(), INSERT)
        .when(~sf.col("__before").eqNullSafe(sf.col("__after")), UPDATE)
    )
    found = joined.withColumn(ACTION, action).drop("__before", "__after")
    return found.where(sf.col(ACTION).isNotNull())
