"""Every gold view of the project, by its case files: given rows, changes, and rows to be there."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from rich.console import Console

from spark_jobs.cli.cases import print_case
from spark_jobs.graph.manifest import Column, GoldEntry, Manifest
from spark_jobs.graph.type_agreement import AGREEMENTS
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.sections import Engine
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.storage.arrow_types import arrow_columns
from spark_jobs.storage.columns import struct_type
from spark_jobs.testing.case_files import case_files, read_case, view_of
from spark_jobs.testing.ended import run_case
from spark_jobs.testing.run import CaseRun, prepared
from tests.shipped import ON_SPARK
from tests.spark.readers import disagreements
from tests.spark.right import assert_right

CASES = case_files(REPOSITORY)
# `make test` runs those of DuckDB's views on DuckDB, and of these also here: with the views that
# only Spark computes, they have each operator with each rule.
SHORT = {*ON_SPARK, "account_audit", "customer_as_of_order", "enriched_orders", "trending_titles"}


def test_every_view_has_a_case(shipped: Manifest) -> None:
    assert {view_of(file) for file in CASES} == set(shipped.gold)


def rules(views: Iterable[GoldEntry]) -> set[tuple[str, str]]:
    """The kinds of operators in views, each with its rule."""
    plans = [view.maintenance for view in views if view.maintenance is not None]
    return {(one.operator.split()[0], one.rule) for plan in plans for one in plan.operators}


def test_every_rule_of_a_shipped_view_is_in_the_short_tier(shipped: Manifest) -> None:
    assert rules(shipped.gold[name] for name in SHORT) == rules(shipped.gold.values())


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(one, id=one.stem, marks=[] if one.stem in SHORT else [pytest.mark.long])
        for one in CASES
    ],
)
def test_case(
    spark: SparkSession,
    shipped: Manifest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: Path,
) -> None:
    def right(run: CaseRun) -> None:
        assert_right(run.refresher.context, run.case.view)

    monkeypatch.setattr(CaseRun, "verified", right)
    case = read_case(file, shipped)
    settings = load_settings(REPOSITORY, state_dir=tmp_path, lake_root="", control_db="")
    with prepared(case, manifest=shipped, settings=settings, session=lambda: spark) as run:
        result = run.run()
        others = disagreements(run.refresher.context.published_at(case.view))

    assert [(one.step, one.missing, one.unexpected) for one in result.steps] == [
        (step, (), ()) for step in ["given", *(one.step for one in case.content.when)]
    ]
    assert others == {}
    # Nothing was computed in full but the first time: each rule was really followed.
    assert [one.reason for one in result.steps] == [
        ReasonCode.FIRST_BUILD,
        *[ReasonCode.INPUT_CHANGED_RULE] * len(case.content.when),
    ]


WRONG = """\
description: Two orders are expected where there is one.
given:
  silver.orders: |
    order_id | status
    11       | placed
then: |
  status | orders
  placed | 2
when:
  - step: never reached
    then: |
      status | orders
"""


def test_differences_are_reported_alike_by_both_engines(
    spark: SparkSession, shipped: Manifest, tmp_path: Path
) -> None:
    file = tmp_path / "orders_by_status.yml"
    file.write_text(WRONG, encoding="utf-8")
    settings = load_settings(REPOSITORY, state_dir=tmp_path / "state", lake_root="", control_db="")
    case = read_case(file, shipped)
    printed = {}
    for engine in Engine:
        ended = run_case(
            case, manifest=shipped, settings=settings, session=lambda: spark, engine=engine
        )
        assert ended.result is not None
        [step] = ended.result.steps
        assert step.missing == ({"status": "placed", "orders": 2},)
        assert step.unexpected == ({"status": "placed", "orders": 1},)
        assert not ended.passed
        text = io.StringIO()
        print_case(Console(file=text, width=80), ended)
        printed[ended.engine] = text.getvalue().splitlines()

    assert [line.split() for line in printed["spark"] if "placed" in line] == [
        ["│", "-", "│", "placed", "│", "2", "│"],
        ["│", "+", "│", "placed", "│", "1", "│"],
    ]
    assert printed["duckdb"][1:] == printed["spark"][1:]
    heads = [lines[0] for lines in printed.values()]
    assert heads == [f"failed orders_by_status, 1 step, by {one}" for one in ("Spark", "DuckDB")]


def test_spark_runs_what_duckdb_cannot(
    spark: SparkSession, shipped: Manifest, tmp_path: Path
) -> None:
    [file] = [one for one in CASES if one.stem == "clicks_per_user_5m"]
    settings = load_settings(REPOSITORY, state_dir=tmp_path, lake_root="", control_db="")
    ended = run_case(
        read_case(file, shipped),
        manifest=shipped,
        settings=settings,
        session=lambda: spark,
        engine=Engine.AUTO,
    )
    assert (ended.passed, ended.engine) == (True, "spark")
    assert "window" in str(ended.because)


def test_inputs_have_the_types_that_spark_gives_them(spark: SparkSession) -> None:
    nested = "array<struct<a:decimal(5,2),b:map<string,array<timestamp_ntz>>>>"
    kinds = [*(one for one in AGREEMENTS if one != "decimal"), "decimal(12,2)", nested]
    columns = [Column(name=f"c{at}", type=kind) for at, kind in enumerate(kinds)]
    schema = struct_type(spark, columns)
    assert arrow_columns(columns) == to_arrow_schema(schema, timezone="UTC")
