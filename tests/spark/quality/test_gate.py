"""The gate on real Spark and the real Great Expectations."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.quality import suite as suite_module
from spark_jobs.quality.errors import GateCrashedError, SuiteRefusedError
from spark_jobs.quality.gate import audit
from spark_jobs.quality.implied import with_implied
from spark_jobs.quality.verdict import ExpectationResult, Outcome, Verdict
from spark_jobs.storage import reader
from tests.unit.quality.expectations_here import CASES, ROWS

TABLE = "gold.orders"


@pytest.fixture(scope="module")
def orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Four rows: amounts 10, 20, NULL and -5; the last two have no name and share an id."""
    location = str(tmp_path_factory.mktemp("gate") / "orders")
    spark.sql(
        """
        SELECT * FROM VALUES
          (1, CAST(10 AS DECIMAL(12, 2)), 'a', DATE'2024-01-01'),
          (2, 20, 'b', DATE'2024-01-02'),
          (3, NULL, NULL, DATE'2024-01-03'),
          (3, -5, NULL, DATE'2024-01-04') AS t (id, amount, name, day)
        """
    ).write.format("delta").save(location)
    return spark.read.format("delta").load(location)


def suite(*expectations: dict[str, Any]) -> dict[str, Any]:
    return {"name": "orders", "expectations": list(expectations)}


