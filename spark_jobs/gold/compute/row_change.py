"""The rows to delete from a table and to insert into it, in Spark or in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.graph.duck.staged import DELETE, OPERATION
from spark_jobs.storage import small, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True)
class RowChange(ABC):
    """Rows to delete, each once and with all its copies, and rows to insert.

    Attributes:
        deletes: how many rows are deleted, at most.
        inserts: how many rows are inserted, at most.
        kinds: the columns' types in Spark SQL's words.
        key: columns that tell the table's rows apart; empty where only all columns do.
    """

    deletes: int
    inserts: int
    kinds: Mapping[str, str]
    key: tuple[str, ...] = ()

    @abstractmethod
    def fetched(self) -> tuple[pa.Table, pa.Table]:
        """The deleted rows and the inserted ones, in this process."""

    @abstractmethod
    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        """The deleted rows and the inserted ones, for Spark."""


@dataclass(frozen=True, kw_only=True)
class SparkChange(RowChange):
    """Rows that Spark holds."""

    deleted: DataFrame
    inserted: DataFrame

    def fetched(self) -> tuple[pa.Table, pa.Table]:
        none = self.inserted.limit(0)
        deleted = self.deleted if self.deletes else none
        return deleted.toArrow(), (self.inserted if self.inserts else none).toArrow()

    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        del spark
        return self.deleted, self.inserted


@dataclass(frozen=True, kw_only=True)
class FewRows(RowChange):
    """Rows that are here."""

    deleted: pa.Table
    inserted: pa.Table

    def fetched(self) -> tuple[pa.Table, pa.Table]:
        return self.deleted, self.inserted

    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        from pyspark.sql.types import StructType  # noqa: PLC0415

        columns = (f"{tables.quoted(name)} {kind}" for name, kind in self.kinds.items())
        schema = cast("StructType", StructType.fromDDL(", ".join(columns)))
        return (
            small.from_arrow(spark, self.deleted, lambda: schema),
            small.from_arrow(spark, self.inserted, lambda: schema),
        )


def few_rows(rows: pa.Table, *, kinds: Mapping[str, str], key: tuple[str, ...]) -> FewRows:
    """A staged change that is here.

    Args:
        rows: the table's columns and ``__operation``.
        kinds: the columns' types in Spark SQL's words; all are of types that can be grouped by.
        key: columns that tell the table's rows apart; empty where only all columns do.
    """
    deletes = pc.equal(rows.column(OPERATION), DELETE)
    deleted = rows.filter(deletes).drop_columns([OPERATION])
    inserted = rows.filter(pc.invert(deletes)).drop_columns([OPERATION])
    if not key:
        names = deleted.column_names
        deleted = deleted.group_by(names).aggregate([]).select(names)
    return FewRows(
        deleted=deleted,
        inserted=inserted,
        deletes=deleted.num_rows,
        inserts=inserted.num_rows,
        kinds=kinds,
        key=key,
    )
