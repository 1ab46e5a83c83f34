"""Scalar functions that both engines compute alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import (
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    common_kind,
    has_exact_negative,
)
from spark_jobs.graph.duck.typed import Typed, converted, exact_literal, in_common

Translate = Callable[[exp.Expr], Typed]
Rule = Callable[[exp.Expr, Translate], Typed]

_PARTS = {"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "QUARTER"}
_TRUNCATED = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"}


def call(node: exp.Expr, typed: Translate) -> Typed:
    """Translate a function of ``CALLS`` to DuckDB.

    Raises:
        NotTranslatedError: with these arguments the engines may differ.
    """
    return CALLS[type(node)](node, typed)


def _coalesce(node: exp.Expr, typed: Translate) -> Typed:
    values = in_common([typed(one) for one in (node.this, *node.expressions)])
    return Typed(f"coalesce({', '.join(one.sql for one in values)})", values[0].kind)


def _nullif(node: exp.Expr, typed: Translate) -> Typed:
    first, other = typed(node.this), typed(node.expression)
    # Spark compares with a name of the first value, which is no literal then.
    left, right = in_common([first, exact_literal(other) if first.kind.is_decimal else other])
    return Typed(f"(CASE WHEN {left.sql} = {right.sql} THEN NULL ELSE {first.sql} END)", first.kind)


def _of_several(word: str) -> Rule:
    def rule(node: exp.Expr, typed: Translate) -> Typed:
        values = [typed(one) for one in (node.this, *node.expressions)]
        # Unlike elsewhere, Spark refuses a string beside a date.
        common_kind(one.kind for one in values)
        values = in_common(values)
        if not values[0].kind.is_compared:
            raise NotTranslatedError(f"{word} of {values[0].kind}")
        return Typed(f"{word}({', '.join(one.sql for one in values)})", values[0].kind)

    return rule


def _absolute(node: exp.Expr, typed: Translate) -> Typed:
    value = typed(node.this)
    if not has_exact_negative(value.kind):
        raise NotTranslatedError(f"abs of {value.kind}")
    return Typed(f"abs({value.sql})", value.kind)


def _part(unit: str, value: Typed) -> Typed:
    kinds = (
        {DATE, TIMESTAMP, TIMESTAMP_NTZ}
        if unit in {"YEAR", "MONTH", "DAY", "QUARTER"}
        else ({TIMESTAMP, TIMESTAMP_NTZ})
    )
    if unit not in _PARTS or value.kind not in kinds:
        raise NotTranslatedError(f"the {unit} of {value.kind}")
    # The year of a moment with a zone would count from 1 before Christ as well.
    return Typed(f"CAST({unit.lower()}(CAST({value.sql} AS TIMESTAMP)) AS INTEGER)", INT)


def _named_part(unit: str) -> Rule:
    def rule(node: exp.Expr, typed: Translate) -> Typed:
        inner = node.this
        # sqlglot wraps the argument of YEAR, MONTH and DAY; a date has no hour of its own.
        if isinstance(inner, exp.TsOrDsToDate) and unit not in {"HOUR", "MINUTE"}:
            inner = inner.this
        return _part(unit, typed(inner))

    return rule


def _extract(node: exp.Expr, typed: Translate) -> Typed:
    return _part(node.this.name.upper(), typed(node.expression))


def _truncated(node: exp.Expr, typed: Translate) -> Typed:
    name, value = node.args["unit"].name.upper(), typed(node.this)
    if name not in _TRUNCATED or value.kind != TIMESTAMP:
        raise NotTranslatedError(to_sql(node))
    return Typed(f"date_trunc('{name.lower()}', {value.sql})", TIMESTAMP)


def _date(node: exp.Expr, typed: Translate) -> Typed:
    value = typed(node.this)
    if value.kind not in {DATE, TIMESTAMP}:
        raise NotTranslatedError(to_sql(node))
    return Typed(f"CAST({value.sql} AS DATE)", DATE)


def _substring(node: exp.Expr, typed: Translate) -> Typed:
    value = typed(node.this)
    bounds = []
    for one in (node.args.get("start"), node.args.get("length")):
        if not isinstance(one, exp.Literal) or not one.is_int or int(one.name) < 1:
            raise NotTranslatedError(to_sql(node))
        bounds.append(one.name)
    if value.kind != STRING:
        raise NotTranslatedError(to_sql(node))
    return Typed(f"substring({value.sql}, {', '.join(bounds)})", STRING)


def _joined(node: exp.Expr, typed: Translate) -> Typed:
    return _concatenated([typed(node.this), typed(node.expression)])


def _concat(node: exp.Expr, typed: Translate) -> Typed:
    return _concatenated([typed(one) for one in node.expressions])


def _concatenated(parts: list[Typed]) -> Typed:
    if any(one.kind != STRING for one in parts):
        raise NotTranslatedError("a text joined with another type")
    return Typed(f"({' || '.join(one.sql for one in parts)})", STRING)


def _days(node: exp.Expr, typed: Translate) -> Typed:
    later, earlier = (converted(typed(one), DATE) for one in (node.this, node.expression))
    return Typed(f"CAST({later.sql} - {earlier.sql} AS INTEGER)", INT)


CALLS: Mapping[type[exp.Expr], Rule] = {
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Greatest: _of_several("greatest"),
    exp.Least: _of_several("least"),
    exp.Abs: _absolute,
    exp.Year: _named_part("YEAR"),
    exp.Month: _named_part("MONTH"),
    exp.Day: _named_part("DAY"),
    exp.Hour: _named_part("HOUR"),
    exp.Minute: _named_part("MINUTE"),
    exp.Quarter: _named_part("QUARTER"),
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncated,
    exp.TsOrDsToDate: _date,
    exp.Substring: _substring,
    exp.DPipe: _joined,
    exp.Concat: _concat,
    exp.DateDiff: _days,
}
