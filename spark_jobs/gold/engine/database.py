"""DuckDB over plain Delta tables, in this process, for queries that ``graph.duck`` translated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import duckdb

from spark_jobs.graph.duck.kinds import Kind, kind_of
from spark_jobs.graph.duck.queries import Translated
from spark_jobs.graph.duck.typed import MACRO, quoted, text_of
from spark_jobs.storage import log
from spark_jobs.storage.delta import CAME, CHANGE_TYPE
from spark_jobs.storage.lake import remote_location
from spark_jobs.storage.plain import PlainTable, plain_changes, plain_table

if TYPE_CHECKING:
    import pyarrow as pa

# DuckDB fails a query with one of these; Spark may still answer it.
DuckError = duckdb.Error
WEIGHT = "__w"
# Disabled optimizer rules. They rewrite whole plans and are young; one of them lost rows of unions
# and outer joins over one subquery. The rules that matter for speed stay on: filter pushdown, join
# order, statistics.
_RULES_LEFT_OUT = (
    "aggregate_function_rewriter",
    "aggregate_reuse",
    "common_aggregate",
    "common_subexpressions",
    "common_subplan",
    "cte_filter_pusher",
    "cte_inlining",
    "deliminator",
    "distinct_aggregate_rewrite",
    "duplicate_groups",
    "grouping_sets",
    "join_elimination",
    "late_materialization",
    "materialized_cte",
    "outer_join_simplification",
    "partial_aggregate_pushdown",
    "partitioned_execution",
    "projection_placement",
    "projection_pullup",
    "redundant_order_keys",
    "remote_pushdown",
    "sampling_pushdown",
    "scalar_fn_pushdown",
    "top_n_window_elimination",
    "type_pushdown",
    "unnest_rewriter",
    "window_rewriter",
    "window_self_join",
)
# Other types that files may have for a column: Spark's INT96 timestamps have no zone.
_ALSO = {"TIMESTAMP WITH TIME ZONE": {"TIMESTAMP"}}

Columns = dict[str, Kind | None]


class Duck(AbstractContextManager["Duck"]):
    """A connection that reads the files of tables; its names and results end with the context.

    Attributes:
        known: columns of its relations, by lower-case name. A column's type is None if the engines
            do not agree on it, or if the files have another one.
    """

    def __init__(self, *, memory: str, spill: Path) -> None:
        """Open a connection.

        Args:
            memory: memory limit of all connections of this process, for instance ``2 GiB``; the
                rest is spilled.
            spill: directory for spilled data.
        """
        self.known: dict[str, Columns] = {}
        self._instance = _instance(memory, str(spill))
        self._connection = self._instance.cursor()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()
        if isinstance(error, duckdb.FatalException | duckdb.InternalException):
            # The instance is unusable now; the next refresh opens another.
            _instance.cache_clear()
            _file_types.cache_clear()

    def content(self, name: str, location: str, version: int | None = None) -> bool:
        """Register a table at a version, or its newest; False if DuckDB cannot read its files."""
        table = _here(location, version)
        if table is None:
            return False
        self._view(name, table, [(_paths(table, table.files), "")])
        return True

    def changes(self, name: str, location: str, *, after: int, upto: int) -> bool:
        """Register the inserted (``__w`` 1) and deleted (-1) rows of the versions in (after, upto].

        Returns:
            False if the files do not give the changes.
        """
        found = (
            None if remote_location(location) else plain_changes(location, after=after, upto=upto)
        )
        if found is None:
            return False
        table, files = found
        came = ", ".join(map(text_of, CAME))
        parts = [
            (
                _paths(table, files.changes),
                f"CAST(CASE WHEN {CHANGE_TYPE} IN ({came}) THEN 1 ELSE -1 END AS INTEGER)",
            ),
            (_paths(table, files.added), "CAST(1 AS INTEGER)"),
            (_paths(table, files.removed), "CAST(-1 AS INTEGER)"),
        ]
        self._view(name, table, parts)
        return True

    def compute(self, name: str, query: Translated) -> None:
        """Compute a query once and register its rows."""
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {quoted(name.lower())} AS {query.sql}"
        )
        self.known[name.lower()] = dict(query.columns)

    def same(self, name: str, other: str) -> None:
        """Give a relation a second name."""
        text = f"CREATE OR REPLACE TEMP VIEW {quoted(name.lower())} AS FROM {quoted(other.lower())}"
        self._connection.execute(text)
        self.known[name.lower()] = self.known[other.lower()]

    def fetch(self, sql: str) -> pa.Table:
        """The rows of a query in DuckDB's dialect."""
        return self._connection.sql(sql).to_arrow_table()

    def _view(
        self,
        name: str,
        table: PlainTable,
        parts: Sequence[tuple[Sequence[str], str]],
    ) -> None:
        """Register the rows of some files; each part of them may have a weight."""
        read = [(files, weight) for files, weight in parts if files]
        weighted = any(weight for _, weight in parts)
        known = _columns(table)
        for files, _ in read:
            known = _as_in_files(_file_types(self._instance, table.identity, tuple(files)), known)
        nothing: tuple[Sequence[str], str] = ((), "CAST(NULL AS INTEGER)" if weighted else "")
        text = " UNION ALL ".join(_select(*one, columns=known) for one in read or [nothing])
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name.lower())} AS {text}")
        self.known[name.lower()] = known | ({WEIGHT: Kind("int")} if weighted else {})


