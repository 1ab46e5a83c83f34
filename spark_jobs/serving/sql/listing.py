"""The tables, columns and comments that SQL clients can list.

They are views in the catalog that clients' sessions share. Queries never read them, because each
table in a query is replaced by the Delta table at a version.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from spark_jobs.graph.sql import text_literal
from spark_jobs.storage.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_NEVER_READ = "raise_error('this name is listed and never read') IS NULL"


class _Column(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def description(self) -> str: ...


@dataclass(frozen=True)
class ListedTable:
    """A table as listed for clients."""

    description: str
    columns: tuple[_Column, ...]


@dataclass
class Listing:
    """The listed tables of a session's catalog.

    Attributes:
        listed: the current list, by ``schema.name``.
    """

    spark: SparkSession
    listed: dict[str, ListedTable] = field(default_factory=dict)

    def make_schemas(self, names: Iterable[str]) -> None:
        """Create the schemas."""
        for name in names:
            self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(name)}")

    def show(self, wanted: Mapping[str, ListedTable]) -> None:
        """List exactly these tables, given by name in SQL; unchanged ones are kept."""
        for name in self.listed.keys() - wanted.keys():
            self.spark.sql(f"DROP VIEW IF EXISTS {_sql_name(name)}")
            del self.listed[name]
            logger.info("table not listed any more table=%s", name)
        for name, table in wanted.items():
            if self.listed.get(name) != table:
                self._put(name, table)
                self.listed[name] = table

    def _put(self, name: str, table: ListedTable) -> None:
        from pyspark.errors import PySparkException

        columns = ", ".join(
            f"{quoted(one.name)} COMMENT {text_literal(one.description)}" for one in table.columns
        )
        values = ", ".join(
            f"CAST(NULL AS {one.type}) AS {quoted(one.name)}" for one in table.columns
        )
        try:
            self.spark.sql(
                f"CREATE OR REPLACE VIEW {_sql_name(name)} ({columns}) "
                f"COMMENT {text_literal(table.description)} AS SELECT {values} WHERE {_NEVER_READ}"
            )
        except PySparkException as error:
            # The table can still be queried; continue with the others.
            logger.warning("table cannot be listed table=%s error=%s", name, error)
        else:
            logger.info("table listed table=%s columns=%d", name, len(table.columns))


def _sql_name(name: str) -> str:
    return ".".join(map(quoted, name.split(".")))
