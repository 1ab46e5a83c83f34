"""Silver's rows against rows of the source database, as multisets."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import psycopg
import pytest
from pyspark.sql import SparkSession

from spark_jobs.silver.check.source_database import SourceDifference, Unfit, compare_with_source
from tests.servers import Postgres
from tests.spark.silver.world import CHANGES, ORDERS, columns

Rows = list[tuple[Any, ...]]
SHOP = CHANGES.model_copy(update={"table": "public.orders"})
TYPES = "order_id BIGINT, status TEXT, amount NUMERIC"
SOURCE: Rows = [(1, "placed", "1.50"), (2, "hidden", "2.00"), (3, "paid", None), (3, "paid", None)]
SAME: Rows = [(1, "placed", "3.00"), (3, "paid", None), (3, "paid", None)]


def compared(spark: SparkSession, server: Postgres, source: Rows, silver: Rows) -> SourceDifference:
    server.fill("public.orders", TYPES, source)
    frame = spark.createDataFrame(silver, "order_id bigint, status string, twice string")
    typed = frame.withColumn("twice", frame.twice.cast("decimal(13,2)"))
    return compare_with_source(spark, typed, SHOP, ORDERS, dsn=server.dsn, max_bytes=1000)


@pytest.mark.parametrize(
    ("silver", "missing", "unexpected"),
    [
        pytest.param(SAME, 0, 0, id="equal"),
        pytest.param(SAME[:2], 1, 0, id="a repeated row once"),
        pytest.param([*SAME, SAME[0]], 0, 1, id="a row too often"),
        pytest.param([*SAME[1:], (1, "placed", "3.01")], 1, 1, id="another value"),
        pytest.param([], 3, 0, id="empty"),
    ],
)
def test_rows_as_multisets(
    spark: SparkSession, postgres: Postgres, silver: Rows, missing: int, unexpected: int
) -> None:
    found = compared(spark, postgres, SOURCE, silver)
    assert (found.source_rows, found.missing, found.unexpected) == (4, missing, unexpected)
    assert len(found.examples) == min(missing, 2) + unexpected
    assert found.equal == (not missing and not unexpected)


def test_an_empty_table_is_compared_too(spark: SparkSession, postgres: Postgres) -> None:
    assert compared(spark, postgres, [], []) == SourceDifference(0, 0, 0)
    assert compared(spark, postgres, [], SAME).unexpected == len(SAME)


def test_a_value_that_silver_rejects_hides_no_other_difference(
    spark: SparkSession, postgres: Postgres
) -> None:
    # Of 4 and 5, silver keeps what it had; 6 is wrong there.
    source = [*SOURCE, (4, "paid", "NaN"), (5, "paid", "-Infinity"), (6, "paid", "6")]
    silver = [*SAME, (4, "placed", "8.00"), (6, "paid", "13.00")]
    found = compared(spark, postgres, source, silver)
    assert found.unfit == (Unfit("TYPE_MISMATCH", "amount", 2, {"order_id": 4}),)
    assert (found.missing, found.unexpected) == (1, 1)
    assert {row["order_id"] for _, row in found.examples} == {6}
    assert not found.equal


def test_columns_that_the_connector_omits_are_reported(
    spark: SparkSession, postgres: Postgres
) -> None:
    postgres.fill(
        "public.orders", "order_id BIGINT, status TEXT, amount TSQUERY", [(1, "paid", "a & b")]
    )
    silver = spark.createDataFrame(
        [(1, "paid", None)], "order_id bigint, status string, twice decimal(13,2)"
    )
    found = compare_with_source(spark, silver, SHOP, ORDERS, dsn=postgres.dsn, max_bytes=1000)
    assert found == SourceDifference(1, 0, 0, unread=(("amount", "tsquery"),))
    assert not found.equal


@pytest.mark.parametrize("kind", ["BIGINT", "TEXT", "UUID"])
def test_of_a_large_table_each_range_of_keys_is_compared_alone(
    spark: SparkSession, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The samples of all ranges have each row once, and find each difference once."""
    names = [str(UUID(int=one) if kind == "UUID" else one - 20) for one in range(100)]
    keys = [int(name) for name in names] if kind == "BIGINT" else names
    declared = "bigint" if kind == "BIGINT" else "string"
    source = SHOP.model_copy(
        update={"columns": columns(order_id=declared, status="string", amount="decimal(12,2)")}
    )
    entry = ORDERS.model_copy(
        update={
            "columns": columns(order_id=declared, status="string", twice="decimal(13,2)"),
        }
    )
    types = f"order_id {kind} PRIMARY KEY, status TEXT, amount NUMERIC"
    postgres.fill("public.orders", types, [(key, "paid", "1.00") for key in names])
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("ANALYZE public.orders")
    # One row is missing, and one is there that the source does not have.
    extra = 1000 if kind == "BIGINT" else str(UUID(int=1000))
    frame = spark.createDataFrame(
        [(key, "paid", "2.00") for key in [*keys[1:], extra]],
        f"order_id {declared}, status string, twice string",
    )
    silver = frame.withColumn("twice", frame.twice.cast("decimal(13,2)"))
    numbers = iter(range(4))
    monkeypatch.setattr(random.SystemRandom, "randrange", lambda *_: next(numbers))
    server = {"dsn": postgres.dsn, "max_bytes": 1000, "most_rows": 25}
    found = [compare_with_source(spark, silver, source, entry, **server) for _ in range(4)]
    assert [one.sample and (one.sample.number, one.sample.ranges) for one in found] == [
        (number, 4) for number in range(4)
    ]
    assert sum(one.source_rows for one in found) == 100
    assert min(one.source_rows for one in found) > 10
    assert sum(one.missing for one in found) == 1
    assert sum(one.unexpected for one in found) == 1


def test_a_table_whose_keys_have_other_texts_is_compared_in_full(
    spark: SparkSession, postgres: Postgres
) -> None:
    postgres.fill("public.orders", "order_id NUMERIC, status TEXT, amount NUMERIC", SOURCE * 20)
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("ANALYZE public.orders")
    frame = spark.createDataFrame(SAME * 20, "order_id bigint, status string, twice string")
    silver = frame.withColumn("twice", frame.twice.cast("decimal(13,2)"))
    found = compare_with_source(
        spark, silver, SHOP, ORDERS, dsn=postgres.dsn, max_bytes=1000, most_rows=10
    )
    assert (found.source_rows, found.sample, found.equal) == (80, None, True)
