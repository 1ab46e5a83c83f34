"""Suites of silver tables: what can judge a batch, and what would stop its stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.definitions.batch_rules import RULES
from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.models import SilverHeader
from spark_jobs.definitions.project import Definitions, SilverDefinition
from spark_jobs.definitions.suite_errors import ExpectationValueError, QuarantineWholeBatchError
from spark_jobs.definitions.suites import expectation_types, read_suite
from spark_jobs.definitions.vocabulary import OnFailure
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry
from spark_jobs.graph.scd2 import HISTORY_COLUMNS
from spark_jobs.graph.silver_suites import check_silver_suites
from spark_jobs.names import Layer, TableName

TABLE = TableName(Layer.SILVER, "t")
TYPES = {
    "n": "bigint",
    "m": "decimal(12,2)",
    "s": "string",
    "d": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "flag": "boolean",
    "raw": "binary",
    "tags": "array<string>",
    "odd": "",
}
NOT_NULL = "expect_column_values_to_not_be_null"
IN_SET = "expect_column_values_to_be_in_set"
BETWEEN = "expect_column_values_to_be_between"
LENGTHS = "expect_column_value_lengths_to_be_between"
LENGTH = "expect_column_value_lengths_to_equal"
REGEX = "expect_column_values_to_match_regex"
REGEXES = "expect_column_values_to_match_regex_list"
GREATER = "expect_column_pair_values_a_to_be_greater_than_b"
EQUAL = "expect_column_pair_values_to_be_equal"
UNIQUE = "expect_column_values_to_be_unique"
TOGETHER = "expect_compound_columns_to_be_unique"
ROWS = "expect_table_row_count_to_be_between"


def checked(
    kind: str, kwargs: dict[str, Any], *, policy: OnFailure = OnFailure.WARN, **more: Any
) -> list[LakehouseError]:
    """The problems of a suite with one expectation."""
    entry = {"type": kind, "kwargs": kwargs, **more}
    text = json.dumps({"name": "t", "expectations": [entry]})
    suite, problems = read_suite(text, "expectations/silver/t.json", TABLE)
    assert suite is not None
    assert not problems
    header = SilverHeader(on_failure=policy)
    places = Places("sql/silver/t.sql", 1, {}, {})
    definition = SilverDefinition("t", "sql/silver/t.sql", header, places, "", "")
    table = SilverEntry(
        name="t",
        source="t",
        sql="",
        projection="",
        columns=(*(Column(name=name, type=kind) for name, kind in TYPES.items()), *HISTORY_COLUMNS),
        apply=ApplyMode.HISTORY,
        on_failure=policy,
        suite=suite.content,
        file="sql/silver/t.sql",
        fingerprint="",
    )
    definitions = Definitions(Path(), silver={"t": definition}, suites={TABLE: suite})
    return list(check_silver_suites(definitions, {"t": table}))


@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [
        (NOT_NULL, {"column": "odd"}),
        (NOT_NULL, {"column": "tags", "mostly": 0.5}),
        (IN_SET, {"column": "n", "value_set": [1, 2.5]}),
        (IN_SET, {"column": "flag", "value_set": [True]}),
        (IN_SET, {"column": "d", "value_set": ["2026-02-28"]}),
        (BETWEEN, {"column": "m", "min_value": 0, "strict_min": True}),
        (BETWEEN, {"column": "at", "min_value": "2026-01-31T10:00:00Z"}),
        (BETWEEN, {"column": "local", "max_value": "2026-01-31 10:00"}),
        (LENGTHS, {"column": "raw", "max_value": 4}),
        (LENGTH, {"column": "s", "value": 2}),
        (REGEX, {"column": "s", "regex": r"^(?<a>\p{L}+)$"}),
        (REGEXES, {"column": "s", "regex_list": ["a", "b"], "match_on": "all"}),
        (GREATER, {"column_A": "m", "column_B": "n", "or_equal": True}),
        (EQUAL, {"column_A": "flag", "column_B": "flag", "ignore_row_if": "neither"}),
        (UNIQUE, {"column": "s"}),
        (TOGETHER, {"column_list": ["n", "d"]}),
        (ROWS, {"max_value": 100}),
        ("expect_table_row_count_to_equal", {"value": 3}),
    ],
)
def test_supported_expectations_are_accepted(kind: str, kwargs: dict[str, Any]) -> None:
    assert checked(kind, kwargs) == []


@pytest.mark.parametrize(
    ("kind", "kwargs", "argument"),
    [
        (NOT_NULL, {"column": "n", "mostly": 2}, "mostly"),
        (NOT_NULL, {"column": "n", "mostly": "0.5"}, "mostly"),
        (IN_SET, {"column": "n", "value_set": []}, "value_set"),
        (IN_SET, {"column": "n", "value_set": [1, None]}, "value_set"),
        (IN_SET, {"column": "n", "value_set": ["1"]}, "value_set"),
        (IN_SET, {"column": "n", "value_set": [2**63]}, "value_set"),
        (IN_SET, {"column": "n", "value_set": {"$PARAMETER": "p"}}, "value_set"),
        (IN_SET, {"column": "tags", "value_set": ["a"]}, "column"),
        (IN_SET, {"column": "odd", "value_set": ["a"]}, "column"),
        (BETWEEN, {"column": "n"}, "min_value"),
        (BETWEEN, {"column": "n", "min_value": 2, "max_value": 1.5}, "min_value"),
        (BETWEEN, {"column": "n", "min_value": True}, "min_value"),
        (BETWEEN, {"column": "n", "min_value": float("nan")}, "min_value"),
        (BETWEEN, {"column": "n", "min_value": 0, "strict_min": "yes"}, "strict_min"),
        (BETWEEN, {"column": "flag", "min_value": True}, "column"),
        (BETWEEN, {"column": "s", "min_value": "a"}, "column"),
        (BETWEEN, {"column": "d", "max_value": "2026-02-30"}, "max_value"),
        (
            BETWEEN,
            {"column": "d", "min_value": "2026-02-02", "max_value": "2026-02-01"},
            "min_value",
        ),
        (
            BETWEEN,
            {"column": "at", "min_value": "2026-01-31", "max_value": "2026-02-01 00:00Z"},
            "min_value",
        ),
        (BETWEEN, {"column": "at", "max_value": "20260131"}, "max_value"),
        (BETWEEN, {"column": "local", "max_value": "2026-01-31 10:00:00Z"}, "max_value"),
        (LENGTHS, {"column": "n", "max_value": 4}, "column"),
        (LENGTHS, {"column": "s", "max_value": 4.5}, "max_value"),
        (LENGTH, {"column": "s", "value": "two"}, "value"),
        (REGEX, {"column": "s", "regex": "(a"}, "regex"),
        (REGEX, {"column": "s", "regex": "(?P<a>b)"}, "regex"),
        (REGEX, {"column": "s"}, "regex"),
        (REGEX, {"column": "n", "regex": "1"}, "column"),
        (REGEXES, {"column": "s", "regex_list": []}, "regex_list"),
        (REGEXES, {"column": "s", "regex_list": ["a"], "match_on": "some"}, "match_on"),
        (GREATER, {"column_A": "n", "column_B": "s"}, "column_B"),
        (GREATER, {"column_A": "flag", "column_B": "flag"}, "column_B"),
        (EQUAL, {"column_A": "n", "column_B": "m", "ignore_row_if": "never"}, "ignore_row_if"),
        (EQUAL, {"column_A": "n", "column_B": "odd"}, "column_B"),
        (UNIQUE, {"column": "tags"}, "column"),
        (TOGETHER, {"column_list": ["n", "odd"]}, "column_list"),
        (ROWS, {}, "min_value"),
        (ROWS, {"min_value": "1", "max_value": 2}, "min_value"),
    ],
)
def test_unusable_arguments_of_expectations_are_refused(
    kind: str, kwargs: dict[str, Any], argument: str
) -> None:
    [problem] = checked(kind, kwargs)

    assert isinstance(problem, ExpectationValueError)
    assert problem.argument == argument
    assert problem.hint


@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [
        (UNIQUE, {"column": "s"}),
        (ROWS, {"min_value": 1}),
        (NOT_NULL, {"column": "s", "mostly": 0.9}),
    ],
)
def test_a_whole_batch_cannot_go_to_quarantine(kind: str, kwargs: dict[str, Any]) -> None:
    [problem] = checked(kind, kwargs, policy=OnFailure.QUARANTINE)

    assert isinstance(problem, QuarantineWholeBatchError)
    assert problem.hint is not None
    assert "sql/silver/t.sql" in problem.hint
    # It may warn there, and it may stop the table.
    assert checked(kind, kwargs, policy=OnFailure.QUARANTINE, severity="warning") == []
    assert checked(kind, kwargs, policy=OnFailure.HOLD) == []


def test_every_expectation_can_be_named_in_a_suite() -> None:
    assert [kind for kind in expectation_types() if not kind.isidentifier()] == []


def test_rules_and_arguments_are_those_of_great_expectations() -> None:
    known = expectation_types()

    for kind, served in RULES.items():
        assert set(served) <= set(known[kind]["arguments"])
        assert set(known[kind]["required"]) <= set(served)
