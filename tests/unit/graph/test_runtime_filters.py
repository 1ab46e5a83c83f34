"""Joins with a small known relation say where its keys are, and return the same rows."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from spark_jobs.gold.engine.step_values import StepValues
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.runtime_filters import Values, text_of, with_runtime_filters
from spark_jobs.storage.key_ranges import INTERVALS, intervals

KINDS = {"k": "bigint", "d": "date", "w": "int"}
BIG = "(SELECT t.key AS big_key, t.day AS big_day, t.x AS x FROM big AS t)"
STEP = "(SELECT s.k AS step_key, s.d AS step_day FROM step AS s)"
SAME = "step_key = big_key"

# Statistics of the large table's files.
BIG_FILES = pa.table(
    {
        "min.key": [0, 50_000],
        "max.KEY": [49_999, 100_000],
        "min.day": [date(2026, 1, 1)] * 2,
        "max.day": [date(2026, 1, 3)] * 2,
    }
)

# A query, and whether its scan of the large table is told where the keys are.
QUERIES = {
    "inner": (f"SELECT step_key, x FROM {STEP} AS a JOIN {BIG} AS b ON {SAME}", True),
    "the other way round": (f"SELECT step_key, x FROM {BIG} AS b JOIN {STEP} AS a ON {SAME}", True),
    "left": (f"SELECT step_key, x FROM {STEP} AS a LEFT JOIN {BIG} AS b ON {SAME}", True),
    "right": (f"SELECT step_key, x FROM {STEP} AS a RIGHT JOIN {BIG} AS b ON {SAME}", True),
    "full": (f"SELECT step_key, x FROM {STEP} AS a FULL JOIN {BIG} AS b ON {SAME}", True),
    "semi": (f"SELECT x FROM {BIG} AS b LEFT SEMI JOIN step AS s ON b.big_key <=> s.k", True),
    "anti": (f"SELECT x FROM {BIG} AS b LEFT ANTI JOIN step AS s ON b.big_key <=> s.k", True),
    "two columns": (
        f"SELECT x FROM {STEP} AS a JOIN {BIG} AS b ON {SAME} AND step_day = big_day",
        True,
    ),
    "through groups": (
        (
            "SELECT n, x FROM (SELECT step_key, COUNT(*) AS n FROM "
            f"{STEP} AS i GROUP BY step_key) AS a JOIN {BIG} AS b ON {SAME}"
        ),
        True,
    ),
    "through a join": (
        (
            f"SELECT x FROM (SELECT step_key FROM {STEP} AS i JOIN (SELECT 1 AS one) AS j ON TRUE) "
            f"AS a JOIN {BIG} AS b ON {SAME}"
        ),
        True,
    ),
    "NULL of an outer join": (
        (
            f"SELECT x FROM (SELECT step_key FROM (SELECT 7 AS one) AS j LEFT JOIN {STEP} AS i "
            f"ON one = step_key) AS a JOIN {BIG} AS b ON step_key <=> big_key"
        ),
        False,
    ),
    "an expression": (
        f"SELECT x FROM {STEP} AS a JOIN {BIG} AS b ON step_key + 1 = big_key",
        False,
    ),
    "a computed key": (
        f"SELECT x FROM (SELECT k + 1 AS step_key FROM step) AS a JOIN {BIG} AS b ON {SAME}",
        False,
    ),
    "a comparison": (f"SELECT x FROM {STEP} AS a JOIN {BIG} AS b ON step_key < big_key", False),
    "both unknown": (f"SELECT b.x FROM {BIG} AS b JOIN {BIG} AS c ON b.big_key = c.big_key", False),
    "a union": (
        (
            f"SELECT x FROM (SELECT k AS step_key FROM step UNION ALL SELECT 5) AS a "
            f"JOIN {BIG} AS b ON {SAME}"
        ),
        False,
    ),
}


def step(rng: random.Random, *, nulls: bool) -> pa.Table:
    """Rows of a step: keys in two places, far from each other."""
    keys = [rng.choice((rng.randint(10, 14), rng.randint(80, 82))) for _ in range(6)]
    days = [date(2026, 1, rng.randint(1, 3)) for _ in keys]
    if nulls:
        keys[rng.randrange(6)] = None  # type: ignore[call-overload]
    types = {"k": pa.int64(), "d": pa.date32(), "w": pa.int32()}
    return pa.table({"k": keys, "d": days, "w": [1] * 6}, schema=pa.schema(types))


def rows(database: duckdb.DuckDBPyConnection, query: exp.Expr) -> Counter[tuple[object, ...]]:
    return Counter(database.execute(query.sql(dialect="duckdb")).fetchall())


@pytest.mark.parametrize("name", QUERIES)
def test_every_kind_of_join_returns_the_same_rows(name: str) -> None:
    sql, filtered = QUERIES[name]
    rng = random.Random(name)
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE big AS SELECT CASE WHEN i % 7 > 0 THEN i END AS key, i AS x, "
            "DATE '2026-01-01' + (i % 5)::INT AS day FROM range(100) AS r(i)"
        )
        for nulls in (False, True, False):
            changed = step(rng, nulls=nulls)
            database.register("step", changed)
            known = StepValues()
            known.add_table("big", lambda: BIG_FILES)
            known.add("step", changed, KINDS)
            found = with_runtime_filters(parse(sql), known)  # type: ignore[arg-type]
            assert ("big_key IN (" in to_sql(found)) is filtered, to_sql(found)
            assert rows(database, found) == rows(database, parse(sql))


def test_a_scan_is_told_both_places_of_the_keys() -> None:
    known = StepValues()
    known.add("step", pa.table({"k": [10, 82, 11, 12, 82]}), {"k": "bigint"})
    sql = "SELECT x FROM big AS b LEFT SEMI JOIN step AS s ON b.key = s.k"
    known.add_table("big", lambda: BIG_FILES)
    found = to_sql(with_runtime_filters(parse(sql), known))  # type: ignore[arg-type]
    # More than ten values, so that they are no part of the code that Spark compiles.
    assert found == (
        "SELECT x FROM big AS b LEFT SEMI JOIN step AS s ON b.key = s.k AND "
        "(b.key IN (10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20) OR "
        "b.key IN (82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92))"
    )


def test_many_keys_are_told_as_intervals() -> None:
    known = StepValues()
    known.add_table("big", lambda: BIG_FILES)
    known.add("step", pa.table({"k": [*range(3000), 9000]}), {"k": "bigint"})
    sql = "SELECT x FROM big AS b JOIN step AS s ON b.key = s.k"
    assert to_sql(with_runtime_filters(parse(sql), known)).endswith(  # type: ignore[arg-type]
        "AND (b.key BETWEEN CAST('0' AS BIGINT) AND CAST('2999' AS BIGINT) OR "
        "b.key BETWEEN CAST('9000' AS BIGINT) AND CAST('9000' AS BIGINT))"
    )


@pytest.mark.parametrize(
    ("kind", "values", "number", "written"),
    [
        ("date", pa.array([date(2026, 1, 2)]), 20455, "2026-01-02"),
        (
            "timestamp",
            pa.array([datetime(2026, 1, 2, 3, 4, 5, 6, UTC)], pa.timestamp("us", "Europe/Berlin")),
            1767323045000006,
            "2026-01-02T03:04:05.000006+00:00",
        ),
        (
            "timestamp_ntz",
            pa.array([datetime(2026, 1, 2, 3, 4)], pa.timestamp("us")),  # noqa: DTZ001
            1767323040000000,
            "2026-01-02T03:04:00",
        ),
    ],
)
def test_times_are_told_as_spark_reads_them(
    kind: str, values: pa.Array, number: int, written: str
) -> None:
    known = StepValues()
    known.add("step", pa.table({"K": values}), {"K": kind})
    assert known.values("step", "k") == Values(kind, nulls=False, intervals=[(number, number)])
    assert text_of(number, kind) == written


@pytest.mark.parametrize(
    ("files", "skips"),
    [
        ({"min.key": [0, 500], "max.key": [499, 1000]}, True),
        ({"min.key": [0], "max.key": [30]}, False),
        # Without statistics, or with those of another type.
        ({"min.key": [0, None], "max.key": [499, 1000]}, False),
        ({"min.other": [0], "max.other": [1000]}, False),
        ({"min.key": ["0"], "max.key": ["1000"]}, False),
    ],
)
def test_a_filter_is_worth_its_cost_where_it_skips_half_of_the_values(
    files: dict[str, list[object]], skips: bool
) -> None:
    known = StepValues()
    known.add("step", pa.table({"k": range(10, 26)}), {"k": "bigint"})
    known.add_table("big", lambda: pa.table(files))
    values = known.values("step", "k")
    assert values is not None
    assert known.skips("big", "key", values) is skips
    assert not known.skips("a small one", "key", values)


@pytest.mark.parametrize(("value", "first", "last"), [(-5, -5, 5), (125, 115, 125)])
def test_a_short_list_gets_values_of_its_type(value: int, first: int, last: int) -> None:
    known = StepValues()
    known.add("step", pa.table({"k": pa.array([value], pa.int8())}), {"k": "tinyint"})
    found = known.values("step", "k")
    assert found is not None
    assert found.lists == [list(range(first, last + 1))]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("string", pa.array(["a"])),
        ("double", pa.array([1.5])),
        # A year that Python lacks.
        ("timestamp", pa.array([400_000_000_000_000_000], pa.timestamp("us", "UTC"))),
    ],
)
def test_other_values_filter_nothing(kind: str, values: pa.Array) -> None:
    known = StepValues()
    known.add("step", pa.table({"k": values}), {"k": kind})
    assert known.values("step", "k") is None
    assert known.values("step", "another") is None
    assert known.values("nobody's", "k") is None


def test_there_are_few_intervals_and_they_hold_every_number() -> None:
    rng = random.Random(7)
    for count in (0, 1, 2, 15, 17, 400):
        numbers = np.array([rng.randrange(10_000) for _ in range(count)], dtype=np.int64)
        found = intervals(numbers)
        assert len(found) <= INTERVALS[0]
        assert [one for part in found for one in part] == sorted({*numbers.tolist()})
