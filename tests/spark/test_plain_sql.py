"""What Spark runs of a text is what was written: the same tokens, and the same plan."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.tpch.project import NAMES, text_of
from spark_jobs.graph.manifest import Manifest
from spark_jobs.graph.parsing import SqlText, plain_sql
from tests.properties.grammar import Grammar
from tests.spark.readings import readings
from tests.spark.test_sql_on_spark import SELECTS
from tests.tpch.tpch_project import SCALE

SPELLINGS = {
    "escapes": r"""SELECT '\%' AS a, '\d' AS b, r'\d' AS c, '\u0041\101\0' AS d, 'a''b' AS e,
        'a' 'b' AS f, "x""y" AS g, `a``b` FROM VALUES (1) AS t (`a``b`) -- '""",
    "numbers": "SELECT 1L, 2S, 3Y, 1.5BD, 1e3, 1e3D, 1e-3, .5, 5. /* ' */, x'1F', X'00'",
    "names": "SELECT count(*), nvl(1, 2), 1 + 1, CAST('a' AS CHAR(3)), percentile_cont(0.5)"
    " WITHIN GROUP (ORDER BY id) FROM range(3) -- names of columns",
    "hints": "SELECT /*+ COALESCE(1) */ id FROM range(3)",
    "samples": "SELECT id FROM (SELECT id FROM range(100)) TABLESAMPLE (10 PERCENT) REPEATABLE (3)",
    "pipes": "FROM range(3) -- comment\r\n|> WHERE id > 1 |> SELECT id + 1 AS next",
    "lines": "SELECT\r\n  1 AS a, -- one\r\n\t2 AS b, /* two\n*/ 'line\nline' AS c",
}


def texts(shipped: Manifest) -> Iterator[str]:
    for layer in (shipped.silver, shipped.gold):
        yield from (entry.sql for entry in layer.values())
    yield from SELECTS.values()
    yield from SPELLINGS.values()
    yield from (text_of(name, scale=SCALE) for name in NAMES)
    grammar = Grammar(random.Random(7))
    yield from (grammar.query() for _ in range(300))


def plan(spark: SparkSession, sql: str) -> str:
    session: Any = spark._jsparkSession  # type: ignore[attr-defined]
    parsed = session.sessionState().sqlParser().parsePlan(sql)
    return re.sub(r"#\d+", "#", parsed.treeString())


def test_every_query_keeps_its_tokens_and_its_plan(spark: SparkSession, shipped: Manifest) -> None:
    written = list(texts(shipped))
    plain = [plain_sql(SqlText("query", one)) for one in written]
    reader = readings(spark)
    assert reader.lexemes(plain) == reader.lexemes(written)
    for before, after in zip(written, plain, strict=True):
        assert not re.search("-- |/[*]", after)
        if "/*+" not in before and after != before:
            assert plan(spark, after) == plan(spark, before), before


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_that_a_renderer_changes_are_kept(spark: SparkSession, name: str) -> None:
    written = SPELLINGS[name]
    plain = spark.sql(plain_sql(SqlText("query", written)))
    before = spark.sql(written)
    assert plain.schema == before.schema
    assert plain.collect() == before.collect()