@lru_cache(maxsize=4)
def _instance(memory: str, spill: str) -> duckdb.DuckDBPyConnection:
    """One instance per process: starting it takes longer than most refreshes."""
    instance = duckdb.connect(
        config={
            "memory_limit": memory,
            "temp_directory": spill,
            # Nothing is fetched from anywhere.
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "preserve_insertion_order": "false",
        }
    )
    instance.execute("SET GLOBAL TimeZone = 'UTC'")
    instance.execute(f"SET GLOBAL disabled_optimizers = '{','.join(_RULES_LEFT_OUT)}'")
    instance.execute(MACRO)
    return instance


@lru_cache(maxsize=256)
def _file_types(
    instance: duckdb.DuckDBPyConnection, identity: str, files: tuple[str, ...]
) -> dict[str, str]:
    """The column types of some files of a table; files never change, so this is cached."""
    del identity
    with instance.cursor() as connection:
        described = connection.execute(f"DESCRIBE FROM {_reader(files)}").fetchall()
    return {str(row[0]).lower(): str(row[1]) for row in described}


def _as_in_files(held: Mapping[str, str], columns: Columns) -> Columns:
    """The columns; a column's type is None if the files have another one than the log."""
    return {
        name: kind
        if kind is not None
        and (held.get(name) == kind.in_duckdb or held.get(name) in _ALSO.get(kind.in_duckdb, ()))
        else None
        for name, kind in columns.items()
    }


def _here(location: str, version: int | None) -> PlainTable | None:
    """A plain table on a local file system; Spark reads object stores."""
    return None if remote_location(location) else plain_table(location, version)


def _columns(table: PlainTable) -> Columns:
    return {one.name.lower(): kind_of(one.type) for one in log.columns_of(table.schema)}


def _paths(table: PlainTable, files: Iterable[str]) -> list[str]:
    return [f"{table.location}/{one}" for one in files]


def _select(files: Sequence[str], weight: str, *, columns: Columns) -> str:
    """A SELECT of the files' rows, cast to the columns' types; of no row if there are no files."""
    values = [
        f"CAST({quoted(name) if files else 'NULL'} AS {kind.in_duckdb}) AS {quoted(name)}"
        for name, kind in columns.items()
        if kind is not None
    ]
    if weight:
        values.append(f"{weight} AS {WEIGHT}")
    rows = f"FROM {_reader(files)}" if files else "WHERE FALSE"
    return f"SELECT {', '.join(values or ['1 AS __none'])} {rows}"


def _reader(files: Sequence[str]) -> str:
    """Read files of one table; a column that a file lacks is NULL.

    Statistics of other writers leave NaN out, so that a filter could skip its rows. A directory
    ``name=value`` above the table would set the column of that name.
    """
    options = "union_by_name = true, can_have_nan = true, hive_partitioning = false"
    return f"read_parquet([{', '.join(map(text_of, files))}], {options})"
