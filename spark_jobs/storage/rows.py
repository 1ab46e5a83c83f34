"""Rows to write, as a DataFrame or as an Arrow table, and conversions between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from spark_jobs.graph.last_step import RowStep
from spark_jobs.graph.type_agreement import moved
from spark_jobs.storage import policy
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.policy import Limit, Place

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

# More than any query has.
_MOST_PARTITIONS = 1_000_000


@dataclass(frozen=True)
class Rows:
    """Rows to write. The writer need not know where they are.

    Attributes:
        make: returns them as a DataFrame.
        here: the rows as Arrow data, if they are in this process.
        place: where to handle rows of a DataFrame, by their expected number.
        counted: whether that number is exact; otherwise the rows are counted before they are
            collected.
    """

    make: Callable[[], DataFrame]
    here: pa.Table | None = None
    place: Place = Place.SPARK
    counted: bool = False

    @classmethod
    def of(cls, frame: DataFrame, *, place: Place = Place.SPARK) -> Rows:
        """Rows of a DataFrame, and where to handle them."""
        return cls(lambda: frame, place=place)

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as a DataFrame."""
        return self.make()

    @cached_property
    def few(self) -> pa.Table | None:
        """The rows as Arrow data; None if Spark is to handle them."""
        if self.here is not None:
            return self.here
        if self.place is Place.SPARK:
            return None
        if not self.counted:
            return fetched(self.frame)
        return to_arrow(self.frame) if fits_arrow(self.frame) else None

    @cached_property
    def table(self) -> pa.Table:
        """The rows as Arrow data, however many."""
        return to_arrow(self.frame) if self.here is None else self.here

    @property
    def columns(self) -> Sequence[str]:
        """Column names."""
        return self.frame.columns if self.here is None else self.here.column_names

    @property
    def kinds(self) -> dict[str, str] | None:
        """Spark SQL types by column; None for Arrow data."""
        if self.here is not None:
            return None
        return {field.name: field.dataType.simpleString() for field in self.frame.schema.fields}

    @property
    def local(self) -> bool:
        """Whether the rows are, or are expected to be, Arrow data when they are written."""
        return self.here is not None or (self.place is Place.LOCAL and fits_arrow(self.frame))


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """Rows to delete, each once for all its copies, and rows to insert.

    Attributes:
        deletes: upper bound of the rows to delete; None if unknown.
        inserts: upper bound of the rows to insert; None if unknown.
        kinds: Spark SQL types by column.
        step: how a row to delete is found in the table.
    """

    deleted: Rows
    inserted: Rows
    deletes: int | None
    inserts: int | None
    kinds: Mapping[str, str]
    step: RowStep

    @property
    def any(self) -> bool:
        """Whether there may be any row."""
        return self.deletes != 0 or self.inserts != 0


@dataclass(frozen=True)
class Merge:
    """A merge by key; conditions in SQL over the aliases t (target) and s (source).

    Attributes:
        delete_others: condition over t: rows without a source row of their key that are deleted
            too.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    update: str
    insert: str
    delete: str | None = None
    delete_others: Column | None = None


def rows_here(rows: pa.Table, kinds: Mapping[str, str], spark: Callable[[], SparkSession]) -> Rows:
    """Rows that are Arrow data in this process.

    Args:
        rows: any number of rows.
        kinds: Spark SQL types by column.
        spark: opens the session with which Spark writes them, if there are many.
    """

    def make() -> DataFrame:
        from pyspark.sql.types import StructType  # noqa: PLC0415

        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in kinds.items())
        return from_arrow(spark(), rows, lambda: cast("StructType", StructType.fromDDL(columns)))

    return Rows(make, rows)


def fetched(frame: DataFrame) -> pa.Table | None:
    """The rows of a DataFrame as Arrow data; None if there are many, or types do not convert."""
    if not fits_arrow(frame):
        return None
    limit = policy.RESULT
    rows = to_arrow(frame if limit.rows is None else at_most(frame, limit.rows + 1))
    return rows if limit.fits(rows=rows.num_rows) else None


def at_most(frame: DataFrame, count: int) -> DataFrame:
    """The first rows of a DataFrame, by code that Spark compiles once.

    Spark pushes a limit below unions and outer joins, where its code has a counter with a number
    that is new for each query. So it would compile the scan and the joins of the same query anew
    each time. It pushes no limit below COALESCE, which with so many partitions changes nothing.
    """
    return frame.coalesce(_MOST_PARTITIONS).limit(count)


def to_arrow(frame: DataFrame) -> pa.Table:
    """Collect all rows of a DataFrame as Arrow data.

    Spark allows a NULL struct whose fields are declared NOT NULL; Arrow does not.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    # A type parsed from text is nullable at every level.
    wider = {name: F.col(quoted(name)).cast(kind) for name, kind in kinds.items() if _nested(kind)}
    return (frame.withColumns(wider) if wider else frame).toArrow()


