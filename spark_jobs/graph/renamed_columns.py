"""Rewrites relations whose alias renames their columns, as in ``FROM t AS s(a, b)``."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import AliasColumnsError

# Key of a query's metadata: the number of names of its alias, and where they stand.
_NAMES = "names"


def with_renaming_apart(tree: exp.Query) -> exp.Query:
    """Put a query of its own around each relation whose columns are renamed.

    sqlglot gives the new names to the outputs of a renamed query, where its ORDER BY would read
    them, and ignores those of a table. VALUES without names get those of Spark.

    >>> from spark_jobs.graph.dialect import parse, to_sql
    >>> to_sql(with_renaming_apart(parse("SELECT s.a FROM t AS s(a)")))
    'SELECT s.a FROM (SELECT * FROM t) AS s(a)'
    >>> to_sql(with_renaming_apart(parse("SELECT a FROM (SELECT b FROM t ORDER BY b) AS s(a)")))
    'SELECT a FROM (SELECT * FROM (SELECT b FROM t ORDER BY b) AS named) AS s(a)'

    >>> to_sql(with_renaming_apart(parse("SELECT v.col2 FROM VALUES (1, 2) AS v")))
    'SELECT v.col2 FROM VALUES (1, 2) AS v(col1, col2)'

    Args:
        tree: the parsed query; it is changed.
    """
    for values in tree.find_all(exp.Values):
        if isinstance(values.parent, exp.From | exp.Join) and not values.alias_column_names:
            _name_values(values)
    for node in list(tree.find_all(exp.CTE, exp.Subquery, exp.Table)):
        if not node.alias_column_names:
            continue
        names = node.args["alias"].columns
        if isinstance(node, exp.Table):
            # A table function names its columns itself.
            query = _wrapped(node) if isinstance(node.this, exp.Identifier) else None
        elif isinstance(node.this, exp.Query) and node.this.args.get("order"):
            query = exp.select("*").from_(node.this.subquery("named", copy=False), copy=False)
            node.set("this", query)
        else:
            query = node.this
        if isinstance(query, exp.Query):
            query.meta[_NAMES] = len(names), names[0].meta.get("start")
    return tree


def wrong_names(tree: exp.Query, source: SqlText, subject: str) -> Iterator[AliasColumnsError]:
    """The aliases that name more or fewer columns than there are.

    Args:
        tree: what ``with_renaming_apart`` returned, with its stars expanded.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for query in tree.find_all(exp.Query):
        count, start = query.meta.get(_NAMES, (0, None))
        # A generator has several columns.
        several = any(isinstance(one.unalias(), exp.UDTF | exp.Aliases) for one in query.selects)
        if not count or query.is_star or several or count == len(query.selects):
            continue
        location = source.of(query) if start is None else source.at(start)
        yield AliasColumnsError(subject, count, len(query.selects), location=location)
    for values in tree.find_all(exp.Values):
        count, width = len(values.alias_column_names), _width(values)
        if count and count != width:
            yield AliasColumnsError(subject, count, width, location=source.of(values))


def _wrapped(node: exp.Table) -> exp.Select:
    """Replace a table by a query of it, which gets the alias."""
    alias, joins = node.args.pop("alias"), node.args.pop("joins", None)
    query = exp.select("*").from_(node.copy(), copy=False)
    node.replace(exp.Subquery(this=query, alias=alias, joins=joins))
    return query


def _name_values(node: exp.Values) -> None:
    columns = [exp.to_identifier(f"col{at}") for at in range(1, 1 + _width(node))]
    alias = node.args.get("alias") or exp.TableAlias()
    alias.set("columns", columns)
    node.set("alias", alias)


def _width(values: exp.Values) -> int:
    row = values.expressions[0]
    return len(row.expressions) if isinstance(row, exp.Tuple) else 1