def expect(kind: str, *, severity: str | None = None, **kwargs: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": kind, "kwargs": kwargs}
    return entry if severity is None else {**entry, "severity": severity}


def not_null(column: str, *, severity: str | None = None) -> dict[str, Any]:
    return expect("expect_column_values_to_not_be_null", column=column, severity=severity)


def check(df: DataFrame, *expectations: dict[str, Any]) -> Verdict:
    return audit(lambda: df, suite(*expectations), table=TABLE)


def only(verdict: Verdict) -> ExpectationResult:
    (result,) = verdict.results
    return result


def test_a_passing_verdict_has_the_row_count(orders: DataFrame) -> None:
    verdict = check(orders, not_null("id"), expect("expect_column_to_exist", column="name"))
    assert verdict.outcome is Outcome.PASSED
    assert (verdict.rows, verdict.expectations, verdict.failed) == (4, 2, ())
    assert verdict.seconds > 0


@pytest.mark.parametrize(
    ("severity", "outcome"),
    [
        (None, Outcome.BLOCKED),
        ("critical", Outcome.BLOCKED),
        ("warning", Outcome.WARNED),
        ("info", Outcome.PASSED),
    ],
)
def test_severity_decides(orders: DataFrame, severity: str | None, outcome: Outcome) -> None:
    verdict = check(orders, not_null("name", severity=severity), not_null("id"))
    assert verdict.outcome is outcome
    (failed,) = verdict.failed
    assert (failed.column, failed.unexpected_count, failed.unexpected_percent) == ("name", 2, 50)
    assert failed.severity is Severity(severity or "critical")
    assert bool(verdict.blocking) == (outcome is Outcome.BLOCKED)


def test_null_is_neither_in_range_nor_out_of_it(orders: DataFrame) -> None:
    failed = only(
        check(
            orders,
            expect("expect_column_values_to_be_between", column="amount", min_value=0),
        )
    )
    assert (failed.success, failed.unexpected_count, failed.samples) == (False, 1, ("-5.00",))
    assert failed.message == (
        "expect_column_values_to_be_between of amount (min_value=0) failed: "
        "1 of 4 values do not fit"
    )


def test_rows_that_do_not_fit_are_named_by_their_grain(orders: DataFrame) -> None:
    by_query = expect(
        "unexpected_rows_expectation",
        unexpected_rows_query="SELECT id, day FROM {batch} WHERE amount < 0",
    )
    rules = suite(
        not_null("name"),
        expect("expect_compound_columns_to_be_unique", column_list=["id", "name"]),
        by_query,
        expect("expect_column_max_to_be_between", column="amount", max_value=1),
    )
    third, fourth = "(id=3 day=2024-01-03)", "(id=3 day=2024-01-04)"
    verdict = audit(lambda: orders, rules, table=TABLE, grain=["id", "day"])
    found = [set(one.keys) for one in verdict.results]
    assert found == [{third, fourth}, {third, fourth}, {fourth}, set()]
    # A grain with personal data names nobody.
    rules = suite(not_null("name"), by_query)
    hidden = audit(lambda: orders, rules, table=TABLE, grain=["id", "day"], personal={"id"})
    assert [(one.unexpected_count, one.keys) for one in hidden.results] == [(2, ()), (1, ())]


def test_each_kind_of_rule_reports_what_it_saw(orders: DataFrame) -> None:
    verdict = check(
        orders,
        expect("expect_column_values_to_be_unique", column="id"),
        expect("expect_compound_columns_to_be_unique", column_list=["id", "day"]),
        expect("expect_column_max_to_be_between", column="amount", max_value=1),
        expect("expect_table_row_count_to_be_between", min_value=1000),
        expect(
            "unexpected_rows_expectation",
            unexpected_rows_query="SELECT id, day FROM {batch} WHERE amount < 0",
        ),
        expect("expect_column_values_to_be_in_set", column="name", value_set=["a"]),
        expect(
            "expect_column_pair_values_a_to_be_greater_than_b", column_A="amount", column_B="id"
        ),
    )
    unique, compound, maximum, count, rows, members, pair = verdict.results
    assert [one.success for one in verdict.results] == [False, True, *[False] * 5]
    assert (unique.unexpected_count, unique.samples) == (2, ("3", "3"))
    assert compound.column == "id, day"
    assert float(str(maximum.observed)) == 20
    assert (count.observed, count.column) == (4, None)
    assert (rows.unexpected_count, rows.samples) == (1, ("(id=3, day=2024-01-04)",))
    assert members.samples == ("b",)
    assert pair.column == "amount, id"


def test_the_same_rule_twice_is_checked_twice(orders: DataFrame) -> None:
    verdict = check(orders, not_null("name", severity="info"), not_null("name"))
    assert [one.severity for one in verdict.failed] == [Severity.INFO, Severity.CRITICAL]
    assert [one.position for one in verdict.results] == [0, 1]


def test_the_verdict_survives_json(orders: DataFrame) -> None:
    verdict = check(
        orders,
        not_null("name"),
        expect("expect_column_mean_to_be_between", column="amount", max_value=1),
        expect("expect_column_max_to_be_between", column="day", max_value="2023-01-01"),
    )
    entry = json.loads(json.dumps(verdict.as_dict(), allow_nan=False))
    assert Verdict.from_dict(entry).as_dict() == verdict.as_dict()
    assert (entry["outcome"], entry["failed"], entry["rows"]) == ("blocked", 3, 4)


def test_an_empty_table_passes_with_zero_rows(orders: DataFrame) -> None:
    empty = orders.where("id < 0")
    verdict = check(
        empty, not_null("name"), expect("expect_column_values_to_be_unique", column="id")
    )
    assert (verdict.outcome, verdict.rows) == (Outcome.PASSED, 0)


def test_a_volume_rule_fails_without_rows(orders: DataFrame) -> None:
    verdict = check(
        orders.where("id < 0"),
        not_null("name"),
        expect("expect_table_row_count_to_be_between", min_value=1),
    )
    assert (verdict.outcome, [one.position for one in verdict.failed]) == (Outcome.BLOCKED, [1])


def test_an_aggregate_of_no_rows_does_not_hold(orders: DataFrame) -> None:
    failed = only(
        check(
            orders.where("id < 0"),
            expect("expect_column_max_to_be_between", column="amount", max_value=1),
        )
    )
    assert (failed.success, failed.observed) == (False, None)


@pytest.mark.parametrize("suite_or_none", [None, {"name": "empty", "expectations": []}])
def test_nothing_to_check_passes_with_no_expectations(
    orders: DataFrame, suite_or_none: dict[str, Any] | None
) -> None:
    verdict = audit(lambda: orders, suite_or_none, table=TABLE)
    assert (verdict.outcome, verdict.expectations) == (Outcome.PASSED, 0)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (expect("expect_column_values_to_not_be_nul", column="id"), "not found"),
        (expect("expect_column_values_to_not_be_null", colum="id"), "colum"),
        (expect("expect_column_values_to_not_be_null"), "column"),
        (expect("expect_column_values_to_not_be_null", column="id", mostly=2), "mostly"),
        (not_null("id", severity="fatal"), "fatal"),
        ({"kwargs": {"column": "id"}}, "no type"),
    ],
)
def test_a_malformed_expectation_is_refused(
    orders: DataFrame, entry: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SuiteRefusedError) as refusal:
        check(orders, not_null("id"), entry, not_null("id"))
    (refused,) = refusal.value.refused
    assert refused.position == 1
    assert refused.type == str(entry.get("type"))
    assert problem in refused.problem


def test_every_refused_expectation_is_named(orders: DataFrame) -> None:
    with pytest.raises(SuiteRefusedError) as refusal:
        check(orders, expect("expect_this"), not_null("id"), expect("expect_that"))
    assert [one.type for one in refusal.value.refused] == ["expect_this", "expect_that"]


