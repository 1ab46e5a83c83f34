"""Spark's analyzer about views that the compiler accepts, as the commands ask it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from spark_jobs.graph.compile import read_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.serving.sql.view_analysis import ACCEPTED, Ask, SparkRefusesViewError, analysis
from tests.shipped import shipped_project
from tests.unit.graph.mutants import HEADER, mutants, validated, views

MUTANTS = 30


def no_session() -> NoReturn:
    pytest.fail("Spark is asked again")


def refused_views(
    manifest: Manifest, session: Callable[[], SparkSession], *, state: Path
) -> tuple[SparkRefusesViewError, ...]:
    found = analysis(manifest, session, ask=Ask.ALWAYS, state=state)
    assert (found.left, found.failure) == (0, None)
    return found.refused


def orders_with(select: str, folder: Path) -> Manifest:
    """A project with one gold view over the shop's orders."""
    (folder / "sources").mkdir()
    (folder / "sql/gold").mkdir(parents=True)
    location = "format: delta\nlocation: /lake/orders\n"
    (folder / "sources/orders.yml").write_text(location)
    (folder / "sql/gold/broken.sql").write_text(HEADER + select + "\n")
    columns = {"order_id": "bigint", "day": "date", "placed at": "timestamp"}
    manifest, problems = read_project(folder, delta_schema=lambda _: columns)
    assert not problems
    return manifest


def test_spark_accepts_the_shipped_views_and_is_asked_once(spark: SparkSession, tmp_path: Path):
    manifest = shipped_project()
    assert refused_views(manifest, lambda: spark, state=tmp_path) == ()
    assert refused_views(manifest, no_session, state=tmp_path) == ()
    (tmp_path / ACCEPTED).write_text("no JSON")
    assert refused_views(manifest, lambda: spark, state=tmp_path) == ()


def test_a_view_that_only_spark_refuses_is_named_each_time(spark: SparkSession, tmp_path: Path):
    select = f"SELECT o.day, {'9' * 60} AS n, o.`placed at` AS at FROM bronze.orders AS o"
    manifest = orders_with(select, tmp_path)
    for _ in range(2):
        [found] = refused_views(manifest, lambda: spark, state=tmp_path)
        assert found.condition == "SPARK_REFUSES_VIEW"
        assert found.primary.startswith("gold.broken: Spark refuses the SQL: ")
        assert found.location is not None
        assert found.location.file == "sql/gold/broken.sql"


def test_types_that_only_spark_knows_are_those_of_the_query(spark: SparkSession, tmp_path: Path):
    select = "SELECT o.day, ROUND(AVG(o.order_id), 2) * 2 AS n FROM bronze.orders AS o GROUP BY ALL"
    orders_with(select, tmp_path)
    for name, made in {"right": "SUM(b.n)", "wrong": "EXPLODE(b.n)"}.items():
        reader = f"SELECT {made} AS m FROM gold.broken AS b"
        (tmp_path / f"sql/gold/{name}.sql").write_text(HEADER + reader + "\n")
    columns = {"order_id": "bigint", "day": "date"}
    manifest, _ = read_project(tmp_path, delta_schema=lambda _: columns)
    assert "" in [one.type for one in manifest.gold["broken"].columns]
    found = refused_views(manifest, lambda: spark, state=tmp_path)
    assert [one.view for one in found] == ["wrong"]


def test_whatever_the_compiler_accepts_gets_a_verdict(spark: SparkSession, tmp_path: Path):
    right, accepted, refused = views(), 0, 0
    for view, sql, _ in islice(mutants(right, 5), MUTANTS):
        if validated(tmp_path, view, sql, missing=set()):
            continue
        folder = tmp_path / view.name
        manifest, _ = read_project(folder, delta_schema=_columns_of(view.tables))
        found = refused_views(manifest, lambda: spark, state=folder)
        accepted, refused = accepted + (not found), refused + bool(found)
    assert accepted
    assert refused


def test_spark_is_asked_about_the_text_that_runs(spark: SparkSession, tmp_path: Path):
    """Names of windows have a case in Spark, and the compiler lowers it."""
    select = "SELECT o.day, MAX(o.order_id) OVER w AS m FROM bronze.orders AS o"
    manifest = orders_with(f"{select} WINDOW W AS (PARTITION BY o.day)", tmp_path)
    [found] = refused_views(manifest, lambda: spark, state=tmp_path)
    assert "w" in found.primary


def _columns_of(tables):
    return lambda location: tables[location.rpartition("/")[2]]
