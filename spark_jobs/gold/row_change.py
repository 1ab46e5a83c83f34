"""Rows that are to leave a table and rows that are to enter it, in Spark or in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.graph.duck.staged import LEAVES, OPERATION
from spark_jobs.storage import small, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True)
class RowChange(ABC):
    """Rows that are to leave a table, each once, with all their copies; and rows that are to enter.

    Attributes:
        leaves: how many rows go, at most.
        enters: how many rows come, at most.
        kinds: the columns' types in Spark SQL's words.
        key: columns that tell the table's rows apart; empty where only all columns do.
    """

    leaves: int
    enters: int
    kinds: Mapping[str, str]
    key: tuple[str, ...] = ()

    @abstractmethod
    def fetched(self) -> tuple[pa.Table, pa.Table]:
        """The rows that leave, and those that enter, in this process."""

    @abstractmethod
    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        """The rows that leave, and those that enter, for Spark."""


@dataclass(frozen=True, kw_only=True)
class SparkChange(RowChange):
    """Rows that Spark holds."""

    leaving: DataFrame
    entering: DataFrame

    def fetched(self) -> tuple[pa.Table, pa.Table]:
        none = self.entering.limit(0)
        leaving = self.leaving if self.leaves else none
        return leaving.toArrow(), (self.entering if self.enters else none).toArrow()

    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        del spark
        return self.leaving, self.entering


@dataclass(frozen=True, kw_only=True)
class FewRows(RowChange):
    """Rows that are here."""

    leaving: pa.Table
    entering: pa.Table

    def fetched(self) -> tuple[pa.Table, pa.Table]:
        return self.leaving, self.entering

    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        from pyspark.sql.types import StructType  # noqa: PLC0415

        columns = (f"{tables.quoted(name)} {kind}" for name, kind in self.kinds.items())
        schema = cast("StructType", StructType.fromDDL(", ".join(columns)))
        return (
            small.given(spark, self.leaving, lambda: schema),
            small.given(spark, self.entering, lambda: schema),
        )


def few_rows(rows: pa.Table, *, kinds: Mapping[str, str], key: tuple[str, ...]) -> FewRows:
    """A staged change that is here.

    Args:
        rows: the table's columns and ``__operation``.
        kinds: the columns' types in Spark SQL's words; all are of types that can be grouped by.
        key: columns that tell the table's rows apart; empty where only all columns do.
    """
    leaves = pc.equal(rows.column(OPERATION), LEAVES)
    leaving = rows.filter(leaves).drop_columns([OPERATION])
    entering = rows.filter(pc.invert(leaves)).drop_columns([OPERATION])
    if not key:
        names = leaving.column_names
        leaving = leaving.group_by(names).aggregate([]).select(names)
    return FewRows(
        leaving=leaving,
        entering=entering,
        leaves=leaving.num_rows,
        enters=entering.num_rows,
        kinds=kinds,
        key=key,
    )
