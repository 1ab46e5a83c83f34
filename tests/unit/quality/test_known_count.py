"""Expectations about the number of rows alone are judged without asking anybody for the rows."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from spark_jobs.quality.gate import audit
from spark_jobs.quality.implied import with_implied
from spark_jobs.quality.verdict import Outcome


def no_rows() -> DataFrame:
    raise AssertionError("somebody asked for the rows")


def suite(**bounds: int) -> dict[str, Any]:
    kind = "expect_table_row_count_to_be_between"
    return {"name": "volume", "expectations": [{"type": kind, "kwargs": bounds}]}


@pytest.mark.parametrize(
    ("bounds", "holds"),
    [
        ({"min_value": 3}, True),
        ({"min_value": 4}, False),
        ({"max_value": 3}, True),
        ({"max_value": 2}, False),
        ({"min_value": 1, "max_value": 9}, True),
        ({}, True),
    ],
)
def test_a_count_from_the_log_is_enough(bounds: dict[str, int], holds: bool) -> None:
    verdict = audit(no_rows, suite(**bounds), table="gold.x", rows=3)
    assert verdict.outcome is (Outcome.PASSED if holds else Outcome.BLOCKED)
    assert [one.observed for one in verdict.results] == [3]
    if not holds:
        assert "observed 3" in verdict.results[0].message


@pytest.mark.parametrize("bound", ["3", [3], True])
def test_bounds_that_are_no_numbers_are_left_to_the_gate(bound: Any) -> None:
    with pytest.raises(AssertionError, match="somebody asked for the rows"):
        audit(no_rows, suite(min_value=bound), table="gold.x", rows=3)


def test_so_it_is_for_what_history_implies() -> None:
    implied = with_implied(None, view="x", earlier_rows=[200] * 5)
    verdict = audit(no_rows, implied, table="gold.x", rows=99)
    assert [one.severity for one in verdict.failed] == ["warning"]


def test_other_expectations_need_the_rows() -> None:
    other = {"type": "expect_column_to_exist", "kwargs": {"column": "a"}}
    both = {"name": "both", "expectations": [*suite(min_value=1)["expectations"], other]}
    with pytest.raises(AssertionError, match="asked for the rows"):
        audit(no_rows, both, table="gold.x", rows=3)
