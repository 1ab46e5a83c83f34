"""Expectations that are checked without Great Expectations: only definite answers."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.quality.here import NotCertainError, audit_here
from spark_jobs.quality.verdict import Outcome
from tests.unit.quality.expectations_here import CASES, ROWS


def suite(kind: str, severity: str = "critical", **kwargs: Any) -> dict[str, Any]:
    entry = {"type": f"expect_{kind}", "kwargs": kwargs, "severity": severity}
    return {"name": "shop", "expectations": [entry]}


@pytest.mark.parametrize(("kind", "kwargs", "holds"), CASES)
def test_an_expectation_holds_fails_or_is_left_to_the_gate(
    kind: str, kwargs: dict[str, Any], holds: bool | None
):
    if holds is None:
        with pytest.raises(NotCertainError):
            audit_here(ROWS, suite(kind, "info", **kwargs), table="gold.shop")
        return
    verdict = audit_here(ROWS, suite(kind, "info", **kwargs), table="gold.shop")
    assert [one.success for one in verdict.results] == [holds]


@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [
        ("column_values_to_not_be_null", {"column": 1}),
        ("column_values_to_not_be_null", {"column": None}),
        ("compound_columns_to_be_unique", {"column_list": "name"}),
        ("column_values_to_be_between", {"column": "price", "min_value": float("nan")}),
    ],
)
def test_arguments_that_make_no_sense_are_left_to_the_gate(kind: str, kwargs: dict[str, Any]):
    rows = pa.table({"name": ["a"], "price": pa.array([Decimal(1)], pa.decimal128(5, 2))})
    with pytest.raises(NotCertainError):
        audit_here(rows, suite(kind, "info", **kwargs), table="gold.shop")


def test_a_failure_that_blocks_is_left_to_the_gate():
    null = {"column": "name"}
    with pytest.raises(NotCertainError) as caught:
        audit_here(ROWS, suite("column_values_to_not_be_null", **null), table="gold.shop")
    assert caught.value.type == "expect_column_values_to_not_be_null"
    warned = suite("column_values_to_not_be_null", "warning", **null)
    assert audit_here(ROWS, warned, table="gold.shop").outcome is Outcome.WARNED


def test_a_table_without_a_suite_passes():
    rows = pa.table({"day": [date(2026, 1, 1)]})
    assert audit_here(rows, None, table="gold.shop").outcome is Outcome.PASSED
