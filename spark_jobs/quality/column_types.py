"""Checks that a result has the declared column types, without a Spark job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.quality.verdict import ExpectationResult

RULE: Final = "expect_column_types_as_declared"


def types_as_declared(
    declared: Mapping[str, str], found: Mapping[str, str], *, position: int
) -> ExpectationResult | None:
    """The failed expectation; None if all declared types match.

    It is a warning and does not block: the rows are right, but readers of the old types must know.

    >>> types_as_declared({"total": "bigint"}, {"total": "double"}, position=0).message
    'expect_column_types_as_declared of total failed: total is double, declared bigint'

    Args:
        declared: types by column; "" if only Spark knows.
        found: types by column of the result.
        position: position of the expectation in the verdict.
    """
    unlike = {
        name: f"{name} is {found[name]}, declared {kind}"
        for name, kind in declared.items()
        if kind and found.get(name, kind) != kind
    }
    if not unlike:
        return None
    columns = ", ".join(unlike)
    return ExpectationResult(
        position=position,
        type=RULE,
        kwargs={},
        column=columns,
        severity=Severity.WARNING,
        success=False,
        samples=tuple(unlike.values()),
        message=f"{RULE} of {columns} failed: {', '.join(unlike.values())}",
    )
