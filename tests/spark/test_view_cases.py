"""Every gold view of the project, by its case files: given rows, changes, and rows to be there."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from spark_jobs.cli.cases import Ended, tell
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.testing.case_files import case_files, read_case, view_of
from spark_jobs.testing.run import FEW_ROWS, prepared

CASES = case_files(REPOSITORY)


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return compile_project(REPOSITORY)


@pytest.fixture(scope="module")
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, set for few rows while this module runs."""
    before = {key: spark.conf.get(key) for key in FEW_ROWS}
    for key, value in FEW_ROWS.items():
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        spark.conf.set(key, value)


def test_every_view_has_a_case(manifest: Manifest) -> None:
    assert {view_of(file) for file in CASES} == set(manifest.gold)


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_case(quick: SparkSession, manifest: Manifest, tmp_path: Path, file: Path) -> None:
    case = read_case(file, manifest)
    settings = load_settings(REPOSITORY, state_dir=tmp_path, lake_root="", control_db="")
    with prepared(case, manifest=manifest, settings=settings, session=lambda: quick) as run:
        result = run.run()

    assert [(one.step, one.missing, one.unexpected) for one in result.steps] == [
        (step, (), ()) for step in ["given", *(one.step for one in case.content.when)]
    ]
    assert result.verification.holds, result.verification
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


def test_what_differs_is_told(quick: SparkSession, manifest: Manifest, tmp_path: Path) -> None:
    file = tmp_path / "orders_by_status.yml"
    file.write_text(WRONG, encoding="utf-8")
    settings = load_settings(REPOSITORY, state_dir=tmp_path / "state", lake_root="", control_db="")
    case = read_case(file, manifest)
    with prepared(case, manifest=manifest, settings=settings, session=lambda: quick) as run:
        result = run.run()

    [step] = result.steps
    assert step.missing == ({"status": "placed", "orders": 2},)
    assert step.unexpected == ({"status": "placed", "orders": 1},)
    assert not result.holds
    text = io.StringIO()
    tell(Console(file=text, width=80), Ended(file.stem, result))
    assert [line.split() for line in text.getvalue().splitlines() if "placed" in line] == [
        ["│", "-", "│", "placed", "│", "2", "│"],
        ["│", "+", "│", "placed", "│", "1", "│"],
    ]
