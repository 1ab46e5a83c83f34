"""The verdict of a suite on one batch: how many rows fail each expectation.

Counted over the rows that the batch writes, and over those that the suite sent to quarantine. A
batch in this process has the failures of each row from its plan; Spark computes them again, because
values may have been filled in since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.definitions.batch_rules import (
    ROW_COUNT_EQUAL,
    ROW_RULES,
    UNIQUE_RULES,
    BatchRule,
)
from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.definitions.vocabulary import OnFailure, Severity
from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.names import Disposition
from spark_jobs.quality.details import result_of
from spark_jobs.quality.suite import DeclaredExpectation, suite_name
from spark_jobs.quality.verdict import ExpectationResult, Recorded, Verdict
from spark_jobs.quality.verdict import Outcome as Word
from spark_jobs.silver.apply.dispositions import DISPOSITION
from spark_jobs.silver.apply.outcome import Outcome
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.judging import COUNTED, FAILED, counts, fails
from spark_jobs.silver.parse.rows import DELETED


@dataclass(frozen=True)
class Tally:
    """Rows of a batch that fail each expectation.

    Attributes:
        written: rows that the batch writes.
        failed: failing rows, by position of the expectation.
        counted: rows that ``mostly`` is a share of, by position.
    """

    written: int
    failed: Mapping[int, int] = field(default_factory=dict)
    counted: Mapping[int, int] = field(default_factory=dict)


def verdict_on(entry: SilverEntry, outcome: Outcome) -> Verdict | None:
    """The verdict on a batch; None if the table has no suite.

    Args:
        entry: the table with its suite.
        outcome: the batch's records with their dispositions.
    """
    rules = entry.rules
    if not rules or entry.suite is None:
        return None
    here = outcome.here
    tally = _tally_by_spark(entry, outcome) if here is None else _tally_here(rules, here)
    failed = [rule for rule in rules if not _passes(rule, tally)]
    critical = any(rule.critical for rule in failed)
    word = Word.PASSED
    if any(rule.severity is not Severity.INFO for rule in failed):
        word = Word.BLOCKED if critical and entry.on_failure is OnFailure.HOLD else Word.WARNED
    return Verdict(
        table=str(entry.table_name),
        suite=suite_name(entry.suite),
        rows=tally.written,
        results=tuple(_result(rule, tally) for rule in failed),
        recorded=Recorded(outcome=word, expectations=len(rules), failed=len(failed)),
    )


def passed_on(verdict: Verdict) -> Verdict:
    """The verdict on a batch that is applied although it is blocked."""
    told = Recorded(outcome=Word.WARNED, expectations=verdict.expectations, failed=verdict.failures)
    return replace(verdict, recorded=told)


def _result(rule: BatchRule, tally: Tally) -> ExpectationResult:
    declared = DeclaredExpectation(rule.position, rule.type, dict(rule.kwargs), rule.severity)
    if not rule.columns:
        return result_of(declared, success=False, details={"observed_value": tally.written})
    failed, counted = tally.failed.get(rule.position, 0), tally.counted.get(rule.position, 0)
    details = {
        "unexpected_count": failed,
        "unexpected_percent": 100 * failed / counted if counted else 0.0,
        "element_count": counted,
    }
    return result_of(declared, success=False, details=details)


def _passes(rule: BatchRule, tally: Tally) -> bool:
    """As Great Expectations decides it from the counts."""
    if not rule.columns:
        return _row_count_fits(rule, tally.written)
    failed, counted = tally.failed.get(rule.position, 0), tally.counted.get(rule.position, 0)
    return not failed or (counted - failed) / counted >= rule.mostly


def _row_count_fits(rule: BatchRule, rows: int) -> bool:
    kwargs = rule.kwargs
    if rule.type == ROW_COUNT_EQUAL:
        return bool(rows == kwargs["value"])
    least, most = kwargs.get("min_value"), kwargs.get("max_value")
    above = least is None or (rows > least if kwargs.get("strict_min") else rows >= least)
    below = most is None or (rows < most if kwargs.get("strict_max") else rows <= most)
    return bool(above and below)


def _tally_here(rules: Sequence[BatchRule], batch: pa.Table) -> Tally:
    names = [DISPOSITION, PROBLEM, FAILED, COUNTED]
    columns = [batch.column(name).to_pylist() for name in names]
    deletes = DELETED in batch.column_names
    deleted = batch.column(DELETED).to_pylist() if deletes else [False] * batch.num_rows
    failed, counted, written = Counter[int](), Counter[int](), list[int]()
    own = {rule.position for rule in rules if rule.critical and rule.of_rows}
    for at, (disposition, problem, fails_in, counts_in) in enumerate(zip(*columns, strict=True)):
        if disposition == Disposition.APPLIED and not deleted[at]:
            written.append(at)
            failed.update(fails_in)
            counted.update(counts_in)
        elif problem and problem["reason"] == QuarantineReason.EXPECTATION_FAILED:
            failed.update(own.intersection(fails_in))
            counted.update(own.intersection(counts_in))
    for rule in rules:
        if rule.type in UNIQUE_RULES:
            values = (
                batch.select(list(rule.columns)).take(pa.array(written, pa.int64())).to_pylist()
            )
            keys = [
                tuple(row.values())
                for row, at in zip(values, written, strict=True)
                if rule.position in columns[3][at]
            ]
            failed[rule.position] = _repeated(keys)
    return Tally(len(written), failed, counted)


def _repeated(keys: Iterable[tuple[Any, ...]]) -> int:
    """The number of rows whose key another row has too."""
    found = Counter(tuple(map(_comparable, key)) for key in keys)
    return sum(count for count in found.values() if count > 1)


def _comparable(value: Any) -> Any:
    # To Spark every NaN is equal.
    return "NaN" if isinstance(value, float) and isnan(value) else value


def _tally_by_spark(entry: SilverEntry, outcome: Outcome) -> Tally:
    written = sf.col(DISPOSITION) == str(Disposition.APPLIED)
    if DELETED in outcome.rows.columns:
        written &= ~sf.col(DELETED)
    reason = sf.col(PROBLEM)["reason"] == str(QuarantineReason.EXPECTATION_FAILED)
    rejected = sf.coalesce(reason, sf.lit(False))  # noqa: FBT003
    own = {rule.position for rule in entry.quarantining}
    sums: dict[str, Column] = {"written": _number(written)}
    for rule in entry.rules:
        if not rule.columns:
            continue
        judged = written | rejected if rule.position in own else written
        sums[f"c{rule.position}"] = _number(judged & counts(rule, sf.col))
        if rule.type in ROW_RULES:
            sums[f"f{rule.position}"] = _number(judged & fails(rule, sf.col))
    [row] = outcome.rows.agg(*(one.alias(name) for name, one in sums.items())).collect()
    found = {name: int(value or 0) for name, value in row.asDict().items()}
    failed = {int(name[1:]): count for name, count in found.items() if name.startswith("f")}
    counted = {int(name[1:]): count for name, count in found.items() if name.startswith("c")}
    for rule in entry.rules:
        if rule.type in UNIQUE_RULES:
            rows = outcome.rows.where(written & counts(rule, sf.col))
            groups = rows.groupBy(*rule.columns).count().where(sf.col("count") > 1)
            [repeated] = groups.agg(sf.sum("count")).collect()
            failed[rule.position] = int(repeated[0] or 0)
    return Tally(found["written"], failed, counted)


def _number(condition: Column) -> Column:
    return sf.sum(condition.cast("int"))
