"""Columns of Spark tables: quoted names, types, comments and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


class ColumnSpec(Protocol):
    """A column to create; ``type`` is a Spark SQL type."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def description(self) -> str | None: ...


def with_types_of(frame: DataFrame, like: DataFrame) -> DataFrame:
    """Select the columns of another DataFrame, in its order, cast to its types.

    Types are passed as text: over Spark Connect, a string type from a schema carries its collation,
    and other Delta readers refuse a table with collations.
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
    """Join conditions of two aliased DataFrames on whole rows; NULL equals NULL."""
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
    """The columns as a Spark schema, with descriptions as comments."""
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415

    # Parse the types under generated names, so that no column name needs quoting.
    ddl = ", ".join(f"c{index} {column.type}" for index, column in enumerate(columns))
    parsed = spark.createDataFrame([], ddl).schema.fields if columns else []
    return StructType(
        [
            StructField(column.name, field.dataType, metadata=comment(column.description))
            for column, field in zip(columns, parsed, strict=True)
        ]
    )


def comment(description: str | None) -> dict[str, str]:
    """Column metadata with the description as ``comment``, which Delta shows; empty without one."""
    return {"comment": description} if description else {}
