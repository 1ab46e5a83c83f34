"""How far a change reaches, held against what SQLite computes before and after it."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from typing import Any

import pytest
from sqlglot import exp

from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.columns_read import read_of_tables
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.maintenance.reach import NO_ROWS, RowsMoved, reach
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName

TABLES = {
    "silver.orders": {"id": "bigint", "user_id": "bigint", "amount": "bigint", "note": "string"},
    "silver.users": {"user_id": "bigint", "segment": "string"},
}
# What limits the change, and by how much where 1 row left and 2 entered.
LIMITED = {
    "SELECT o.id, o.amount * 2 AS twice FROM silver.orders AS o WHERE o.amount > 3": (1, 2),
    "SELECT o.user_id, SUM(o.amount) AS total FROM silver.orders AS o GROUP BY o.user_id": (3, 3),
    "SELECT COUNT(*) AS n FROM silver.orders AS o": (1, 1),
    "SELECT DISTINCT o.user_id FROM silver.orders AS o": (3, 3),
    "SELECT o.user_id FROM silver.orders AS o UNION ALL SELECT u.user_id FROM silver.users AS u": (
        1,
        2,
    ),
    "SELECT o.id FROM silver.orders AS o UNION ALL SELECT 7 AS id": (1, 2),
    "SELECT o.id FROM silver.orders AS o WHERE EXISTS "
    "(SELECT 1 FROM silver.users AS u WHERE u.user_id = o.user_id)": (1, 2),
    "SELECT o.id, o.amount FROM silver.orders AS o ORDER BY o.amount DESC, o.id LIMIT 2": (2, 2),
    "SELECT s.total FROM (SELECT o.user_id, SUM(o.amount) AS total FROM silver.orders AS o "
    "GROUP BY o.user_id) AS s WHERE s.total > 4": (3, 3),
}
UNLIMITED = (
    "SELECT o.id FROM silver.orders AS o ORDER BY o.id OFFSET 1",
    "SELECT o.id FROM silver.orders AS o ORDER BY o.id LIMIT 1 + 1",
    "SELECT o.id FROM silver.orders AS o ORDER BY o.id LIMIT 1.5",
    """SELECT o.id FROM silver.orders AS o UNION ALL SELECT o.id FROM silver.orders AS o
    JOIN silver.users AS u ON u.user_id = o.user_id""",
    """SELECT o.id, u.segment FROM silver.orders AS o
    LEFT JOIN silver.users AS u ON u.user_id = o.user_id""",
    """SELECT o.id, u.segment FROM silver.orders AS o
    JOIN silver.users AS u ON u.user_id = o.user_id""",
    """SELECT u.user_id, o.id FROM silver.users AS u
    LEFT JOIN silver.orders AS o ON o.user_id = u.user_id""",
    """SELECT u.segment, COUNT(*) AS n FROM silver.orders AS o
    JOIN silver.users AS u ON u.user_id = o.user_id GROUP BY u.segment""",
    """SELECT o.id, RANK() OVER (PARTITION BY o.user_id ORDER BY o.amount) AS place
    FROM silver.orders AS o""",
    "SELECT o.id, EXPLODE(SEQUENCE(1, o.amount)) AS n FROM silver.orders AS o",
    """SELECT o.user_id, COUNT(*) AS n FROM silver.orders AS o
    GROUP BY o.user_id, session_window(CAST(o.note AS TIMESTAMP), '1 hour')""",
    """SELECT u.user_id FROM silver.users AS u WHERE NOT EXISTS
    (SELECT 1 FROM silver.orders AS o WHERE o.user_id = u.user_id)""",
)


def canonical(query: str) -> str:
    tree = parse(query)
    assert isinstance(tree, exp.Query)
    schemas = {TableName.parse(name): columns for name, columns in TABLES.items()}
    resolved = resolve(tree, schemas, SqlText("query", query), "query")
    assert not resolved.problems
    return to_sql(canonical_query(tree, resolved.tree))


@pytest.mark.parametrize("query", LIMITED)
def test_the_limit_is_as_derived(query: str) -> None:
    moved = {"silver.orders": RowsMoved(1, 2)}
    assert reach(canonical(query), moved) == RowsMoved(*LIMITED[query])


@pytest.mark.parametrize("query", UNLIMITED)
def test_no_bound_is_estimated_without_a_limit(query: str) -> None:
    assert reach(canonical(query), {"silver.orders": RowsMoved(1, 2)}) is None


@pytest.mark.parametrize("query", [*LIMITED, *UNLIMITED])
def test_no_change_reaches_nothing(query: str) -> None:
    assert reach(canonical(query), {}) == NO_ROWS
    assert reach(canonical(query), {"silver.orders": NO_ROWS}) == NO_ROWS


def test_an_unknown_row_count_sets_no_limit() -> None:
    first, *_ = LIMITED
    assert reach(canonical(first), {"silver.orders": None}) is None


@pytest.mark.parametrize("seed", range(5))
def test_no_change_reaches_further_than_its_limit(seed: int) -> None:
    rng = random.Random(seed)
    with sqlite3.connect(":memory:") as database:
        database.execute("ATTACH ':memory:' AS silver")
        database.execute("CREATE TABLE silver.orders (id, user_id, amount, note)")
        database.execute("CREATE TABLE silver.users (user_id, segment)")
        users = [(number, "s") for number in range(4)]
        database.executemany("INSERT INTO silver.users VALUES (?, ?)", users)
        orders = [row(rng, number) for number in range(20)]
        database.executemany("INSERT INTO silver.orders VALUES (?, ?, ?, ?)", orders)
        before = {query: answer(database, query) for query in LIMITED}
        old = answer(database, "SELECT * FROM silver.orders")
        for number in rng.sample(range(20), 3):
            changed = (*row(rng, number)[1:], number)
            update = "UPDATE silver.orders SET user_id = ?, amount = ?, note = ? WHERE id = ?"
            database.execute(update, changed)
        database.execute("DELETE FROM silver.orders WHERE id = ?", (rng.randrange(20),))
        now = answer(database, "SELECT * FROM silver.orders")
        moved = {"silver.orders": RowsMoved((old - now).total(), (now - old).total())}
        for query in LIMITED:
            after, limit = answer(database, query), reach(canonical(query), moved)
            assert limit is not None
            assert (before[query] - after).total() <= limit.leave, query
            assert (after - before[query]).total() <= limit.enter, query


def row(rng: random.Random, number: int) -> tuple[int, int, int, str]:
    return number, rng.randrange(5), rng.randrange(10), rng.choice("ab")


def answer(database: sqlite3.Connection, query: str) -> Counter[tuple[Any, ...]]:
    return Counter(database.execute(query).fetchall())


@pytest.mark.parametrize("all_of_it", ["STRUCT(o.*)", "HASH(*)", "COUNT(DISTINCT *)"])
def test_a_star_reads_every_column(all_of_it: str) -> None:
    query = f"SELECT {all_of_it} AS found FROM silver.orders AS o"
    assert read_of_tables(canonical(query)) == {"silver.orders": None}


def test_counting_rows_reads_no_column() -> None:
    query = canonical("SELECT COUNT(*) AS n FROM silver.orders AS o")
    assert read_of_tables(query) == {"silver.orders": frozenset()}


def test_the_columns_that_a_query_reads() -> None:
    query = (
        "WITH big AS (SELECT o.user_id, SUM(o.amount) AS total FROM silver.orders AS o "
        "GROUP BY o.user_id) SELECT u.segment, b.total FROM silver.users AS u "
        "JOIN big AS b ON b.user_id = u.user_id WHERE NOT EXISTS "
        "(SELECT 1 FROM silver.orders AS o WHERE o.user_id = u.user_id AND o.id < 0)"
    )
    assert read_of_tables(canonical(query)) == {
        "silver.orders": {"user_id", "amount", "id"},
        "silver.users": {"segment", "user_id"},
    }
