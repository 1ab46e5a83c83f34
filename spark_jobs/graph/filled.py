"""The columns of a query that are never NULL whatever its inputs hold, as the SQL shows it."""

from __future__ import annotations

from sqlglot import exp

from spark_jobs.graph.dialect import parse

_COUNTS = (exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank)
_AROUND = (exp.Paren, exp.Filter, exp.Window, exp.Cast)


def filled_columns(query: str) -> frozenset[str]:
    """Counts, positions, constants, and COALESCE with one of them; not all that there are.

    >>> sorted(filled_columns("SELECT COUNT(*) AS n, COALESCE(t.b, 0) AS b, t.c FROM t"))
    ['b', 'n']

    Args:
        query: Spark SQL.
    """
    tree = parse(query)
    if not isinstance(tree, exp.Select):
        return frozenset()
    return frozenset(one.alias_or_name for one in tree.selects if _never(one.unalias()))


def _never(node: exp.Expr) -> bool:
    # TRY_CAST makes NULL of what it cannot cast; CAST fails.
    if isinstance(node, _AROUND) and not node.args.get("safe"):
        return _never(node.this)
    if isinstance(node, exp.Coalesce):
        return any(_never(one) for one in (node.this, *node.expressions))
    return isinstance(node, (*_COUNTS, exp.Literal, exp.Boolean))
