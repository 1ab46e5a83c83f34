"""Fills values that an update did not carry from the preceding row; pure functions.

The preceding row is that of the previous change in the source's order, unless that change deleted
the row. Filling needs a complete row of the key since its last deletion.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.silver.apply.truncations import Truncation
from spark_jobs.silver.parse.documents import PROBLEM, problem
from spark_jobs.silver.parse.rows import CANDIDATE, COORDINATES, DELETED
from spark_jobs.silver.parse.typed import SEQUENCE
from spark_jobs.silver.parse.unavailable import UNFILLED

# Whether a row comes from the tables and not from the batch.
STATE = "__state"
# Whether a change is complete, or a complete one precedes it.
BASED = "__based"
_LIFE = "__life"


def with_values_before(
    changes: DataFrame, *, keys: Sequence[str], names: Sequence[str]
) -> DataFrame:
    """Fill unsent values; changes without a complete predecessor stay as they are.

    Args:
        changes: changes with complete keys, and the columns ``__sequence``, coordinates,
            ``__deleted``, ``__unfilled`` and ``__state``.
        keys: columns that group the changes of one row.
        names: columns that may have to be filled.

    Returns:
        the changes with ``BASED``, whether such a predecessor exists.
    """
    order = [sf.col(SEQUENCE), sf.desc(STATE), *map(sf.col, COORDINATES)]
    first, here = Window.unboundedPreceding, Window.currentRow
    upto = Window.partitionBy(*keys).orderBy(*order).rowsBetween(first, here)
    lived = Window.partitionBy(*keys, _LIFE).orderBy(*order).rowsBetween(first, here)
    deleted, missing = sf.col(DELETED), sf.col(UNFILLED)
    lives = changes.withColumn(_LIFE, sf.sum(deleted.cast("int")).over(upto))
    based = lives.withColumn(BASED, sf.max(~deleted & missing.isNull()).over(lived))

    def filled(name: str) -> Column:
        sent = ~sf.coalesce(sf.array_contains(missing, name), sf.expr("FALSE"))
        value = sf.when(sf.col(BASED) & sent & ~deleted, sf.struct(name))
        before = sf.last(value, ignorenulls=True).over(lived)
        return sf.when(sent | ~sf.col(BASED), sf.col(name)).otherwise(before.getField(name))

    return based.withColumns({name: filled(name) for name in names}).drop(_LIFE)


def fill_current(
    rows: DataFrame,
    held: Sequence[DataFrame],
    *,
    keys: Sequence[str],
    names: Sequence[str],
    after: Truncation | None,
) -> DataFrame:
    """Fill a batch from the current rows; a row that cannot be filled gets a problem.

    Args:
        rows: the batch, as ``silver_rows`` returns it.
        held: the silver table and its tombstones, with the columns ``names``; empty tables are left
            out.
        keys: the columns that identify a row.
        names: columns that may have to be filled.
        after: the last truncation; rows before it are gone.

    Returns:
        the batch with the same columns.
    """
    missing = sf.col(CANDIDATE) & sf.col(UNFILLED).isNotNull()
    touched = sf.broadcast(rows.where(missing).select(*keys).distinct())
    place = (SEQUENCE, *COORDINATES)
    own = rows.where(CANDIDATE).select(*keys, *names, *place, DELETED, UNFILLED)
    parts = [own.withColumn(STATE, sf.expr("FALSE"))]
    for one in held:
        values = [name for name in names if name in one.columns]
        deleted = sf.lit(not values)
        kept = one.select(
            *keys, *values, *place, deleted.alias(DELETED), sf.expr("TRUE").alias(STATE)
        )
        parts.append(kept)
    together = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), parts)
    changes = together.join(touched, list(keys), "left_semi")
    if after is not None:
        changes = changes.where(sf.col(SEQUENCE) > after.sequence)
    newest = sf.max(sf.when(sf.col(STATE), sf.col(SEQUENCE))).over(Window.partitionBy(*keys))
    later = newest.isNull() | (sf.col(SEQUENCE) > newest)
    found = (
        with_values_before(changes, keys=keys, names=names)
        .withColumn("__lost", sf.col(UNFILLED).isNotNull() & ~sf.col(BASED) & later)
        .where(~sf.col(STATE) & sf.col(UNFILLED).isNotNull())
        .select(*COORDINATES, "__lost", *(sf.col(name).alias(f"__new_{name}") for name in names))
    )
    joined = rows.join(sf.broadcast(found), list(COORDINATES), "left")
    changed = {
        name: sf.when(sf.col("__lost").isNull(), sf.col(name)).otherwise(sf.col(f"__new_{name}"))
        for name in names
    }
    lost = sf.coalesce(sf.col("__lost"), sf.expr("FALSE"))
    return joined.withColumns(
        changed
        | {
            PROBLEM: sf.when(lost, unavailable_value()).otherwise(sf.col(PROBLEM)),
            CANDIDATE: sf.col(CANDIDATE) & ~lost,
        }
    ).select(*rows.columns)


def unavailable_value() -> Column:
    """The problem of a row without a complete predecessor."""
    return problem(QuarantineReason.UNAVAILABLE_VALUE, sf.element_at(UNFILLED, 1))
