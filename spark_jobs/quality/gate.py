"""Checks a DataFrame against a suite: first which expectations pass, then details of failures.

Checking a whole suite takes a few Spark jobs; details take jobs per expectation, so they are
computed only for failed ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.quality.details import ROWS_EXPECTATION, SAMPLES, result_of
from spark_jobs.quality.errors import (
    CrashedExpectation,
    GateCrashedError,
    RefusedExpectation,
    SuiteRefusedError,
)
from spark_jobs.quality.implied import ROW_COUNT
from spark_jobs.quality.library import ephemeral_context, load_library
from spark_jobs.quality.suite import (
    POSITION,
    DeclaredExpectation,
    build_suite,
    first_line,
    read_suite,
    suite_name,
)
from spark_jobs.quality.verdict import JsonObject, Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)
_BOUNDS: Final = frozenset({"min_value", "max_value"})
_NUMBERS: Final = frozenset({int, float, type(None)})

# Great Expectations promises nothing about threads: its current context, and modules that it loads
# late, belong to the process.
_ONE_AT_A_TIME: Final = Lock()

HOLDS_ONLY: Final = "BOOLEAN_ONLY"
WITH_VALUES: Final = {"result_format": "SUMMARY", "partial_unexpected_count": SAMPLES}
WITH_ROWS: Final = {"result_format": "COMPLETE", "partial_unexpected_count": SAMPLES}


def audit(
    staged: Callable[[], DataFrame],
    suite: Mapping[str, Any] | None,
    *,
    table: str,
    rows: int | None = None,
    grain: Sequence[str] = (),
    personal: Collection[str] = (),
) -> Verdict:
    """Check all expectations of a suite; a table without a suite passes with 0 expectations.

    Args:
        staged: returns the staged rows, read from files: their plan runs several times. Not called
            if there is nothing to check, or if the row count is enough.
        suite: the suite in Great Expectations' format.
        table: the table's name in messages.
        rows: row count, if known; otherwise rows are counted.
        grain: columns that identify a row, to name unexpected rows.
        personal: lower-case names of columns with personal data: their values are not stored.

    Raises:
        SuiteRefusedError: an expectation would not be checked as written.
        GateCrashedError: the check of an expectation raised an error.
    """
    started = perf_counter()
    declared = read_suite(suite or {}, table=table)
    if suite is None or not declared:
        name = None if suite is None else suite_name(suite)
        return Verdict(table=table, suite=name, rows=rows, seconds=perf_counter() - started)
    told = {
        one.position: entry for one in declared if (entry := _by_row_count(rows, one)) is not None
    }
    asked = [one for one in declared if one.position not in told]
    keys = () if any(one.lower() in personal for one in grain) else tuple(grain)
    found, details = dict(told), {at: entry["result"] for at, entry in told.items()}
    if asked:
        df = staged()
        with _ONE_AT_A_TIME:
            gate = _Gate(df, suite_name(suite), table=table)
            found |= gate.check(asked)
            failed = [one for one in asked if not found[one.position]["success"]]
            details |= gate.explain(failed, keys=keys)
        rows = df.count() if rows is None else rows
    return Verdict(
        table=table,
        suite=suite_name(suite),
        rows=rows,
        results=tuple(
            result_of(
                one,
                success=found[one.position]["success"],
                details=details.get(one.position),
                grain=keys,
                personal=personal,
            )
            for one in declared
        ),
        seconds=perf_counter() - started,
    )


def _by_row_count(rows: int | None, declared: DeclaredExpectation) -> JsonObject | None:
    """The result of an expectation about the row count only, if that is known; else None."""
    if rows is None or declared.type != ROW_COUNT or declared.kwargs.keys() - _BOUNDS:
        return None
    least, most = (declared.kwargs.get(bound) for bound in ("min_value", "max_value"))
    if any(type(bound) not in _NUMBERS for bound in (least, most)):
        return None
    holds = (least is None or least <= rows) and (most is None or rows <= most)
    return {"success": holds, "result": {"observed_value": rows}}


class _Gate:
    """A DataFrame in Great Expectations."""

    def __init__(self, df: DataFrame, name: str, *, table: str) -> None:
        self.name = name
        self._table = table
        self._library = load_library()
        source = ephemeral_context(self._library).data_sources.add_spark("spark", persist=False)
        definition = source.add_dataframe_asset("staged").add_batch_definition_whole_dataframe(
            "all"
        )
        self._batch = definition.get_batch({"dataframe": df})

    def check(self, declared: Sequence[DeclaredExpectation]) -> dict[int, JsonObject]:
        """The result of each expectation, by position."""
        found = self._run(declared, HOLDS_ONLY)
        crashed = [
            CrashedExpectation(one.position, one.type, one.column, problem)
            for one in declared
            if one.position in found and (problem := crash_of(found[one.position])) is not None
        ]
        if crashed:
            raise GateCrashedError(self.name, table=self._table, crashed=crashed)
        missing = [one for one in declared if one.position not in found]
        if missing:
            raise SuiteRefusedError(
                self.name,
                table=self._table,
                refused=[
                    RefusedExpectation(one.position, one.type, "it was not checked")
                    for one in missing
                ],
            )
        return found

    def explain(
        self, failed: Sequence[DeclaredExpectation], *, keys: Sequence[str]
    ) -> dict[int, JsonObject]:
        """Counts, samples and keys of failed expectations; optional for the verdict."""
        with_values = (
            {**WITH_VALUES, "unexpected_index_column_names": list(keys)} if keys else WITH_VALUES
        )
        by_rows = [one for one in failed if one.type == ROWS_EXPECTATION]
        by_values = [one for one in failed if one.type != ROWS_EXPECTATION]
        details: dict[int, JsonObject] = {}
        for declared, form in ((by_values, with_values), (by_rows, WITH_ROWS)):
            if not declared:
                continue
            for position, entry in self._run(declared, form).items():
                if (problem := crash_of(entry)) is not None:
                    log.warning("details missing table=%s error=%s", self._table, problem)
                    continue
                details[position] = entry["result"]
        return details

    def _run(
        self, declared: Sequence[DeclaredExpectation], form: str | dict[str, Any]
    ) -> dict[int, JsonObject]:
        suite = build_suite(self._library, self.name, declared=declared, table=self._table)
        validation = self._batch.validate(suite, result_format=form)
        return {
            one.expectation_config.meta[POSITION]: {
                "success": bool(one.success),
                "result": one.result,
                "exception": one.exception_info or {},
            }
            for one in validation.results
        }


def crash_of(entry: JsonObject) -> str | None:
    """Why the check raised an error, or None.

    Great Expectations reports one exception, or one per failed metric.
    """
    exception = entry["exception"]
    each = [exception] if "raised_exception" in exception else list(exception.values())
    for one in each:
        if one.get("raised_exception"):
            return first_line(str(one.get("exception_message") or "it raised"))
    return None
