"""The closed list of node types that are translated, and of their arguments.

An argument that the translation ignores would be lost silently, for instance the NOT of ``NOT
LIKE``. So all arguments that are not listed are refused, including those of later sqlglot versions.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.foreign_clauses import filled_parts

_THIS = frozenset({"this"})
_TWO = frozenset({"this", "expression"})
_SEVERAL = frozenset({"this", "expressions"})
_ORDERED = frozenset({"this", "desc", "nulls_first"})

_QUERIES: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {
            "expressions",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "distinct",
            "order",
            "limit",
        }
    ),
    exp.Union: frozenset({"this", "expression"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.Table: frozenset({"this", "alias"}),
    exp.TableAlias: _THIS,
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.From: _THIS,
    exp.Join: frozenset({"this", "on", "side", "kind"}),
    exp.Where: _THIS,
    exp.Group: frozenset({"expressions"}),
    exp.Having: _THIS,
    exp.Distinct: frozenset({"expressions"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: _ORDERED,
    exp.Limit: frozenset({"expression"}),
    exp.Star: frozenset(),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table"}),
    # EXPLODE(SEQUENCE(1, n)) repeats a row; changes of aggregate state use it.
    exp.Explode: _THIS,
    exp.Anonymous: _SEVERAL,
}
_OPERATORS: Mapping[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _TWO),
    **dict.fromkeys((exp.NullSafeEQ, exp.And, exp.Or), _TWO),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _TWO),
    **dict.fromkeys((exp.Paren, exp.Not, exp.Neg, exp.Null, exp.Boolean), _THIS),
    # Flags for other dialects' division.
    exp.Div: frozenset({"this", "expression", "typed", "safe"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Is: _TWO,
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.In: _SEVERAL,
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Cast: frozenset({"this", "to", "suffix"}),
    exp.TryCast: frozenset({"this", "to", "suffix"}),
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: _THIS,
    exp.If: frozenset({"this", "true", "false"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.Interval: frozenset({"this", "unit"}),
    exp.Var: _THIS,
}
_FUNCTIONS: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Count: frozenset({"this", "big_int"}),
    **dict.fromkeys((exp.Sum, exp.Avg, exp.Min, exp.Max, exp.CountIf), _THIS),
    **dict.fromkeys((exp.LogicalAnd, exp.LogicalOr), _THIS),
    exp.Filter: _TWO,
    exp.Coalesce: frozenset({"this", "expressions", "is_nvl"}),
    exp.Nullif: _TWO,
    exp.Greatest: frozenset({"this", "expressions", "ignore_nulls"}),
    exp.Least: frozenset({"this", "expressions", "ignore_nulls"}),
    **dict.fromkeys((exp.Abs, exp.Year, exp.Month, exp.Day), _THIS),
    **dict.fromkeys((exp.Hour, exp.Minute, exp.Quarter), _THIS),
    exp.Extract: _TWO,
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    # The flag does not matter: in Spark an invalid date is an error, and strings are refused.
    exp.TsOrDsToDate: frozenset({"this", "safe"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Concat: frozenset({"expressions", "safe"}),
    # With a unit it counts whole days of 24 hours, as a BIGINT.
    exp.DateDiff: _TWO,
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank), frozenset[str]()),
    # RAISE_ERROR, of a text.
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Lag: frozenset({"this", "offset"}),
    exp.Lead: frozenset({"this", "offset"}),
}
CLOSED_LIST = {**_QUERIES, **_OPERATORS, **_FUNCTIONS}


def check_closed(query: exp.Expr) -> None:
    """Refuse a query with a node, or an argument of one, that is not on the list.

    Raises:
        NotTranslatedError: it has one.
    """
    for node in query.walk():
        known = CLOSED_LIST.get(type(node))
        if known is None:
            raise NotTranslatedError(f"{node.key.upper()}: {_text(node)}")
        parts = set(filled_parts(node))
        if not parts <= known:
            raise NotTranslatedError(f"{', '.join(sorted(parts - known))} of {_text(node)}")


def _text(node: exp.Expr) -> str:
    return to_sql(node) if isinstance(node, exp.Condition) else node.key
