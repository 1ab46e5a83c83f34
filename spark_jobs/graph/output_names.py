"""The names that Spark gives to outputs without an alias."""

from __future__ import annotations

from sqlglot import exp

from spark_jobs.graph.sql import relations_of


def output_name(output: exp.Expr) -> str:
    """The name of an output; "" if Spark makes one of its text, which nobody would write.

    sqlglot names ``place['City']``, ``tags[0].City`` and ``CAST(place.City AS STRING)`` too.

    Args:
        output: of a query that is not qualified.

    >>> from spark_jobs.graph.dialect import parse
    >>> tree = parse("SELECT a, t.a, (b).c.d, CAST(t.e AS INT), f AS g FROM t")
    >>> [output_name(one) for one in tree.selects]
    ['a', 'a', 'd', 'e', 'g']
    >>> tree = parse("SELECT b['c'], b[0].c, CAST(b.c AS INT), f(a).c, CAST(1 AS INT) FROM t")
    >>> [output_name(one) for one in tree.selects]
    ['', '', '', '', '']
    """
    if isinstance(output, exp.Cast):
        return output.output_name if _is_plain(output.this) else ""
    inner = output
    while isinstance(inner, exp.Dot | exp.Paren):
        inner = inner.this
    whole = inner is output and not isinstance(output, exp.Bracket)
    return str(output.output_name) if whole or isinstance(inner, exp.Column) else ""


def with_named_outputs(tree: exp.Query) -> None:
    """Give outputs of subqueries that have no name an alias, so that nothing finds them by one.

    Args:
        tree: a query that is not qualified; it is changed.
    """
    for select in tree.find_all(exp.Select):
        for at, output in enumerate(list(select.expressions)):
            if output.output_name and not output.is_star and not output_name(output):
                output.replace(exp.alias_(output.copy(), f"_col_{at}"))


def _is_plain(value: exp.Expr) -> bool:
    """Whether a value is a column and no field of one: Spark knows the names of relations."""
    if not isinstance(value, exp.Column) or not value.table:
        return isinstance(value, exp.Column)
    select = value.parent_select
    names = (one.alias_or_name.lower() for one in relations_of(select)) if select else ()
    return value.table.lower() in names