def any_rows(frame: DataFrame) -> pa.Table:
    """The same for the result of any query: names may repeat, and need quotes within types."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415
    from pyspark.sql.types import StructType  # noqa: PLC0415

    if not any(_nested(field.dataType.simpleString()) for field in frame.schema.fields):
        return frame.toArrow()
    own = [f"c{index}" for index in range(len(frame.columns))]
    kinds = StructType.fromJson(_nullable(frame.schema.jsonValue())).fields
    columns = [
        F.col(name).cast(kind.dataType).alias(name) for name, kind in zip(own, kinds, strict=True)
    ]
    return frame.toDF(*own).select(*columns).toArrow().rename_columns(frame.columns)


def _nullable(schema: Any) -> Any:
    """A schema in Spark's JSON form, nullable at every level."""
    if isinstance(schema, list):
        return [_nullable(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    flags = {"nullable", "containsNull", "valueContainsNull"} & schema.keys()
    return {name: _nullable(value) for name, value in schema.items()} | dict.fromkeys(flags, True)


def _nested(kind: str) -> bool:
    return kind.startswith(("struct<", "array<", "map<"))


def from_arrow(
    session: SparkSession, rows: pa.Table, schema: Callable[[], StructType]
) -> DataFrame:
    """Arrow data as a DataFrame; ``schema`` is called only if there are no rows.

    Over Spark Connect, an empty Arrow table loses its columns.
    """
    if not rows.num_rows:
        return no_rows(session, schema())
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    # By itself, Spark takes times without a zone for instants.
    kinds = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    # In one chunk: Spark treats an empty chunk as the end of the data.
    return session.createDataFrame(rows.combine_chunks(), kinds)


def no_rows(session: SparkSession, schema: StructType) -> DataFrame:
    """An empty DataFrame with these columns, which Spark's optimizer knows to be empty.

    A classic session turns an empty list into an RDD and estimates its size at 8 EiB, so a join
    would read and shuffle the other table whole. The optimizer removes a relation whose condition
    is false, and every inner join with it.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return session.createDataFrame([], schema).where(F.expr("false"))


def fits_arrow(frame: DataFrame) -> bool:
    """Whether all types have the same meaning in Spark, Arrow and Delta."""
    return moved(field.dataType.simpleString() for field in frame.schema.fields)


def place_of(rows: DataFrame, length: Column, *, few: Limit) -> Place:
    """Where the rows of a batch are handled; runs a job, which computes the rows, unless Spark
    handles any batch.

    Args:
        rows: rows of the batch.
        length: length of a row in bytes; NULL counts as 0.
        few: the largest batch that is handled in this process.
    """
    if few == policy.NOTHING:
        return Place.SPARK
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    [(count, size)] = rows.agg(F.count(F.lit(1)), F.sum(length)).collect()
    return few.place(rows=int(count), size=int(size or 0))


def row_length(rows: DataFrame) -> Column:
    """The length of a row in bytes, roughly."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    total = F.lit(0)
    for field in rows.schema.fields:
        kind, value = field.dataType.simpleString(), F.col(quoted(field.name))
        if kind.startswith(("struct<", "array<", "map<")):
            value, kind = F.to_json(value), "string"
        long = kind in {"string", "binary"}
        total = total + (F.coalesce(F.octet_length(value), F.lit(0)) if long else F.lit(8))
    return total
