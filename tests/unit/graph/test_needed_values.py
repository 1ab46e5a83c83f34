"""A query returns the same rows if a large table lacks those that it does not need."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from spark_jobs.gold.engine.step_values import StepValues
from spark_jobs.graph.dialect import parse
from spark_jobs.graph.runtime_filters import needed_values

STEP = "(SELECT s.k AS step_key, s.w AS w FROM step AS s)"
BIG = "(SELECT key, x FROM big) AS b"
INSIDE = "(SELECT i.key AS key, x FROM (SELECT key, x FROM big) AS i)"
CHAIN = f"(SELECT DISTINCT key, x FROM {INSIDE} AS t WHERE x > 5)"
GROUPS = "(SELECT key, COUNT(*) AS x FROM big GROUP BY key)"
NUMBERED = "(SELECT key, ROW_NUMBER() OVER (ORDER BY x) AS x FROM big)"

# A query, and whether it needs only some rows of the large table.
QUERIES = {
    "inner": (f"SELECT w, x FROM {STEP} AS a JOIN {BIG} ON step_key = key", True),
    "the table itself": ("SELECT w, x FROM step AS s JOIN big AS b ON b.key = s.k", True),
    "null-safe": ("SELECT w, x FROM step AS s JOIN big AS b ON b.key <=> s.k", True),
    "the other way round": (f"SELECT w, x FROM {BIG} JOIN {STEP} AS a ON step_key = key", True),
    "a condition on top": (
        f"SELECT w, x FROM {STEP} AS a JOIN {BIG} ON step_key = key AND x > w",
        True,
    ),
    "one of two": (f"SELECT w, x FROM {STEP} AS a JOIN {BIG} ON step_key = key OR x = 3", False),
    "cross": (f"SELECT w, x FROM {STEP} AS a CROSS JOIN {BIG}", False),
    "left": (f"SELECT w, x FROM {STEP} AS a LEFT JOIN {BIG} ON step_key = key", True),
    "kept by a left join": (
        f"SELECT w, x FROM {BIG} LEFT JOIN {STEP} AS a ON step_key = key",
        False,
    ),
    "right": (f"SELECT w, x FROM {STEP} AS a RIGHT JOIN {BIG} ON step_key = key", False),
    "full": (f"SELECT w, x FROM {STEP} AS a FULL JOIN {BIG} ON step_key = key", False),
    "semi": ("SELECT x FROM big AS b LEFT SEMI JOIN step AS s ON b.key <=> s.k", True),
    "right of semi": ("SELECT w FROM step AS s LEFT SEMI JOIN big AS b ON b.key = s.k", True),
    "anti": ("SELECT x FROM big AS b LEFT ANTI JOIN step AS s ON b.key = s.k", False),
    "right of anti": ("SELECT w FROM step AS s LEFT ANTI JOIN big AS b ON b.key = s.k", True),
    "through rows": (f"SELECT w, x FROM {STEP} AS a JOIN {CHAIN} AS b ON step_key = key", True),
    "through groups": (f"SELECT w, x FROM {STEP} AS a JOIN {GROUPS} AS b ON step_key = key", False),
    "below a window": (
        f"SELECT w, x FROM {STEP} AS a JOIN {NUMBERED} AS b ON step_key = key",
        False,
    ),
    "below a limit": (
        (
            f"SELECT w, x FROM {STEP} AS a JOIN (SELECT key, x FROM big ORDER BY x LIMIT 20) AS b "
            "ON step_key = key"
        ),
        False,
    ),
    "an earlier outer join": (
        (
            "SELECT s.w, b.x, o.one FROM (SELECT 3 AS one UNION ALL SELECT 11) AS o "
            f"LEFT JOIN {BIG} ON o.one = b.key JOIN step AS s ON s.k <=> b.key"
        ),
        True,
    ),
    "a later outer join": (
        (
            "SELECT s.w, b.x, o.one FROM step AS s JOIN big AS b ON s.k = b.key "
            "FULL JOIN (SELECT 3 AS one UNION ALL SELECT 11) AS o ON o.one = b.key"
        ),
        True,
    ),
    "two references": (
        (
            f"SELECT w, b.x FROM {STEP} AS a JOIN {BIG} ON step_key = key UNION ALL "
            f"SELECT w, b.x FROM {STEP} AS a JOIN {BIG} ON w = key"
        ),
        True,
    ),
    "two references, one to all rows": (
        (
            f"SELECT w, b.x FROM {STEP} AS a JOIN {BIG} ON step_key = key "
            "UNION ALL SELECT 0, x FROM big"
        ),
        False,
    ),
    "a subquery that reads all rows": (
        (
            f"SELECT w, x FROM {STEP} AS a JOIN {BIG} ON step_key = key "
            "WHERE x < (SELECT MAX(x) FROM big)"
        ),
        False,
    ),
}


def rows(database: duckdb.DuckDBPyConnection, query: exp.Expr) -> Counter[tuple[object, ...]]:
    return Counter(database.execute(query.sql(dialect="duckdb")).fetchall())


@pytest.mark.parametrize("name", QUERIES)
def test_rows_with_other_values_are_not_needed(name: str) -> None:
    sql, some = QUERIES[name]
    rng, query = random.Random(name), parse(sql)
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE big AS SELECT CASE WHEN i % 9 > 0 THEN i % 40 END AS key, i % 23 AS x "
            "FROM range(120) AS r(i)"
        )
        for count in (6, 6, 1, 0):
            keys = pa.array([rng.randrange(45) for _ in range(count)], pa.int64())
            changed = pa.table({"k": keys, "w": pa.array([3] * count, pa.int32())})
            database.register("step", changed)
            known = StepValues()
            known.add("step", changed, {"k": "bigint", "w": "int"})
            needed = needed_values(query, known)  # type: ignore[arg-type]
            assert set(needed) == ({"big"} if some else set())
            right = rows(database, query)
            if not some:
                continue
            kept = " OR ".join(
                " AND ".join(
                    f"({' OR '.join(f'{column} BETWEEN {a} AND {b}' for a, b in one.intervals)})"
                    if one.intervals
                    else "FALSE"
                    for column, one in values.items()
                )
                for values in needed["big"]
            )
            database.execute(f"CREATE OR REPLACE TEMP VIEW part AS FROM big WHERE {kept}")
            fewer = query.copy()
            for table in fewer.find_all(exp.Table):
                if table.name == "big":
                    table.replace(exp.to_table("part").as_(table.alias or "big"))
            assert rows(database, fewer) == right


def test_null_matches_null_in_any_row() -> None:
    known = StepValues()
    known.add("step", pa.table({"k": [1, None]}), {"k": "bigint"})
    for equal, some in (("=", True), ("<=>", False)):
        query = parse(f"SELECT x FROM big AS b JOIN step AS s ON b.key {equal} s.k")
        assert bool(needed_values(query, known)) is some  # type: ignore[arg-type]
