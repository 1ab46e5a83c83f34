"""Rows to write, in Spark or in this process, and their way from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from spark_jobs.graph.type_agreement import moved
from spark_jobs.storage import policy
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.policy import Place

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Rows:
    """Rows to write. Who writes them need not know where they are.

    Attributes:
        make: gives them to Spark.
        here: the rows, where they are in this process; all their types can be moved.
        place: where rows that Spark has are to be handled, by their number as far as it is known.
        counted: whether it is known exactly; otherwise it is looked whether they are as few as
            expected.
    """

    make: Callable[[], DataFrame]
    here: pa.Table | None = None
    place: Place = Place.SPARK
    counted: bool = False

    @classmethod
    def of(cls, frame: DataFrame, *, place: Place = Place.SPARK) -> Rows:
        """Rows that Spark has, and where they are to be handled."""
        return cls(lambda: frame, place=place)

    @cached_property
    def frame(self) -> DataFrame:
        """The rows in Spark."""
        return self.make()

    @cached_property
    def few(self) -> pa.Table | None:
        """The rows in this process; None where Spark is to handle them."""
        if self.here is not None:
            return self.here
        if self.place is Place.SPARK:
            return None
        if not self.counted:
            return fetched(self.frame)
        return to_arrow(self.frame) if fits_arrow(self.frame) else None

    @property
    def table(self) -> pa.Table:
        """The rows in this process, however many."""
        return to_arrow(self.frame) if self.here is None else self.here

    @property
    def columns(self) -> Sequence[str]:
        """The names of their columns."""
        return self.frame.columns if self.here is None else self.here.column_names

    @property
    def kinds(self) -> dict[str, str] | None:
        """The columns' types as Spark SQL writes them; None for rows that are here."""
        if self.here is not None:
            return None
        return {field.name: field.dataType.simpleString() for field in self.frame.schema.fields}

    @property
    def local(self) -> bool:
        """Whether they are, or are expected to be, in this process when they are written."""
        return self.here is not None or (self.place is Place.LOCAL and fits_arrow(self.frame))


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """Rows to delete, each once and with all its copies, and rows to insert.

    Attributes:
        deletes: how many rows are deleted, at most; None: nobody knows.
        inserts: how many rows are inserted, at most; None: nobody knows.
        kinds: the columns' types in Spark SQL's words.
        key: columns that tell the table's rows apart; empty where only all columns do.
    """

    deleted: Rows
    inserted: Rows
    deletes: int | None
    inserts: int | None
    kinds: Mapping[str, str]
    key: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether there may be a row."""
        return self.deletes != 0 or self.inserts != 0


@dataclass(frozen=True)
class Merge:
    """Rows to merge by key: which change, which go in, which leave; conditions over t and s.

    Attributes:
        delete_others: which rows to delete although no row of the source has their key; over t.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    update: str
    insert: str
    delete: str | None = None
    delete_others: Column | None = None


def rows_here(rows: pa.Table, kinds: Mapping[str, str], spark: Callable[[], SparkSession]) -> Rows:
    """Rows that are in this process.

    Args:
        rows: of any number.
        kinds: the columns' types in Spark SQL's words.
        spark: the session to which they are given where Spark must write them.
    """

    def make() -> DataFrame:
        from pyspark.sql.types import StructType  # noqa: PLC0415

        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in kinds.items())
        return from_arrow(spark(), rows, lambda: cast("StructType", StructType.fromDDL(columns)))

    return Rows(make, rows)


def fetched(frame: DataFrame) -> pa.Table | None:
    """The rows of a DataFrame; None where there are many, or types that cannot be moved."""
    if not fits_arrow(frame):
        return None
    limit = policy.RESULT
    rows = to_arrow(frame if limit.rows is None else frame.limit(limit.rows + 1))
    return rows if limit.fits(rows=rows.num_rows) else None


def to_arrow(frame: DataFrame) -> pa.Table:
    """All rows of a DataFrame, in this process.

    Spark knows a struct without NULL inside that is NULL itself; to Arrow that is an error.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    # As it is written, a type may hold NULL anywhere.
    wider = {
        name: F.col(quoted(name)).cast(kind)
        for name, kind in kinds.items()
        if kind.startswith(("struct<", "array<", "map<"))
    }
    return (frame.withColumns(wider) if wider else frame).toArrow()


def from_arrow(
    session: SparkSession, rows: pa.Table, schema: Callable[[], StructType]
) -> DataFrame:
    """Rows as a DataFrame; ``schema`` is asked only where there are none.

    Of a table without rows a server of Spark Connect learns no columns.
    """
    if not rows.num_rows:
        return session.createDataFrame([], schema())
    # In one piece: Spark takes an empty piece for the end of the rows.
    return session.createDataFrame(rows.combine_chunks())


def fits_arrow(frame: DataFrame) -> bool:
    """Whether all types mean the same in Spark, in Arrow and in a table."""
    return moved(field.dataType.simpleString() for field in frame.schema.fields)


def place_of(rows: DataFrame, length: Column) -> Place:
    """Where the rows of a batch are handled; takes a job, which computes them.

    Args:
        rows: of the batch.
        length: of a row, in bytes; NULL counts as nothing.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    [(count, size)] = rows.agg(F.count(F.lit(1)), F.sum(length)).collect()
    return policy.BATCH.place(rows=int(count), size=int(size or 0))
