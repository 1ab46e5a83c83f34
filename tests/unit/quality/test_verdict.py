from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.quality.details import result_of
from spark_jobs.quality.errors import GateBlockedError, SuiteRefusedError
from spark_jobs.quality.report import summary, verdict_table, verdict_text
from spark_jobs.quality.suite import DeclaredExpectation, read_suite
from spark_jobs.quality.verdict import ExpectationResult, Outcome, Verdict


def result(severity: Severity, *, success: bool, position: int = 0) -> ExpectationResult:
    return ExpectationResult(
        position=position,
        type="expect_column_values_to_not_be_null",
        kwargs={"column": "name"},
        column="name",
        severity=severity,
        success=success,
        unexpected_count=None if success else 2,
        unexpected_percent=None if success else 50.0,
        samples=() if success else ("[red]x",),
        message="" if success else "two names are missing",
    )


def verdict(*results: ExpectationResult, rows: int | None = 4) -> Verdict:
    return Verdict(table="gold.orders", suite="orders", rows=rows, results=results, seconds=1.25)


@pytest.mark.parametrize(
    ("failed", "outcome"),
    [
        ([], Outcome.PASSED),
        ([Severity.INFO], Outcome.PASSED),
        ([Severity.INFO, Severity.WARNING], Outcome.WARNED),
        ([Severity.WARNING, Severity.CRITICAL, Severity.INFO], Outcome.BLOCKED),
    ],
)
def test_the_worst_failed_severity_decides(failed: list[Severity], outcome: Outcome) -> None:
    passed = [result(severity, success=True) for severity in Severity]
    assert verdict(*passed, *(result(one, success=False) for one in failed)).outcome is outcome


def test_only_critical_ones_block() -> None:
    blocked = verdict(
        result(Severity.WARNING, success=False), result(Severity.CRITICAL, success=False)
    )
    assert [one.severity for one in blocked.blocking] == [Severity.CRITICAL]
    error = GateBlockedError(blocked)
    assert error.verdict is blocked
    assert "expect_column_values_to_not_be_null(name)" in error.primary


def test_a_verdict_is_read_back_as_it_was_written() -> None:
    written = verdict(result(Severity.CRITICAL, success=False), result(Severity.INFO, success=True))
    assert Verdict.from_dict(json.loads(json.dumps(written.as_dict()))) == written


@pytest.mark.parametrize("outcome", ["passed", "released"])
def test_a_verdict_is_read_from_what_a_commit_keeps_of_it(outcome: str) -> None:
    entry = verdict(result(Severity.CRITICAL, success=False)).as_dict() | {"outcome": outcome}
    brief = {key: one for key, one in entry.items() if isinstance(one, str | int | bool)}
    found = Verdict.from_dict(brief)
    assert (found.outcome, found.expectations, found.failures) == (outcome, 1, 1)
    assert summary(found).startswith(f"gold.orders: {outcome}, 0 of 1 expectations passed")


def test_a_released_verdict_keeps_its_outcome() -> None:
    entry = verdict(result(Severity.CRITICAL, success=False)).as_dict()
    found = Verdict.from_dict(entry | {"outcome": "released"})
    assert found.outcome is Outcome.RELEASED
    assert found.blocking
    assert found.as_dict()["outcome"] == "released"


def test_the_log_names_each_failed_rule() -> None:
    text = verdict_text(verdict(result(Severity.CRITICAL, success=False)))
    assert text == (
        "gold.orders: blocked, 0 of 1 expectations passed over 4 rows (1.2 s)\n"
        "  critical: two names are missing"
    )


def test_the_summary_mentions_empty_tables_and_missing_expectations() -> None:
    assert "prove nothing" in summary(verdict(result(Severity.INFO, success=True), rows=0))
    assert summary(verdict(rows=None)) == "gold.orders: passed, nothing to check"


def test_the_table_shows_data_as_it_is_and_failures_first() -> None:
    shown = io.StringIO()
    rules = verdict(
        result(Severity.INFO, success=True), result(Severity.CRITICAL, success=False, position=1)
    )
    Console(file=shown, width=160).print(verdict_table(rules, values=True))
    text = shown.getvalue()
    assert "2 unexpected (50 %); values [red]x" in text
    rows = text[text.index("what was found") :]
    assert rows.index("failed") < rows.index("passed")


PRICE = DeclaredExpectation(
    0,
    "expect_column_values_to_be_between",
    {"column": "price", "min_value": 0, "max_value": 100},
    Severity.CRITICAL,
    note="A price above 100 is in cents.",
)
TWO_PRICES = {
    "unexpected_count": 2,
    "unexpected_percent": 50.0,
    "element_count": 4,
    "partial_unexpected_list": [397.87, 401],
    "partial_unexpected_index_list": [
        {"price": 397.87, "order_id": 17},
        {"price": 401, "order_id": 18},
    ],
}


def test_a_line_for_everybody_names_rule_limits_rows_and_note_and_no_value() -> None:
    failed = result_of(PRICE, success=False, details=TWO_PRICES, grain=["order_id"])
    assert failed.message == (
        "expect_column_values_to_be_between of price (min_value=0, max_value=100) failed: "
        "2 of 4 values do not fit; rows with order_id=17, order_id=18; "
        "note: A price above 100 is in cents"
    )
    shown = io.StringIO()
    Console(file=shown, width=200).print(verdict_table(verdict(failed)))
    for text in (shown.getvalue(), str(GateBlockedError(verdict(failed)))):
        assert "order_id=18" in text
        assert "in cents" in text
        assert "397.87" not in text
    # Whoever works on the machine of the pipeline sees the values.
    shown = io.StringIO()
    Console(file=shown, width=200).print(verdict_table(verdict(failed), values=True))
    assert "values 397.87, 401" in shown.getvalue()


