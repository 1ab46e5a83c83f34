from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.definitions.batch_rules import LENGTHS_BETWEEN
from spark_jobs.quality.here import NotCertainError, audit_here
from spark_jobs.quality.implied import NOT_NULL, ROW_COUNT, UNIQUE, UNIQUE_TOGETHER, with_implied

OWN = {"type": "expect_column_to_exist", "kwargs": {"column": "day"}}


def kinds(suite: dict[str, Any] | None) -> list[tuple[str, str]]:
    return [(one["type"], one.get("severity", "")) for one in (suite or {})["expectations"]]


def test_nothing_declared_implies_nothing() -> None:
    assert with_implied(None, view="v") is None
    assert with_implied({"name": "v", "expectations": [OWN]}, view="v") == {
        "name": "v",
        "expectations": [OWN],
    }


def test_a_grain_is_unique_and_a_null_in_it_is_reported() -> None:
    one = with_implied({"name": "own", "expectations": [OWN]}, view="v", grain=["day"])
    assert one is not None
    assert one["name"] == "own"
    assert kinds(one) == [(OWN["type"], ""), (UNIQUE, "critical"), (NOT_NULL, "warning")]

    two = with_implied(None, view="v", grain=["day", "country"])
    assert two is not None
    assert two["name"] == "v"
    assert kinds(two) == [(UNIQUE_TOGETHER, "critical"), *[(NOT_NULL, "warning")] * 2]
    assert two["expectations"][0]["kwargs"] == {"column_list": ["day", "country"]}


def test_an_empty_text_in_a_partition_column_blocks() -> None:
    suite = with_implied(None, view="v", text_parts=["country"])
    assert kinds(suite) == [(LENGTHS_BETWEEN, "critical")]
    # Only the gate may block.
    with pytest.raises(NotCertainError):
        audit_here(pa.table({"country": ["DE", ""]}), suite, table="gold.v")
    assert not audit_here(pa.table({"country": ["DE", None]}), suite, table="gold.v").failed


def test_explicit_values_of_a_suite_are_kept() -> None:
    written = [
        {"type": UNIQUE_TOGETHER, "kwargs": {"column_list": ["Country", "day"]}},
        {"type": NOT_NULL, "kwargs": {"column": "day"}, "severity": "info"},
    ]
    suite = with_implied({"name": "v", "expectations": written}, view="v", grain=["day", "country"])
    assert suite is not None
    assert suite["expectations"][:2] == written
    assert [one["kwargs"] for one in suite["expectations"][2:]] == [{"column": "country"}]


@pytest.mark.parametrize(
    ("earlier", "least"),
    [
        ((1000,) * 5, 500),
        ((1000, 1000, 1000, 1, 90_000), 500),
        ((1000,) * 4, None),
        ((99,) * 20, None),
        ((), None),
    ],
)
def test_fewer_rows_than_half_of_the_usual_are_reported(
    earlier: tuple[int, ...], least: int | None
) -> None:
    suite = with_implied(None, view="v", earlier_rows=earlier)
    if least is None:
        assert suite is None
        return
    assert kinds(suite) == [(ROW_COUNT, "warning")]
    assert suite is not None
    assert suite["expectations"][0]["kwargs"] == {"min_value": least}


def test_a_declared_row_count_replaces_the_implied_one() -> None:
    own = {"type": ROW_COUNT, "kwargs": {"min_value": 1}}
    suite = with_implied({"name": "v", "expectations": [own]}, view="v", earlier_rows=(1000,) * 9)
    assert suite is not None
    assert suite["expectations"] == [own]
