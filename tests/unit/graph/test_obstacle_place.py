"""The place of an obstacle in the author's own text."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from sqlglot import exp

from spark_jobs.errors import Location
from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.obstacle_place import obstacle_place
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName

FILE = "sql/gold/v.sql"
HEADER = "/* gold\ndescription: A view.\n*/\n"
ORDERS = TableName.parse("silver.orders")
COLUMNS = {"order_id": "bigint", "user_id": "bigint", "window_limit": "bigint", "at": "timestamp"}


@dataclass(frozen=True)
class Case:
    """A statement, where its obstacle stands, and the obstacle."""

    sql: str
    line: int
    column: int
    obstacle: str


CASES = [
    Case(
        "SELECT order_id,\n  CURRENT_DATE() AS today\nFROM silver.orders",
        5,
        3,
        "CLOCK_OUTSIDE_WHERE",
    ),
    Case(
        "SELECT order_id,\n  ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY at) AS a,\n"
        "  ROW_NUMBER() OVER (ORDER BY at) AS b\nFROM silver.orders",
        6,
        3,
        "DEPENDS_ON_EVERY_ROW",
    ),
    Case(
        "SELECT o.user_id, m.most\nFROM silver.orders AS o\n"
        "CROSS JOIN (SELECT\n  STDDEV(p.user_id) AS most FROM silver.orders AS p) AS m",
        7,
        3,
        "DEPENDS_ON_EVERY_ROW",
    ),
    Case(
        "SELECT order_id FROM silver.orders\nSORT BY order_id",
        4,
        8,
        "UNSUPPORTED_CLAUSE",
    ),
]


def entry_of(sql: str) -> GoldEntry:
    tree = parse(sql)
    assert isinstance(tree, exp.Query)
    resolved = resolve(tree, {ORDERS: COLUMNS}, SqlText(FILE, sql), "v")
    assert not resolved.problems
    query = to_sql(canonical_query(tree, resolved.tree))
    return GoldEntry(
        name="v",
        description="d",
        owner="o",
        refresh="bulk",
        maintenance=maintenance_of(query, types={str(ORDERS): COLUMNS})[0],
        sql=sql,
        query=query,
        inputs=(str(ORDERS),),
        columns=(),
        fingerprint="f",
        deterministic=True,
        reads_clock=False,
        file=FILE,
        tier=0,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.obstacle}-{case.line}")
def test_place(case: Case) -> None:
    entry = entry_of(case.sql)
    assert entry.maintenance is not None
    assert entry.maintenance.obstacle == case.obstacle
    assert obstacle_place(entry, HEADER + case.sql) == Location(FILE, case.line, case.column)


def test_a_file_that_was_changed_since_is_named_alone() -> None:
    entry = entry_of("SELECT MAX(order_id) AS a FROM silver.orders")
    assert obstacle_place(entry, HEADER + "SELECT 1 AS a") == Location(FILE)
