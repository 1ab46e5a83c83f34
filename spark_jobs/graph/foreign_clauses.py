"""Finds clauses that sqlglot reads in Spark's dialect, but that Spark does not have.

Whatever reads a tree knows Spark's clauses. A clause that it does not know would be ignored, and
the rows would be others than those of the SQL as written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

_NESTED: Final = frozenset({"with_", "laterals", "joins", "pivots", "sample"})
_ORDERED: Final = frozenset({"order", "limit", "offset", "sort", "cluster", "distribute"})
# The parts of each clause that Spark has.
_PARTS: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    exp.Select: _NESTED
    | _ORDERED
    | {
        "expressions",
        "hint",
        "distinct",
        "from_",
        "where",
        "group",
        "having",
        "qualify",
        "windows",
    },
    exp.Subquery: _NESTED | _ORDERED | {"this", "alias", "where", "group", "having", "windows"},
    **dict.fromkeys(
        (exp.Union, exp.Except, exp.Intersect),
        _NESTED | _ORDERED | {"this", "expression", "distinct"},
    ),
    exp.Table: _NESTED | {"this", "alias", "db", "catalog", "version"},
    exp.Join: frozenset({"this", "on", "side", "kind", "using", "method", "pivots"}),
    exp.Lateral: frozenset({"this", "view", "outer", "alias"}),
    exp.Group: frozenset({"expressions", "grouping_sets", "cube", "rollup", "all"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    # Within a call, the ordered value as well.
    exp.Order: frozenset({"this", "expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Values: frozenset({"expressions", "alias", "pivots"}),
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias"}),
}
_WORDS: Final[Mapping[tuple[type[exp.Expr], str], str]] = {
    (exp.Select, "locks"): "FOR UPDATE",
    (exp.Table, "hints"): "table hints like WITH (NOLOCK)",
    (exp.Group, "totals"): "WITH TOTALS",
    (exp.Limit, "limit_options"): "PERCENT or WITH TIES behind LIMIT",
    (exp.Distinct, "on"): "DISTINCT ON",
    (exp.CTE, "materialized"): "MATERIALIZED",
    (exp.Lateral, "cross_apply"): "APPLY",
    (exp.Lateral, "ordinality"): "WITH ORDINALITY",
    (exp.Union, "by_name"): "BY NAME or CORRESPONDING",
}
_JOINS: Final = frozenset(
    {
        *((side, kind) for side in ("LEFT", "RIGHT", "FULL") for kind in ("", "OUTER")),
        *(("", kind) for kind in ("", "INNER", "CROSS")),
        *((side, kind) for side in ("", "LEFT") for kind in ("SEMI", "ANTI")),
    }
)


def foreign_clauses(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """The clauses of a parsed query that Spark does not have.

    >>> from spark_jobs.graph.dialect import dialect
    >>> [tree] = dialect().parse("select a from t asof join u order by a limit 3 with ties")
    >>> [name for _, name in foreign_clauses(tree)]
    ['PERCENT or WITH TIES behind LIMIT', 'ASOF JOIN']

    Returns:
        each clause, and what it is called.
    """
    for node in tree.walk():
        if isinstance(node, exp.Fetch):
            yield node, "FETCH"
        if isinstance(node, exp.WindowSpec) and node.args.get("kind") == "GROUPS":
            yield node, "GROUPS in a window, but ROWS and RANGE"
        yield from ((node, word) for word in _within_clauses(node))
        for late in _late_joins(node):
            yield late, "JOIN behind LATERAL VIEW: write the join first, or the view in a subquery"
        if isinstance(node, exp.Join) and (join := _foreign_join(node)) is not None:
            yield node, join
        kind = type(node)
        if kind in _PARTS:
            for name in filled_parts(node):
                if name not in _PARTS[kind]:
                    word = name.rstrip("_").replace("_", " ").upper()
                    yield node, _WORDS.get((kind, name), word)


def _within_clauses(node: exp.Expr) -> Iterator[str]:
    """What Spark does not have of clauses that it has."""
    if isinstance(node, exp.Window) and node.args.get("alias") and _refines(node):
        yield "window that adds to another one: OVER (w ROWS ...)"
    if isinstance(node, exp.Between) and node.args.get("symmetric") is not None:
        yield "BETWEEN SYMMETRIC"
    if isinstance(node, exp.Interval) and _computed(node):
        yield "INTERVAL of an expression, but MAKE_INTERVAL and n * INTERVAL '1' DAY"
    if isinstance(node, exp.Lateral) and node.args.get("view") and not _named(node):
        yield "LATERAL VIEW without a name for its table: LATERAL VIEW EXPLODE(a) t AS b"
    if isinstance(node, exp.In) and not any(filled_parts(node)[1:]):
        yield "IN without a value: IN ()"


def _late_joins(node: exp.Expr) -> list[exp.Expr]:
    """The joins that were written behind a LATERAL VIEW; the tree has them before it."""
    views = [one for one in node.args.get("laterals") or () if one.args.get("view")]
    first = min((_start(one) for one in views), default=0)
    return [one for one in node.args.get("joins") or () if views and _start(one) > first]


def _start(node: exp.Expr) -> int:
    return min((one.meta["start"] for one in node.walk() if "start" in one.meta), default=0)


def _refines(node: exp.Window) -> bool:
    return any(node.args.get(one) for one in ("partition_by", "order", "spec"))


def _computed(node: exp.Interval) -> bool:
    value = node.this.this if isinstance(node.this, exp.Neg) else node.this
    # A plus before a number is written as a call.
    signed = isinstance(value, exp.Anonymous) and value.name == "POSITIVE"
    value = value.expressions[0] if signed else value
    return value is not None and not isinstance(value, exp.Literal)


def _named(node: exp.Lateral) -> bool:
    alias = node.args.get("alias")
    return alias is not None and bool(alias.name or alias.columns)


def filled_parts(node: exp.Expr) -> list[str]:
    """The parts of a node that were written."""
    return [name for name, value in node.args.items() if value not in (None, False, [], "")]


def _foreign_join(node: exp.Join) -> str | None:
    side, kind, method = node.side.upper(), node.kind.upper(), node.method.upper()
    some = kind in {"SEMI", "ANTI"}
    if (side, kind) in _JOINS and (not method or (method == "NATURAL" and not some)):
        return None
    words = filter(None, (method, side, kind.removesuffix("_JOIN"), "JOIN"))
    return " ".join(words)