def test_of_personal_data_no_value_is_kept() -> None:
    seen = {"unexpected_count": 1, "partial_unexpected_list": ["ann@example.org"]}
    mail = DeclaredExpectation(0, "expect_x", {"column": "Mail"}, Severity.INFO)
    query = DeclaredExpectation(1, "unexpected_rows_expectation", {}, Severity.INFO)
    rows = {"observed_value": 1, "details": {"unexpected_rows": [{"mail": "ann@example.org"}]}}
    most = {"observed_value": "ann@example.org"}
    found = verdict(
        result_of(mail, success=False, details=seen, personal={"mail"}),
        result_of(mail, success=False, details=most, personal={"mail"}),
        result_of(query, success=False, details=rows, personal={"mail"}),
    )
    assert "ann" not in json.dumps(found.as_dict())
    assert [one.unexpected_count for one in found.results] == [1, None, 1]


def test_values_that_a_rule_lists_are_counted_in_its_line() -> None:
    listed = DeclaredExpectation(0, "expect_x", {"column": "status"}, Severity.INFO)
    found = result_of(listed, success=False, details={"observed_value": ["new", "odd"]})
    assert (found.observed, found.samples) == ("2 values", ("new", "odd"))
    assert found.message == "expect_x of status failed: observed 2 values"


def test_a_grain_of_several_columns_is_shown_whole_or_not_at_all() -> None:
    details = {
        "unexpected_count": 2,
        "partial_unexpected_index_list": [{"day": 1, "shop": "a"}, {"day": 2}],
    }
    found = result_of(PRICE, success=False, details=details, grain=["day", "shop"])
    assert found.keys == ("(day=1 shop=a)",)


def test_a_verdict_of_an_older_release_has_no_keys() -> None:
    entry = verdict(result(Severity.CRITICAL, success=False)).as_dict()
    for one in entry["results"]:
        del one["keys"], one["note"]
    assert Verdict.from_dict(entry).results[0].keys == ()


@pytest.mark.parametrize(
    "meta",
    [
        {"meta": {"notes": "why"}},
        {"meta": {"notes": {"format": "markdown", "content": ["why"]}}},
        {"description": "why"},
    ],
)
def test_a_note_is_read_wherever_great_expectations_keeps_it(meta: dict[str, object]) -> None:
    (one,) = read_suite({"expectations": [{"type": "expect_a", **meta}]}, table="gold.t")
    assert one.note == "why"


def test_a_suite_is_read_with_critical_as_the_default() -> None:
    entries = [{"type": "expect_a", "kwargs": {"column_list": ["x", "y"]}}, {"type": "expect_b"}]
    first, second = read_suite({"name": "s", "expectations": entries}, table="gold.t")
    assert (first.severity, first.column, first.position) == (Severity.CRITICAL, "x, y", 0)
    assert (second.kwargs, second.column) == ({}, None)


def test_every_unreadable_entry_of_a_suite_is_named() -> None:
    entries = [{}, {"type": "expect_a", "severity": "fatal"}, {"type": "expect_b"}]
    with pytest.raises(SuiteRefusedError) as refusal:
        read_suite({"expectations": entries}, table="gold.t")
    assert [one.position for one in refusal.value.refused] == [0, 1]


def test_samples_are_few_short_and_text() -> None:
    declared = DeclaredExpectation(0, "expect_x", {"column": "c"}, Severity.INFO)
    details = {
        "unexpected_count": 9,
        "partial_unexpected_list": [None, "x" * 200, (1, None), *"abcdef"],
    }
    found = result_of(declared, success=False, details=details)
    assert len(found.samples) == 5
    assert max(map(len, found.samples)) <= 80
    assert found.samples[1] == "(1, NULL)"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_become_text(value: float) -> None:
    declared = DeclaredExpectation(0, "expect_x", {}, Severity.INFO)
    found = result_of(declared, success=False, details={"observed_value": value})
    assert json.dumps(found.observed, allow_nan=False) == f'"{value}"'


def test_keys_and_values_of_any_text_stay_on_one_line_that_postgresql_can_store() -> None:
    odd = {"price": "a\x00\n\u2028\ud800é🙂", "order_id": "\r\x00"}
    details = {
        "unexpected_count": 1,
        "partial_unexpected_list": [odd["price"]],
        "partial_unexpected_index_list": [odd],
    }
    found = result_of(PRICE, success=False, details=details, grain=["order_id"])
    assert found.samples == ("a\\x00\\n\\u2028\\ud800é🙂",)
    assert found.keys == ("order_id=\\r\\x00",)
    assert found.message.isprintable()
    least = result_of(PRICE, success=False, details={"observed_value": "\x00"})
    assert least.observed == "\\x00"


@pytest.mark.parametrize(
    ("kwargs", "column"),
    [({"column": 5}, "5"), ({"column_list": [1, "b"]}, "1, b"), ({"column": None}, None)],
)
def test_columns_of_another_type_have_names_for_messages(
    kwargs: dict[str, object], column: str | None
) -> None:
    assert DeclaredExpectation(0, "expect_x", kwargs, Severity.INFO).column == column


def test_a_failure_without_details_still_has_its_line() -> None:
    declared = DeclaredExpectation(0, "expect_x", {"column": "c"}, Severity.INFO)
    assert result_of(declared, success=False, details=None).message == ("expect_x of c failed")


def test_an_outcome_that_an_older_release_stored_is_read() -> None:
    kept = {"table": "gold.spend", "outcome": "held", "expectations": 2, "failed": 1}
    assert Verdict.from_dict(kept).outcome is Outcome.BLOCKED
