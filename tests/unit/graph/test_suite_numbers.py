"""Numbers of a suite: JSON has no NaN and no infinity, and PostgreSQL cannot store them."""

from __future__ import annotations

import pytest

from spark_jobs.definitions.suites import read_suite
from spark_jobs.names import Layer, TableName

TABLE = TableName(Layer.GOLD, "t")
TEXT = """\
{"name": "t", "expectations": [{"type": "expect_column_values_to_be_between", "kwargs":
 {"column": "n", "max_value": NUMBER}}]}"""


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    suite, problems = read_suite(TEXT.replace("NUMBER", number), "expectations/gold/t.json", TABLE)
    assert suite is not None
    (problem,) = problems
    assert problem.condition == "EXPECTATION_VALUE"
    assert f"{float(number)} is no number" in problem.render()


def test_any_other_number_is_read() -> None:
    suite, problems = read_suite(TEXT.replace("NUMBER", "1e308"), "expectations/gold/t.json", TABLE)
    assert suite is not None
    assert problems == []
