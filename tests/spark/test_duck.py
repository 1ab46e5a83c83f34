"""What is on the list for DuckDB gives Spark's values and Spark's types, on values at the edges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.gold.engine.database import Duck, DuckError
from spark_jobs.graph.dialect import parse
from spark_jobs.graph.duck.closed import CLOSED_LIST
from spark_jobs.graph.duck.queries import translated
from spark_jobs.graph.maintenance.clauses import each_copy
from tests.spark.duck_expressions import (
    AGGREGATES,
    EXPRESSIONS,
    FAILING,
    MOVED,
    OVER,
    QUERIES,
    ROWS,
    TYPED,
    select,
)

# What is compared is what a pipeline computes: Spark compiles it.
pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture(scope="module")
def location(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("duck") / "rows")
    spark.sql(TYPED.format(ROWS)).coalesce(1).write.format("delta").save(found)
    spark.read.format("delta").load(found).createOrReplaceTempView("edges")
    return found


@pytest.fixture
def duck(location: str, tmp_path: Path) -> Iterator[Duck]:
    with Duck(memory="1 GiB", spill=tmp_path) as found:
        assert found.content("edges", location)
        yield found


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_duckdb_gives_what_spark_gives(spark: SparkSession, duck: Duck, number: int) -> None:
    expressions, rest = QUERIES[number]
    sql = select(expressions, rest)
    frame = spark.sql(sql)
    found = translated(parse(sql), duck.known)
    types = dict(frame.dtypes)
    wrong = [
        (expressions[at], str(kind), types[name])
        for at, (name, kind) in enumerate(found.columns.items())
        if str(kind) != types[name]
    ]
    assert not wrong
    theirs, ours = frame.toArrow(), duck.fetch(found.sql)
    for at, one in enumerate(expressions):
        left = sorted(map(repr, theirs.column(at).cast(ours.column(at).type).to_pylist()))
        assert sorted(map(repr, ours.column(at).to_pylist())) == left, one


@pytest.mark.parametrize("expression", FAILING)
def test_expressions_that_fail_in_spark_fail_in_duckdb(
    spark: SparkSession, duck: Duck, expression: str
) -> None:
    sql = f"SELECT {expression} AS v FROM edges"
    with pytest.raises(Exception, match=r"OVERFLOW|OUT_OF_RANGE|BY_ZERO|USER_RAISED"):
        spark.sql(sql).collect()
    with pytest.raises(DuckError):
        duck.fetch(translated(parse(sql), duck.known).sql)


def test_every_kind_of_node_on_the_list_is_met_here(duck: Duck) -> None:
    met = set()
    for one in (*EXPRESSIONS, *MOVED, *AGGREGATES, *OVER):
        met |= {type(node) for node in parse(f"SELECT {one} AS v FROM edges AS e").walk()}
    shapes = (
        """SELECT * FROM (SELECT DISTINCT i FROM edges) AS t JOIN edges AS e ON t.i = e.i
        WHERE e.i <> 1 AND e.i <= 3 GROUP BY e.i HAVING COUNT(*) > 0 ORDER BY i LIMIT 1""",
        "SELECT i FROM edges UNION ALL SELECT i FROM edges WHERE NOT i <=> NULL",
    )
    met |= {type(node) for node in each_copy(parse("i")).walk()}
    for text in shapes:
        met |= {type(node) for node in parse(text).walk()}
    assert {one.__name__ for one in CLOSED_LIST} - {one.__name__ for one in met} == set()
