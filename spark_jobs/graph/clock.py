"""Stopping a query's clock, so that a retry and a verification see the instant of the plan."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import sqlglot
from sqlglot import exp

_TIMESTAMP_FUNCTIONS: Final = frozenset({"now", "getdate"})


def freeze_clock(query: str, instant: datetime) -> str:
    """The query with every reading of the clock replaced by one instant, in UTC.

    >>> from datetime import UTC, datetime
    >>> freeze_clock("SELECT CURRENT_DATE AS d", datetime(2026, 1, 2, 3, tzinfo=UTC))
    "SELECT CAST('2026-01-02' AS DATE) AS d"
    """
    tree = sqlglot.parse_one(query, dialect="spark")
    utc = instant.astimezone(UTC)
    return tree.transform(lambda node: _frozen(node, utc) or node).sql(dialect="spark")


def _frozen(node: exp.Expression, instant: datetime) -> exp.Expression | None:
    match node:
        case exp.CurrentTimestamp():
            return _cast(f"{instant:%Y-%m-%d %H:%M:%S.%f}+00:00", "TIMESTAMP")
        case exp.Anonymous() if node.name.lower() in _TIMESTAMP_FUNCTIONS:
            return _cast(f"{instant:%Y-%m-%d %H:%M:%S.%f}+00:00", "TIMESTAMP")
        case exp.CurrentDate():
            return _cast(f"{instant:%Y-%m-%d}", "DATE")
        case exp.Localtimestamp():
            return _cast(f"{instant:%Y-%m-%d %H:%M:%S.%f}", "TIMESTAMP_NTZ")
        case _:
            return None


def _cast(text: str, kind: str) -> exp.Expression:
    return exp.cast(exp.Literal.string(text), kind, dialect="spark")
