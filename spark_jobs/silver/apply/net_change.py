"""What turns a table into what it should be, by whole rows: pure functions of DataFrames.

Rows are told apart by an identity that at most one row of the target has. The table may hold
anything: where an identity has more rows than one, or another content, all of its rows are deleted.
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
    """The rows to delete from a table and to insert into it.

    Attributes:
        identity: the columns that tell rows apart; no row that stays has that of a deleted one.
            () where all rows of the table are deleted.
    """

    deleted: DataFrame
    inserted: DataFrame
    identity: tuple[str, ...]

    @classmethod
    def of(
        cls, held: DataFrame, target: DataFrame, *, identity: Sequence[str], content: Sequence[str]
    ) -> NetChange:
        """Compare a table with what it should be.

        Args:
            held: the table's rows.
            target: the rows that it should hold, with the table's columns.
            identity: the columns that tell rows apart; NULL is a value.
            content: the columns that must be equal; others are as they happen to be.
        """
        return cls._where(held, target, identity, values(held, content), values(target, content))

    @classmethod
    def of_changes(
        cls, held: DataFrame, target: DataFrame, *, keys: Sequence[str], content: Sequence[str]
    ) -> NetChange:
        """Compare the remembered changes of a history; values that were filled say nothing."""
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
    """What the tombstones must gain and lose to know the newest change of each key.

    Which older deletions they know depends on the batches in which those came, and means nothing.

    Args:
        held: the table's tombstones.
        target: the tombstones that were rebuilt.
        rows: the current rows that were rebuilt.
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

    # Of a key that a truncation took along, what was deleted before it is known anyway.
    last = sf.greatest("__newest", "__cut")
    beyond = placed(held).where(last.isNull() | (sf.col(SEQUENCE) > last))
    ends = placed(target).where(sf.col(SEQUENCE) == last).dropDuplicates([*names, SEQUENCE])
    there = same_row("t", "h", [*names, SEQUENCE])
    lacking = ends.alias("t").join(held.alias("h"), there, "left_anti")
    extra = ("__newest", "__cut")
    return NetChange(beyond.drop(*extra), lacking.drop(*extra), (*names, SEQUENCE))


def values(frame: DataFrame, names: Sequence[str]) -> Column:
    """A row's values as one that can be compared: maps cannot, but their texts."""
    types = {one.name: one.dataType.simpleString() for one in frame.schema.fields}
    return sf.struct(
        *(
            sf.col(name).cast("string").alias(name) if "map<" in types[name] else sf.col(name)
            for name in names
        )
    )


def _as_sent(changes: DataFrame, names: Sequence[str]) -> Column:
    """A remembered change as the database sent it."""
    content = values(changes, names)
    sent = [
        sf.when(~sf.coalesce(sf.array_contains(UNFILLED, name), sf.expr("FALSE")), content[name])
        for name in names
    ]
    return sf.struct(DELETED, sf.array_sort(UNFILLED), *sent)


def _having(frame: DataFrame, identities: DataFrame) -> DataFrame:
    condition = same_row("f", "i", identities.columns)
    return frame.alias("f").join(identities.alias("i"), condition, "left_semi")
