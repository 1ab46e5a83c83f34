"""Schema evolution of a silver table: adds columns and widens types.

Delta can widen a type without rewriting files, but other readers reject such tables. So the rows
are rewritten, in one commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.definitions.widening import wider
from spark_jobs.graph.manifest import Column as Declared
from spark_jobs.storage.columns import ColumnSpec, comment, quoted
from spark_jobs.storage.log import schema
from spark_jobs.storage.reader import read_by_delta
from spark_jobs.storage.rows import Rows
from spark_jobs.storage.writer import add_columns, replace


@dataclass(frozen=True)
class Evolution:
    """What a table lacks to match the declaration.

    Attributes:
        added: new columns.
        widened: wider types by column.
        unfit: a column that cannot follow: its name, what it is and what is declared; or None.
    """

    added: tuple[Declared, ...]
    widened: Mapping[str, str]
    unfit: tuple[str, str, str] | None

    @classmethod
    def of(cls, held: Mapping[str, str], declared: Sequence[Declared]) -> Evolution:
        """Compare a table with the declared columns; other columns of the table may stay.

        Args:
            held: the table's Spark SQL types, by column.
            declared: the columns that it should have.
        """
        changed = [one for one in declared if held.get(one.name, one.type) != one.type]
        unfit = [
            (one.name, held[one.name], one.type)
            for one in changed
            if not wider(held[one.name], one.type)
        ]
        added = tuple(one for one in declared if one.name not in held)
        # A table cannot have two columns that differ in case only.
        spelled = {name.lower(): name for name in held}
        unfit += [
            (one.name, f"spelled {spelled[one.name.lower()]!r}", f"as {one.name!r}")
            for one in added
            if one.name.lower() in spelled
        ]
        return cls(
            added=added,
            widened={one.name: one.type for one in changed},
            unfit=unfit[0] if unfit else None,
        )


def types_of(location: str) -> dict[str, str]:
    """A table's Spark SQL types by column.

    Raises:
        TableMissingError: the table does not exist.
    """
    return {column.name: column.type for column in schema(location)}


def evolve(spark: SparkSession, location: str, evolution: Evolution) -> None:
    """Evolve a table in one commit; new columns are NULL in existing rows.

    Args:
        spark: any session.
        location: of the table; no other process may write it meanwhile.
        evolution: its changes; ``unfit`` is None.

    Raises:
        TableMissingError: the table does not exist.
        TableMovedError: another writer committed at the same time.
    """
    if not evolution.widened:
        if evolution.added:
            add_columns(spark, location, evolution.added)
        return
    kept = [
        _named(sf.col(quoted(one.name)).cast(evolution.widened.get(one.name, one.type)), one)
        for one in schema(location)
    ]
    fresh = [_named(sf.lit(None).cast(one.type), one) for one in evolution.added]
    replace(Rows.of(read_by_delta(spark, location).select(*kept, *fresh)), location)


def repartition(spark: SparkSession, location: str, columns: Sequence[str]) -> None:
    """Rewrite a table with other partition columns, in one commit; () removes the partitions.

    Delta cannot mark such a commit as one that changes no rows: readers of the change feed see
    every row deleted and inserted.

    Args:
        spark: any session.
        location: of the table; no other process may write it meanwhile.
        columns: the new partition columns.

    Raises:
        TableMovedError: another writer committed at the same time.
    """
    replace(Rows.of(read_by_delta(spark, location)), location, partition_by=columns)


def _named(value: Column, column: ColumnSpec) -> Column:
    return value.alias(column.name, metadata=comment(column.description))
