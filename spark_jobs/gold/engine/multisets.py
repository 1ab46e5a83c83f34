"""Turns a weighted change into rows to delete and rows to insert, in Spark; pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spark_jobs.graph.duck.staged import DELETE, INSERT, OPERATION
from spark_jobs.graph.maintenance.relation import WEIGHT
from spark_jobs.graph.maintenance.zeros import has_two_zeros
from spark_jobs.storage.columns import quoted, same_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What the error says if a row to delete is not in the published table.
LACKING = "a row to delete is not there"


def net_of(changes: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The changed rows without those that came and left again.

    Args:
        changes: rows with ``__w``, which is 1 or -1.
        columns: the table's, of types that Spark can group; others are dropped.

    Returns:
        the columns and ``__w``; a row for each copy.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    # Temporary names, because a user's column may have any name.
    plain = [f"c{at}" for at in range(len(columns))]
    names = [F.col(quoted(name)) for name in columns]
    rows = changes.select(*names, WEIGHT).toDF(*plain, WEIGHT)
    # Grouping takes -0.0 for 0.0; their texts differ.
    texts = [
        F.col(name).cast("string").alias(f"t{name}")
        for name, kind in rows.dtypes
        if has_two_zeros(kind)
    ]
    values = [F.any_value(name).alias(f"v{name}") for name in plain]
    summed = rows.groupBy(*plain, *texts).agg(F.sum(WEIGHT).alias(WEIGHT), *values)
    each = F.explode(F.array_repeat(F.signum(WEIGHT).cast("int"), F.abs(WEIGHT).cast("int")))
    return summed.select(*(f"v{name}" for name in plain), each).toDF(*columns, WEIGHT)


def of_keyed(change: DataFrame, view: str) -> DataFrame:
    """With a key, a row is deleted or inserted once; any other weight fails the query.

    Args:
        change: the view's columns and ``__w``.
        view: the gold view's name, for the message.

    Returns:
        the view's columns and ``__operation``.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    word = F.when(F.col(WEIGHT) == -1, DELETE).when(F.col(WEIGHT) == 1, INSERT)
    wrong = F.raise_error(F.lit(f"gold.{view}: a row of a unique key comes twice"))
    return change.withColumn(OPERATION, word.otherwise(wrong)).drop(WEIGHT)


def without_key(change: DataFrame, published: DataFrame, view: str) -> DataFrame:
    """Without a key, all copies of a changed row are deleted, and the remaining ones inserted.

    The query fails if more copies are to be deleted than there are.

    Args:
        change: the view's columns and ``__w``, the signed number of copies.
        published: the published table.
        view: the gold view's name, for the message.

    Returns:
        the columns of ``published`` and ``__operation``; a row for each copy.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    columns = published.columns
    names = [F.col(quoted(name)) for name in columns]
    fewer = change.where(F.col(WEIGHT) < 0).alias("c")
    here = published.withColumn("__here", F.lit(1)).alias("p")
    counted = (
        fewer.join(here, same_row("p", "c", columns), "left_outer")
        .groupBy(
            *(F.col(f"c.{quoted(name)}").alias(name) for name in columns), F.col(f"c.{WEIGHT}")
        )
        .agg(F.count("__here").alias("__here"))
    )
    rest = F.col("__here") + F.col(WEIGHT)
    lacking = F.raise_error(F.lit(f"gold.{view}: {LACKING}"))
    deleted = counted.select(
        *names,
        F.lit(DELETE).alias(OPERATION),
        F.when(rest >= 0, F.col("__here")).otherwise(lacking).cast("int").alias("__copies"),
    )
    staying = counted.where(rest > 0).select(
        *names, F.lit(INSERT).alias(OPERATION), rest.cast("int").alias("__copies")
    )
    more = change.where(F.col(WEIGHT) > 0).select(
        *names, F.lit(INSERT).alias(OPERATION), F.col(WEIGHT).cast("int").alias("__copies")
    )
    every = deleted.unionAll(staying).unionAll(more)
    each = F.explode(F.array_repeat(F.lit(1), F.col("__copies")))
    return every.select(*names, F.col(OPERATION), each.alias("__copy")).drop("__copy")
