"""The row changes that turn a table into a target; pure functions of DataFrames.

An identity identifies at most one row of the target. If the table has several rows of an identity,
or other content, all of them are deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.silver.parse.rows import DELETED
from spark_jobs.silver.parse.typed import SEQUENCE
from spark_jobs.silver.parse.unavailable import UNFILLED
from spark_jobs.storage.columns import quoted, same_row

_ROWS, _HELD, _TARGET = "__rows", "__held_content", "__target_content"


@dataclass(frozen=True)
class NetChange:
    """Rows to delete from a table and to insert into it.

    Attributes:
        identity: columns that identify a row; no row that stays shares its values with a deleted
            one. Empty: all rows are deleted.
    """

    deleted: DataFrame
    inserted: DataFrame
    identity: tuple[str, ...]

    @classmethod
    def of(
        cls, held: DataFrame, target: DataFrame, *, identity: Sequence[str], content: Sequence[str]
    ) -> NetChange:
        """Compare a table with its target.

        Args:
            held: the table's rows.
            target: the rows that it should have, with the table's columns.
            identity: columns that identify a row; NULL is a value.
            content: columns that must be equal; others are ignored.
        """
        return cls._where(held, target, identity, values(held, content), values(target, content))

    @classmethod
    def of_changes(
        cls, held: DataFrame, target: DataFrame, *, keys: Sequence[str], content: Sequence[str]
    ) -> NetChange:
        """Compare the stored changes of an SCD type 2 table; filled values are ignored.

        Args:
            held: the stored changes.
            target: the changes that should be stored, with the same columns.
            keys: the columns that identify a row; NULL is a value.
            content: columns that must be equal where they were sent.
        """
        mine, theirs = (_as_sent(one, content) for one in (held, target))
        return cls._where(held, target, (*keys, SEQUENCE), mine, theirs)

    @classmethod
    def _where(
        cls,
        held: DataFrame,
        target: DataFrame,
        identity: Sequence[str],
        mine: Column,
        theirs: Column,
    ) -> NetChange:
        names = list(identity)
        before = held.groupBy(*names).agg(
            sf.count(sf.lit(1)).alias(_ROWS), sf.first(mine).alias(_HELD)
        )
        after = target.select(*names, theirs.alias(_TARGET))
        joined = before.alias("h").join(after.alias("t"), same_row("h", "t", names), "full_outer")
        same = (sf.col(_ROWS) == 1) & sf.col(_HELD).eqNullSafe(sf.col(_TARGET))
        either = [sf.coalesce(f"h.{quoted(one)}", f"t.{quoted(one)}").alias(one) for one in names]
        wrong = joined.where(~sf.coalesce(same, sf.expr("FALSE"))).select(*either)
        wrong = wrong.localCheckpoint(eager=False)
        return cls(_having(held, wrong), _having(target, wrong), tuple(names))


def tombstone_change(
    held: DataFrame, target: DataFrame, rows: DataFrame, *, keys: Sequence[str]
) -> NetChange:
    """The change of tombstones that makes the newest change of each key known.

    Which older deletions they contain depends on the batches, and does not matter.

    Args:
        held: the table's tombstones.
        target: the rebuilt tombstones.
        rows: the rebuilt current rows.
        keys: the columns that identify a row; NULL in a truncation.
    """
    names = list(keys)
    known = reduce(DataFrame.unionByName, [one.select(*names, SEQUENCE) for one in (target, rows)])
    newest = known.groupBy(*names).agg(sf.max(SEQUENCE).alias("__newest"))
    cut = target.where(sf.col(names[0]).isNull()).agg(sf.max(SEQUENCE).alias("__cut"))

    def placed(tombstones: DataFrame) -> DataFrame:
        condition = same_row("t", "n", names)
        joined = tombstones.alias("t").join(newest.alias("n"), condition, "left")
        return joined.select("t.*", "__newest").crossJoin(sf.broadcast(cut))

    # For a truncated key, deletions before the truncation follow from it.
    last = sf.greatest("__newest", "__cut")
    beyond = placed(held).where(last.isNull() | (sf.col(SEQUENCE) > last))
    ends = placed(target).where(sf.col(SEQUENCE) == last).dropDuplicates([*names, SEQUENCE])
    there = same_row("t", "h", [*names, SEQUENCE])
    lacking = ends.alias("t").join(held.alias("h"), there, "left_anti")
    extra = ("__newest", "__cut")
    return NetChange(beyond.drop(*extra), lacking.drop(*extra), (*names, SEQUENCE))


def values(frame: DataFrame, names: Sequence[str]) -> Column:
    """A row's values of these columns as one comparable struct; maps are compared as text."""
    types = {one.name: one.dataType.simpleString() for one in frame.schema.fields}
    return sf.struct(
        *(
            sf.col(name).cast("string").alias(name) if "map<" in types[name] else sf.col(name)
            for name in names
        )
    )


def _as_sent(changes: DataFrame, names: Sequence[str]) -> Column:
    """A stored change as the database sent it, without filled values."""
    content = values(changes, names)
    sent = [
        sf.when(~sf.coalesce(sf.array_contains(UNFILLED, name), sf.expr("FALSE")), content[name])
        for name in names
    ]
    return sf.struct(DELETED, sf.array_sort(UNFILLED), *sent)


def _having(frame: DataFrame, identities: DataFrame) -> DataFrame:
    condition = same_row("f", "i", identities.columns)
    return frame.alias("f").join(identities.alias("i"), condition, "left_semi")
