"""The case files of silver tables run through the code of their streams, and can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.definitions.vocabulary import OnFailure
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import Layer
from spark_jobs.settings import REPOSITORY, Settings, load_settings
from spark_jobs.testing.case_files import case_files
from spark_jobs.testing.ended import Ended
from spark_jobs.testing.errors import CaseBatchError
from spark_jobs.testing.run import FEW_ROWS
from spark_jobs.testing.silver_case_files import read_silver_case
from spark_jobs.testing.silver_results import SilverCaseResult, SilverStepResult
from spark_jobs.testing.silver_run import run_silver_case

CASES = case_files(REPOSITORY, Layer.SILVER)


@pytest.fixture
def few(spark: SparkSession, tmp_path: Path) -> Iterator[Settings]:
    """Settings of an empty lake, and a session as the command has it."""
    before = {name: spark.conf.get(name) for name in FEW_ROWS}
    for name, value in FEW_ROWS.items():
        spark.conf.set(name, value)
    yield load_settings(REPOSITORY, state_dir=tmp_path / "state", lake_root="", control_db="")
    for name, value in before.items():
        spark.conf.set(name, str(value))


def run(file: Path, manifest: Manifest, settings: Settings, spark: SparkSession) -> Ended:
    case = read_silver_case(file, manifest)
    return run_silver_case(case, manifest=manifest, settings=settings, session=lambda: spark)


def steps(ended: Ended) -> tuple[SilverStepResult, ...]:
    assert isinstance(ended.result, SilverCaseResult), ended.error
    return ended.result.steps


def written(tmp_path: Path, text: str, name: str = "orders") -> Path:
    file = tmp_path / f"{name}.yml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_shipped_case_passes(
    spark: SparkSession, shipped: Manifest, few: Settings, file: Path
) -> None:
    ended = run(file, shipped, few, spark)
    found = [(one.missing, one.unexpected, one.records, one.refusal) for one in steps(ended)]
    assert found == [((), (), (), None)] * (1 + file.read_text("utf-8").count("- step:"))
    assert ended.passed
    assert ended.engine == "spark"


HEAD = "order_id | user_id | product_id | status | amount | created_at | updated_at"
WRONG = f"""\
description: The expectations are wrong.
records:
  - {{op: c, after: {{order_id: 1, user_id: 1, status: placed, amount: "2.50"}}}}
  - {{op: c, after: {{order_id: 2, user_id: 1, amount: lots}}}}
  - {{op: c, after: {{order_id: 3, user_id: 1, amount: lots}}, reason: OVERSIZED}}
  - {{op: u, position: 1, after: {{order_id: 1}}, disposition: applied}}
then: |
  {HEAD}
  1 | 1 | NULL | paid | 2.50 | NULL | NULL
when:
  - step: never reached
    records: []
    then: |
      {HEAD}
"""


def test_wrong_expectations_fail(
    spark: SparkSession, shipped: Manifest, few: Settings, tmp_path: Path
) -> None:
    [step] = steps(run(written(tmp_path, WRONG), shipped, few, spark))
    assert [row["status"] for row in step.missing] == ["paid"]
    assert [row["status"] for row in step.unexpected] == ["placed"]
    assert [(one.place, one.expected, one.found) for one in step.records] == [
        (f"tests/cases/silver/orders.yml:{line}:5", expected, found)
        for line, expected, found in (
            (4, "not quarantined", "quarantined TYPE_MISMATCH amount"),
            (5, "quarantined OVERSIZED", "quarantined TYPE_MISMATCH amount"),
            (6, "applied", "duplicate"),
        )
    ]
    assert not step.passed


NEGATIVE = f"""\
description: An order below zero.
records:
  - {{op: c, after: {{order_id: 1, user_id: 1, status: placed, amount: "2.50"}}}}
  - {{op: c, after: {{order_id: 2, user_id: 1, status: placed, amount: "-1.00"}}}}
then: |
  {HEAD}
  1 | 1 | NULL | placed | 2.50 | NULL | NULL
"""


def judging(manifest: Manifest, policy: OnFailure) -> Manifest:
    orders = manifest.silver["orders"].model_copy(update={"on_failure": policy})
    return manifest.model_copy(update={"silver": {**manifest.silver, "orders": orders}})


def test_the_suite_of_the_table_judges(
    spark: SparkSession, shipped: Manifest, few: Settings, tmp_path: Path
) -> None:
    told = NEGATIVE.replace('"-1.00"}}', '"-1.00"}, reason: EXPECTATION_FAILED}')
    rejected = written(tmp_path, told, "orders.rejected")
    assert run(rejected, judging(shipped, OnFailure.QUARANTINE), few, spark).passed
    kept = NEGATIVE.partition("  1 | 1")[0]
    held = written(tmp_path, f"refused: BATCH_HELD\n{kept}", "orders.held")
    assert run(held, judging(shipped, OnFailure.HOLD), few, spark).passed


def test_a_select_that_fails_is_told_with_its_step(
    spark: SparkSession, shipped: Manifest, few: Settings, tmp_path: Path
) -> None:
    orders = shipped.silver["orders"]
    failing = orders.projection.replace("s.user_id", "CAST(s.status AS BIGINT) AS user_id")
    silver = {**shipped.silver, "orders": orders.model_copy(update={"projection": failing})}
    manifest = shipped.model_copy(update={"silver": silver})
    error = run(written(tmp_path, NEGATIVE), manifest, few, spark).error
    assert isinstance(error, CaseBatchError)
    assert (error.location.line, error.file) == (2, "sql/silver/orders.sql")
    assert "CAST_INVALID_INPUT" in error.said
