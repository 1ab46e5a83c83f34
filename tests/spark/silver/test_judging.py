"""The expressions of a suite give what Great Expectations gives over the same rows."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.definitions.batch_rules import ROW_RULES, BatchRule
from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.quality.gate import _Gate, crash_of
from spark_jobs.quality.suite import DeclaredExpectation
from spark_jobs.silver.parse.judging import counts, fails

ROWS = """
    SELECT * FROM VALUES
      (1, CAST(1.10 AS DECIMAL(12, 2)), 0.1D, 'ab', DATE'2026-01-01',
       TIMESTAMP'2026-01-01 00:00:00', true, X'00FF', 2),
      (2, 0.00, DOUBLE('NaN'), 'ä-1', DATE'2026-01-02',
       TIMESTAMP'2026-01-02 12:00:00', false, X'', 2),
      (3, -5.55, -0.0D, '', DATE'1999-12-31',
       TIMESTAMP'1999-12-31 23:59:59.999999', NULL, NULL, NULL),
      (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
      (9, NULL, DOUBLE('-Infinity'), 'AB\\n', NULL, NULL, true, X'01', 1)
      AS t (n, m, x, s, d, at, flag, raw, o)
"""
VALUES = "expect_column_values_to_"
LENGTHS = "expect_column_value_lengths_to_"
PAIRS = "expect_column_pair_values_"
GREATER = PAIRS + "a_to_be_greater_than_b"


def each(kind: str, *kwargs: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(kind, one) for one in kwargs]


CASES: list[tuple[str, dict[str, Any]]] = [
    *each(VALUES + "not_be_null", {"column": "n"}, {"column": "m", "mostly": 0.6}),
    *each(VALUES + "be_null", {"column": "n"}, {"column": "flag", "mostly": 0.4}),
    *each(
        VALUES + "be_in_set",
        {"column": "n", "value_set": [1, 2.0]},
        {"column": "m", "value_set": [1.1, 0]},
        {"column": "x", "value_set": [0.1, 0]},
        {"column": "s", "value_set": ["ab", ""], "mostly": 0.5},
        {"column": "d", "value_set": ["2026-01-01"]},
        {"column": "at", "value_set": ["2026-01-02 12:00:00"]},
        {"column": "flag", "value_set": [True]},
    ),
    *each(
        VALUES + "not_be_in_set",
        {"column": "n", "value_set": [1]},
        {"column": "s", "value_set": ["x"]},
    ),
    *each(
        VALUES + "be_between",
        {"column": "n", "min_value": 2},
        {"column": "m", "min_value": 0, "strict_min": True},
        {"column": "m", "min_value": -5.55, "max_value": 1.1, "strict_max": True},
        {"column": "x", "min_value": 0},
        {"column": "x", "max_value": 1, "mostly": 0.5},
        {"column": "d", "min_value": "2000-01-01"},
        {"column": "at", "max_value": "2026-01-01 12:00:00", "min_value": "1999-12-31 23:59:59"},
        {"column": "at", "min_value": "2026-01-02T00:00:00Z"},
    ),
    *each(
        LENGTHS + "be_between",
        {"column": "s", "min_value": 1, "max_value": 2},
        {"column": "raw", "min_value": 0, "strict_min": True},
    ),
    *each(LENGTHS + "equal", {"column": "s", "value": 3}),
    *each(VALUES + "match_regex", {"column": "s", "regex": r"^\p{Ll}+$"}),
    *each(VALUES + "not_match_regex", {"column": "s", "regex": r"\d"}),
    *each(
        VALUES + "match_regex_list",
        {"column": "s", "regex_list": ["^a", r"\d$"]},
        {"column": "s", "regex_list": ["[a-z]", r"\d$"], "match_on": "all"},
    ),
    *each(VALUES + "not_match_regex_list", {"column": "s", "regex_list": ["^a", r"\d$"]}),
    *each(
        GREATER,
        {"column_A": "n", "column_B": "o"},
        {"column_A": "n", "column_B": "o", "or_equal": True, "mostly": 0.5},
        {"column_A": "m", "column_B": "x", "ignore_row_if": "either_value_is_missing"},
        {"column_A": "d", "column_B": "d", "ignore_row_if": "neither"},
    ),
    *each(
        PAIRS + "to_be_equal",
        {"column_A": "n", "column_B": "o"},
        {"column_A": "n", "column_B": "o", "ignore_row_if": "either_value_is_missing"},
        {"column_A": "n", "column_B": "o", "ignore_row_if": "neither", "mostly": 0.4},
    ),
]


def by_great_expectations(rows: DataFrame) -> list[tuple[bool, int, int]]:
    """For each case: whether it passed, failing rows, and rows that count."""
    declared = [
        DeclaredExpectation(at, kind, kwargs, Severity.CRITICAL)
        for at, (kind, kwargs) in enumerate(CASES)
    ]
    gate = _Gate(rows, "t", table="silver.t")
    found = gate._run(declared, {"result_format": "BASIC", "partial_unexpected_count": 0})
    results = []
    crashed = [(CASES[at], crash) for at, entry in found.items() if (crash := crash_of(entry))]
    assert crashed == []
    for at, (kind, _) in enumerate(CASES):
        entry = found[at]["result"]
        # About NULL itself every row counts, although it is called missing.
        missing = 0 if kind.endswith("be_null") else entry.get("missing_count", 0)
        counted = entry["element_count"] - missing
        results.append((found[at]["success"], entry["unexpected_count"], counted))
    return results


def by_expressions(rows: DataFrame) -> list[tuple[bool, int, int]]:
    rules = [
        BatchRule(at, kind, kwargs, Severity.CRITICAL) for at, (kind, kwargs) in enumerate(CASES)
    ]
    sums = [
        sf.sum(expression(rule, sf.col).cast("int"))
        for rule in rules
        for expression in (fails, counts)
    ]
    [row] = rows.agg(*sums).collect()
    return [
        (failed <= (1 - rule.mostly) * counted + 1e-9, failed, counted)
        for rule, failed, counted in zip(rules, row[::2], row[1::2], strict=True)
    ]


def test_expressions_agree_with_great_expectations(spark: SparkSession) -> None:
    assert {kind for kind, _ in CASES} == ROW_RULES.keys()
    rows = spark.sql(ROWS).coalesce(1).localCheckpoint()

    ours, theirs = by_expressions(rows), by_great_expectations(rows)

    different = [
        (case, here, there)
        for case, here, there in zip(CASES, ours, theirs, strict=True)
        if here != there
    ]
    assert different == []
    # The rows tell both outcomes of each rule apart.
    assert {kind for (kind, _), (passed, *_) in zip(CASES, ours, strict=True) if not passed} == {
        *ROW_RULES
    }