# Whoever imports Great Expectations first meets its warnings.
@pytest.mark.filterwarnings("default")
def test_a_dropped_expectation_is_refused(
    orders: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Great Expectations drops entries that it cannot read when it is given them as dictionaries;
    # here it is made to drop one that it can read.
    from great_expectations import ExpectationSuite

    kept = ExpectationSuite._process_expectation

    def drop(self: ExpectationSuite, entry: Any) -> Any:
        from great_expectations.exceptions import InvalidExpectationConfigurationError

        if entry.meta[suite_module.POSITION] == 1:
            raise InvalidExpectationConfigurationError("dropped")
        return kept(self, entry)

    monkeypatch.setattr(ExpectationSuite, "_process_expectation", drop)
    with pytest.raises(SuiteRefusedError) as refusal:
        check(orders, not_null("id"), not_null("name"))
    assert [(one.position, one.problem) for one in refusal.value.refused] == [
        (1, "Great Expectations dropped it")
    ]


@pytest.mark.parametrize(
    ("entry", "column"),
    [
        (not_null("no_such_column", severity="info"), "no_such_column"),
        (expect("expect_column_values_to_match_regex", column="name", regex="("), "name"),
        (
            expect(
                "unexpected_rows_expectation",
                unexpected_rows_query="SELECT * FROM {batch} WHERE no_such_column = 1",
            ),
            None,
        ),
    ],
)
def test_a_check_that_raises_is_no_verdict(
    orders: DataFrame, entry: dict[str, Any], column: str | None
) -> None:
    with pytest.raises(GateCrashedError) as crash:
        check(orders, not_null("name"), entry)
    (crashed,) = crash.value.crashed
    assert (crashed.position, crashed.type, crashed.column) == (1, entry["type"], column)
    assert crashed.problem


def test_a_check_opens_no_outside_connection(
    orders: DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    outside: list[Any] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in {"127.0.0.1", "::1"}:
            outside.append(address)
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    check(orders, not_null("name"))
    assert outside == []
    printed = capfd.readouterr()
    assert "Calculating Metrics" not in printed.out + printed.err


def cached(spark: SparkSession) -> set[int]:
    """What is cached, but for the logs that Delta reads in the background, even of past tests."""
    found = spark.sparkContext._jsc.getPersistentRDDs().values()
    return {int(one.id()) for one in found if "Delta Table State" not in str(one.name())}


def test_audits_in_two_threads_check_their_own_rows(orders: DataFrame) -> None:
    """The first two rows have a name, the last two have none."""
    named, unnamed = orders.where("id < 3"), orders.where("id = 3")
    with ThreadPoolExecutor(2) as threads:
        verdicts = [
            list(threads.map(check, (named, unnamed), [not_null("name")] * 2)) for _ in range(4)
        ]
    assert [[only(one).success for one in pair] for pair in verdicts] == [[True, False]] * 4


def test_nothing_stays_cached(spark: SparkSession, orders: DataFrame) -> None:
    before = cached(spark)
    check(orders, not_null("name"))
    # Spark drops what earlier tests have left at any time.
    assert cached(spark) <= before


def test_thirty_expectations_that_hold_take_few_jobs(
    spark: SparkSession, orders: DataFrame, tmp_path: Path
) -> None:
    between = "expect_column_values_to_be_between"
    found = orders.where("amount IS NOT NULL AND name IS NOT NULL")
    found.write.format("delta").save(str(tmp_path))
    # As staged rows are read.
    whole = reader.read(spark, str(tmp_path))
    written = [
        *[not_null(column) for column in ("id", "amount", "name")],
        *[expect("expect_column_to_exist", column=column) for column in whole.columns],
        *[expect(between, column="amount", min_value=0, max_value=100 + n) for n in range(8)],
        *[expect(between, column="id", min_value=n, max_value=9) for n in range(-3, 2)],
        *[
            expect("expect_column_values_to_be_in_set", column="name", value_set=["a", "b", extra])
            for extra in "cde"
        ],
        expect("expect_column_values_to_match_regex", column="name", regex="^[a-z]$"),
        expect("expect_column_value_lengths_to_equal", column="name", value=1),
        expect("expect_column_mean_to_be_between", column="amount", min_value=10, max_value=20),
        expect("expect_column_max_to_be_between", column="amount", max_value=20),
        expect("expect_column_min_to_be_between", column="amount", min_value=10),
        expect("expect_column_sum_to_be_between", column="amount", max_value=30),
    ]
    all_of_it = with_implied(suite(*written), view="orders", grain=["id"])
    assert all_of_it is not None
    assert len(all_of_it["expectations"]) == 30
    context = spark.sparkContext
    context.setJobGroup("thirty", "a gate")
    verdict = audit(lambda: whole, all_of_it, table=TABLE, rows=2)
    jobs = context.statusTracker().getJobIdsForGroup("thirty")
    context.setLocalProperty("spark.jobGroup.id", None)
    assert (verdict.expectations, verdict.failed) == (30, ())
    assert 0 < len(jobs) <= 12


def test_files_alone_are_left_as_they_were(orders: DataFrame, tmp_path: Path) -> None:
    location = Path(orders.inputFiles()[0].removeprefix("file:")).parent
    before = sorted(path.name for path in location.rglob("*"))
    check(orders, not_null("name"))
    assert sorted(path.name for path in location.rglob("*")) == before


def test_known_results_equal_those_of_great_expectations(spark: SparkSession) -> None:
    known = [(kind, kwargs, holds) for kind, kwargs, holds in CASES if holds is not None]
    asked = [expect(f"expect_{kind}", severity="info", **kwargs) for kind, kwargs, _ in known]
    verdict = check(spark.createDataFrame(ROWS), *asked)
    assert [one.success for one in verdict.results] == [holds for _, _, holds in known]
