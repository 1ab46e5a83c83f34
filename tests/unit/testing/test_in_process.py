"""Case files on DuckDB, without a JVM, and what is left to Spark."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spark_jobs.cli.cases import print_case
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.sections import Engine
from spark_jobs.settings import REPOSITORY, Settings, load_settings
from spark_jobs.testing import recompute
from spark_jobs.testing.case_files import Case, case_files, read_case
from spark_jobs.testing.ended import Ended, run_case
from spark_jobs.testing.run import CaseResult, prepared
from tests.shipped import ON_SPARK, shipped_project

WRONG = """\
description: Two orders are expected where there is one.
given:
  silver.orders: |
    order_id | status
    11       | placed
then: |
  status | orders
  placed | 2
"""


class AskedForSparkError(Exception):
    """A session was requested."""


def no_session() -> Any:
    raise AskedForSparkError


@pytest.fixture(scope="module")
def shipped() -> Manifest:
    return shipped_project()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(REPOSITORY, state_dir=tmp_path, lake_root="", control_db="")


def outcome(case: Case, shipped: Manifest, settings: Settings) -> CaseResult | str:
    """How a case ended on DuckDB, or why it did not run there."""
    try:
        with prepared(case, manifest=shipped, settings=settings, session=None) as run:
            return run.run()
    except NotTranslatedError as reason:
        return reason.what


@pytest.mark.parametrize("file", case_files(REPOSITORY), ids=lambda file: file.stem)
def test_each_case_passes_or_is_left_to_spark(shipped: Manifest, settings: Settings, file: Path):
    case = read_case(file, shipped)
    found = outcome(case, shipped, settings)
    if isinstance(found, str):
        assert ON_SPARK[file.stem] in found
        return
    assert file.stem not in ON_SPARK
    assert found.passed
    # Nothing was computed in full but the first time.
    assert [one.reason for one in found.steps] == [
        ReasonCode.FIRST_BUILD,
        *[ReasonCode.INPUT_CHANGED_RULE] * len(case.content.when),
    ]


def by_status(shipped: Manifest) -> Case:
    """The case of a view that DuckDB computes."""
    [file] = [one for one in case_files(REPOSITORY) if one.stem == "orders_by_status"]
    return read_case(file, shipped)


def test_types_that_differ_are_left_to_spark(shipped: Manifest, settings: Settings):
    entry = shipped.gold["orders_by_status"]
    status, orders = entry.columns
    columns = (status, orders.model_copy(update={"type": "int"}))
    gold = {**shipped.gold, entry.name: entry.model_copy(update={"columns": columns})}
    other = shipped.model_copy(update={"gold": gold})
    assert outcome(by_status(shipped), other, settings) == "the type of column orders"


def test_rows_that_a_recompute_lacks_are_left_to_spark(
    shipped: Manifest, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recompute, "difference", lambda *_: (({"orders": 1},), ()))
    found = outcome(by_status(shipped), shipped, settings)
    assert found == "rows that a recompute does not have"


def ended(
    shipped: Manifest, settings: Settings, text: str, *, name: str = "orders_by_status"
) -> Ended:
    """Run a case of the shipped project; requesting a session is an error."""
    file = settings.state / f"{name}.yml"
    file.write_text(text, encoding="utf-8")
    return run_case(
        read_case(file, shipped),
        manifest=shipped,
        settings=settings,
        session=no_session,
        engine=Engine.AUTO,
    )


def test_a_difference_is_shown_with_the_engine(shipped: Manifest, settings: Settings):
    found = ended(shipped, settings, WRONG)

    text = io.StringIO()
    print_case(Console(file=text, width=80), found)
    lines = text.getvalue().splitlines()
    assert lines[0] == "failed orders_by_status, 1 step, by DuckDB"
    assert [line.split() for line in lines if "placed" in line] == [
        ["│", "-", "│", "placed", "│", "2", "│"],
        ["│", "+", "│", "placed", "│", "1", "│"],
    ]
    assert found.as_dict()["engine"] == "duckdb"
    assert found.as_dict()["spark_because"] is None


def test_a_mistake_in_a_case_needs_no_spark(shipped: Manifest, settings: Settings):
    found = ended(shipped, settings, WRONG.replace("11  ", "x   "))
    assert found.error is not None
    assert (found.error.condition, found.engine) == ("CASE_TABLE", "duckdb")


BLOCKED = """\
description: The view's gate refuses a negative revenue.
given:
  gold.active_orders: |
    order_id | user_id | amount
    11       | 1       | -1.00
then: |
  user_id | total_revenue
  1       | -1.00
"""


def test_a_blocked_case_is_left_to_spark(shipped: Manifest, settings: Settings):
    with pytest.raises(AskedForSparkError):
        ended(shipped, settings, BLOCKED, name="user_revenue")


def test_spark_runs_what_duckdb_cannot(shipped: Manifest, settings: Settings):
    [file] = [one for one in case_files(REPOSITORY) if one.stem == "user_sessions"]
    with pytest.raises(AskedForSparkError):
        ended(shipped, settings, file.read_text("utf-8"), name=file.stem)


def test_spark_runs_all_where_it_is_chosen(shipped: Manifest, settings: Settings):
    file = settings.state / "orders_by_status.yml"
    file.write_text(WRONG, encoding="utf-8")
    case = read_case(file, shipped)
    with pytest.raises(AskedForSparkError):
        run_case(
            case,
            manifest=shipped,
            settings=settings,
            session=no_session,
            engine=Engine.SPARK,
        )
