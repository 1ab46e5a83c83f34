"""The queries on DuckDB, over the Parquet files of a version of each Delta table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.tpch.tables import KEYS, table

# DuckDB averages decimals as doubles; Spark keeps four digits more than the column has.
_AVERAGE = re.compile(r"\bAVG\(([^()]+)\)")


class Duck:
    """A connection with the tables at some versions.

    Args:
        lake: the folder of the tables.
        versions: of each table; None: the newest.
    """

    def __init__(self, lake: Path, versions: Mapping[str, int] | None = None) -> None:
        self._lake = lake
        self.connection = duckdb.connect(config={"threads": 2})
        self.connection.execute("CREATE SCHEMA bronze")
        self.look(versions)

    def look(self, versions: Mapping[str, int] | None = None) -> None:
        """Use these versions of the tables from now on."""
        for name in KEYS:
            version = None if versions is None else versions[name]
            files = table(self._lake, name, version).file_uris()
            self.connection.execute(
                f"CREATE OR REPLACE VIEW bronze.{name} AS SELECT * FROM read_parquet({files!r})"
            )

    def rows(self, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The columns and rows of a query."""
        done = self.connection.execute(translated(query))
        return [one[0] for one in done.description or ()], done.fetchall()

    def write(self, query: str, file: Path) -> None:
        """Write the result of a query as a Parquet file."""
        self.connection.execute(f"COPY ({translated(query)}) TO '{file}' (FORMAT parquet)")


def translated(query: str) -> str:
    """A query of this project in DuckDB's dialect.

    >>> translated("SELECT 0.2 * AVG(l.l_quantity) FROM bronze.lineitem AS l")
    'SELECT 0.2 * CAST(AVG(l.l_quantity) AS DECIMAL(19, 6)) FROM bronze.lineitem AS l'
    """
    return _AVERAGE.sub(r"CAST(AVG(\1) AS DECIMAL(19, 6))", query)
