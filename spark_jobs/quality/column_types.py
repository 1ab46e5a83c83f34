"""Whether a result has the types that its view's declaration gives; costs no Spark job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spark_jobs.quality.verdict import ExpectationResult, Severity

RULE: Final = "expect_column_types_as_declared"


def types_as_declared(
    declared: Mapping[str, str], found: Mapping[str, str], *, position: int
) -> ExpectationResult | None:
    """The failed expectation; None where each column has its type, or none is told.

    It is reported and holds nothing: readers of the old types have to be told, and the rows are
    right.

    Args:
        declared: types by column; an empty one is told by Spark alone.
        found: types by column, of the result.
        position: of the expectation in the verdict.

    >>> types_as_declared({"total": "bigint"}, {"total": "double"}, position=0).message
    'expect_column_types_as_declared of total failed: total is double, declared bigint'
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
