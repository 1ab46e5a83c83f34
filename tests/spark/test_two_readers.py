"""Whatever the gate accepts holds, for Spark, no relation and no function that the gate missed."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from sqlglot import exp

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.functions import called_name
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.query import one_select, query_tables
from spark_jobs.graph.sql import pin_tables
from tests.spark.confusing_texts import TABLES, ConfusingTexts
from tests.spark.readings import readings

PINNED = {name: f"pinned.{name.partition('.')[2]}" for name in TABLES}


def accepted(texts: Iterator[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What would run for the texts that the gate accepts, and what the gate saw in them."""
    for text in texts:
        try:
            tables = query_tables(text, known=TABLES)
            yield pin_tables(text, PINNED), seen(text, tables)
        except LakehouseError:
            continue


def seen(text: str, tables: dict[str, bool]) -> frozenset[str]:
    tree = one_select(SqlText("query", text))
    found = {f"relation {PINNED[name]}" for name in tables}
    found |= {f"relation {cte.alias}" for cte in tree.find_all(exp.CTE)}
    return frozenset(found | {f"function {called_name(one)}" for one in tree.find_all(exp.Func)})


def compare(spark: SparkSession, *, count: int, seed: int) -> tuple[int, int]:
    """How many of some texts the gate accepted, and how many of these Spark reads as well."""
    source, reader = ConfusingTexts(random.Random(seed)), readings(spark)
    texts = (source.text() for _ in range(count))
    found = list(accepted(texts))
    read = 0
    for (text, gate), names in zip(found, reader.names([one for one, _ in found]), strict=True):
        if names == {"error"}:
            continue
        read += 1
        # The gate judges a function by its last name: nobody has one in a schema of his own.
        missed = {re.sub(r"^function .*\.", "function ", one.lower()) for one in names} - gate
        assert not missed, (seed, text, missed)
    return len(found), read


def test_both_readers_see_the_same(spark: SparkSession) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    passed, read = compare(spark, count=3000, seed=seed)
    assert read > 300, (passed, read)


@pytest.mark.long
def test_both_readers_see_the_same_in_many_texts(spark: SparkSession) -> None:
    seed, started = random.SystemRandom().randrange(2**32), time.monotonic()
    passed, read = compare(spark, count=100_000, seed=seed)
    print(f"seed {seed} accepted {passed} read {read} in {time.monotonic() - started:.0f} s")
    assert read > 9_000, (passed, read)


def test_the_comparison_finds_what_only_spark_sees(spark: SparkSession) -> None:
    text = "SELECT 1 AS a /* /*+ */ , java_method('java.lang.System', 'nanoTime') AS b -- */"
    [names] = readings(spark).names([text])
    assert names == {"function java_method"}
    assert list(accepted(iter([text]))) == []
