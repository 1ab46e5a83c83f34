"""The verdict on a small batch, from the failures of its rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.definitions.vocabulary import OnFailure
from spark_jobs.graph.manifest import ApplyMode, SilverEntry
from spark_jobs.quality.verdict import Outcome as Word
from spark_jobs.quality.verdict import Verdict
from spark_jobs.silver.apply.dispositions import DISPOSITION
from spark_jobs.silver.apply.outcome import Outcome
from spark_jobs.silver.apply.verdicts import passed_on, verdict_on
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.judging import COUNTED, FAILED
from spark_jobs.silver.parse.rows import DELETED

NOT_NULL = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "a"}}
UNIQUE = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "a"}}
REJECTED = {"reason": "EXPECTATION_FAILED", "detail": "x"}
APPLIED, QUARANTINED = "applied", "quarantined"
# Disposition, deleted, problem, failed and counting rules, value.
Row = tuple[str, bool, dict[str, str] | None, list[int], list[int], Any]


def row(
    *failed: int,
    counts: tuple[int, ...] = (0,),
    value: Any = None,
    deleted: bool = False,
    ends: str = APPLIED,
    problem: dict[str, str] | None = None,
) -> Row:
    return ends, deleted, problem, list(failed), list(counts), value


def judged(
    rows: list[Row], *expectations: dict[str, Any], policy: OnFailure = OnFailure.WARN
) -> Verdict:
    names = (DISPOSITION, DELETED, PROBLEM, FAILED, COUNTED, "a")
    types = [
        pa.string(),
        pa.bool_(),
        pa.struct([("reason", pa.string()), ("detail", pa.string())]),
        pa.list_(pa.int32()),
        pa.list_(pa.int32()),
        pa.float64(),
    ]
    schema = pa.schema(list(zip(names, types, strict=True)))
    batch = pa.Table.from_pylist([dict(zip(names, one, strict=True)) for one in rows], schema)
    entry = SilverEntry(
        name="t",
        source="t",
        sql="",
        projection="",
        columns=(),
        apply=ApplyMode.UPSERT,
        suite={"name": "t", "expectations": list(expectations)},
        on_failure=policy,
        file="sql/silver/t.sql",
        fingerprint="",
    )

    def never() -> Any:
        raise AssertionError

    verdict = verdict_on(entry, Outcome(never, [], here=batch))
    assert verdict is not None
    return verdict


@pytest.mark.parametrize(
    ("policy", "severity", "word"),
    [
        (OnFailure.WARN, "critical", Word.WARNED),
        (OnFailure.QUARANTINE, "critical", Word.WARNED),
        (OnFailure.HOLD, "critical", Word.BLOCKED),
        (OnFailure.HOLD, "warning", Word.WARNED),
        (OnFailure.HOLD, "info", Word.PASSED),
    ],
)
def test_severity_and_policy_make_the_outcome(policy: OnFailure, severity: str, word: Word) -> None:
    rows = [row(0), row()]
    verdict = judged(rows, {**NOT_NULL, "severity": severity}, policy=policy)

    assert (verdict.outcome, verdict.rows, verdict.failures) == (word, 2, 1)
    [result] = verdict.results
    assert (result.unexpected_count, result.unexpected_percent, result.samples) == (1, 50.0, ())
    assert passed_on(verdict).outcome is Word.WARNED


def test_only_rows_that_are_written_count() -> None:
    rows = [
        row(),
        row(0, deleted=True),
        row(0, ends="duplicate"),
        row(0, ends="superseded"),
        row(0, ends=QUARANTINED, problem={"reason": "TYPE_MISMATCH", "detail": "a"}),
    ]
    verdict = judged(rows, NOT_NULL, policy=OnFailure.HOLD)

    assert (verdict.outcome, verdict.rows, verdict.failed) == (Word.PASSED, 1, ())


def test_rejected_rows_count_for_what_rejects_them() -> None:
    warning = {**NOT_NULL, "severity": "warning"}
    rows = [row(0, 1, counts=(0, 1), ends=QUARANTINED, problem=REJECTED), row(counts=(0, 1))]
    verdict = judged(rows, NOT_NULL, warning, policy=OnFailure.QUARANTINE)

    assert [(one.position, one.unexpected_count) for one in verdict.results] == [(0, 1)]
    assert verdict.rows == 1


@pytest.mark.parametrize(
    ("mostly", "counting", "passes"), [(0.5, 2, True), (0.6, 2, False), (0.6, 3, True)]
)
def test_a_share_is_one_of_the_rows_that_count(mostly: float, counting: int, passes: bool) -> None:
    rows = [row(0), *[row() for _ in range(counting - 1)], row(counts=())]
    share = {**NOT_NULL, "kwargs": {"column": "a", "mostly": mostly}}

    assert (judged(rows, share).outcome is Word.PASSED) is passes


def test_equal_values_are_counted_with_all_their_rows() -> None:
    values = [1.0, 1.0, 2.0, float("nan"), float("nan"), -0.0, 0.0]
    rows = [*[row(value=one) for one in values], row(counts=()), row(counts=())]
    verdict = judged([*rows, row(value=2.0, deleted=True)], UNIQUE)

    assert [one.unexpected_count for one in verdict.results] == [6]


def test_a_batch_without_rows_breaks_no_rule_of_rows() -> None:
    rows = [row(0, value=1.0, ends="duplicate")]
    least = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}}

    assert judged(rows, NOT_NULL, UNIQUE).outcome is Word.PASSED
    assert judged(rows, least).results[0].observed == 0
