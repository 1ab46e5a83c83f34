"""Columns of tables for Spark: their names in SQL, types, comments and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


class ColumnSpec(Protocol):
    """A column to create: its type is written as in Spark SQL."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def description(self) -> str | None: ...


def with_types_of(frame: DataFrame, like: DataFrame) -> DataFrame:
    """The columns of another DataFrame, in its order and with its types; all others are dropped.

    A type is given as text: over Spark Connect, a string type that was read from a schema
    carries its collation, and readers other than Spark refuse a table that says so.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    have = {one.name: one.dataType for one in frame.schema.fields}
    return frame.select(
        *(
            F.col(quoted(one.name))
            if have.get(one.name) == one.dataType
            else F.col(quoted(one.name)).cast(one.dataType.simpleString()).alias(one.name)
            for one in like.schema.fields
        )
    )


def same_row(left: str, right: str, columns: Iterable[str]) -> list[Column]:
    """The condition of a join on whole rows of two aliased DataFrames; NULL equals NULL."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    names = [quoted(one) for one in columns]
    return [F.col(f"{left}.{name}").eqNullSafe(F.col(f"{right}.{name}")) for name in names]


def quoted(name: str) -> str:
    """A name or a location as an identifier in SQL.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def struct_type(spark: SparkSession, columns: Sequence[ColumnSpec]) -> StructType:
    """The columns as Spark's schema, with descriptions as column comments."""
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415

    # Spark parses the types under names of our own, so that no column name has to be quoted.
    ddl = ", ".join(f"c{index} {column.type}" for index, column in enumerate(columns))
    parsed = spark.createDataFrame([], ddl).schema.fields if columns else []
    return StructType(
        [
            StructField(column.name, field.dataType, metadata=comment(column.description))
            for column, field in zip(columns, parsed, strict=True)
        ]
    )


def comment(description: str | None) -> dict[str, str]:
    """A column's description as the metadata that Delta shows as its comment."""
    return {"comment": description} if description else {}
