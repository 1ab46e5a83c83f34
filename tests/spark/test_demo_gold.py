"""Every gold view of the demo on small silver tables: columns, types and rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.graph.sql import pin_tables
from spark_jobs.settings import REPOSITORY

SILVER = {
    "users": (
        "user_id, segment, tier, country",
        ["1, 'consumer', 'gold', 'DE'", "2, 'business', 'bronze', 'FR'"],
    ),
    "products": ("product_id, category", ["7, 'toys'", "8, 'books'"]),
    "orders": (
        "order_id, user_id, product_id, status, amount, created_at",
        [
            "11, 1, 7, 'completed', 10.50, TIMESTAMP'2026-03-01 23:59:59Z'",
            "12, 1, 8, 'completed', 4.50, TIMESTAMP'2026-03-01 00:00:00Z'",
            "13, 1, 8, 'cancelled', 99.00, TIMESTAMP'2026-03-01 12:00:00Z'",
            "14, 2, 7, 'placed', 20.00, TIMESTAMP'2026-03-02 00:00:00Z'",
            # Its user has not arrived yet.
            "15, 3, 7, 'completed', 1.00, TIMESTAMP'2026-03-02 08:00:00Z'",
        ],
    ),
    "titles": ("title_id", ["21"]),
    "view_events": (
        "user_id, title_id, watch_seconds, event_time",
        [
            "1, 21, 30, TIMESTAMP'2026-03-02 08:00:00Z'",
            "1, 21, 12, TIMESTAMP'2026-03-01 07:00:00Z'",
            # Its title was taken down.
            "1, 22, 500, TIMESTAMP'2026-03-01 07:00:00Z'",
        ],
    ),
}
TYPES = {
    "daily_order_summary": "order_date date, user_segment string, orders bigint, "
    "revenue decimal(12,2)",
    "enriched_orders": "order_id bigint, amount decimal(12,2), user_tier string, country string, "
    "product_category string, order_time timestamp",
    "user_order_stats": "user_id bigint, order_count bigint, total_spend decimal(12,2), "
    "last_order_time timestamp",
    "viewership_summary": "user_id bigint, title_id bigint, watch_seconds bigint, "
    "first_seen_at timestamp, last_seen_at timestamp",
}
ROWS = {
    "daily_order_summary": [
        ("2026-03-01", "consumer", "2", "15.00"),
        ("2026-03-02", "business", "1", "20.00"),
    ],
    "enriched_orders": [
        ("11", "10.50", "gold", "DE", "toys", "2026-03-01 23:59:59"),
        ("12", "4.50", "gold", "DE", "books", "2026-03-01 00:00:00"),
        ("13", "99.00", "gold", "DE", "books", "2026-03-01 12:00:00"),
        ("14", "20.00", "bronze", "FR", "toys", "2026-03-02 00:00:00"),
    ],
    "user_order_stats": [
        ("1", "2", "15.00", "2026-03-01 23:59:59"),
        ("3", "1", "1.00", "2026-03-02 08:00:00"),
    ],
    "viewership_summary": [("1", "21", "42", "2026-03-01 07:00:00", "2026-03-02 08:00:00")],
}


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return compile_project(REPOSITORY)


@pytest.fixture(scope="module")
def views(spark: SparkSession, manifest: Manifest) -> Iterator[dict[str, str]]:
    """Temporary views that stand for the silver tables, with the types of the manifest."""
    names = {}
    for table, (columns, rows) in SILVER.items():
        values = ", ".join(f"({row})" for row in rows)
        frame = spark.sql(f"SELECT * FROM VALUES {values} AS given({columns})")
        types = {column.name: column.type for column in manifest.silver[table].columns}
        typed = frame.selectExpr(*(f"CAST({c} AS {types[c]}) AS {c}" for c in frame.columns))
        typed.createOrReplaceTempView(f"given_{table}")
        names[f"silver.{table}"] = f"given_{table}"
    yield names
    for name in names.values():
        spark.catalog.dropTempView(name)


def result(spark: SparkSession, manifest: Manifest, views: dict[str, str], view: str) -> DataFrame:
    entry = manifest.gold[view]
    return spark.sql(pin_tables(entry.query, {name: views[name] for name in entry.inputs}))


def test_every_view_has_its_rows_here():
    files = {path.stem for path in Path(REPOSITORY, "sql/gold").glob("*.sql")}
    assert set(TYPES) == set(ROWS) == files


@pytest.mark.parametrize("view", sorted(TYPES))
def test_view(spark: SparkSession, manifest: Manifest, views: dict[str, str], view: str):
    frame = result(spark, manifest, views, view)
    assert ", ".join(f"{name} {kind}" for name, kind in frame.dtypes) == TYPES[view]
    # Times as the session's zone shows them, which is UTC on every machine.
    shown = frame.selectExpr(*(f"CAST({name} AS STRING)" for name in frame.columns))
    assert sorted(tuple(row) for row in shown.collect()) == ROWS[view]


@pytest.mark.parametrize("view", sorted(TYPES))
def test_the_manifest_knows_the_columns(manifest: Manifest, view: str):
    columns = ", ".join(f"{one.name} {one.type}" for one in manifest.gold[view].columns)
    assert columns == TYPES[view]
