"""A view's SQL over tables without rows, for Spark's analyzer."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.dialect import LakehouseSpark, parse, to_sql
from spark_jobs.graph.sql import table_nodes

# What may stand behind a table in FROM.
_BEHIND = ("joins", "laterals", "pivots", "sample")


def over_no_rows(query: str, columns: Mapping[str, Mapping[str, str]]) -> str:
    """A query in which each table is a subquery of typed columns without rows.

    >>> over_no_rows("SELECT o.a FROM silver.orders AS o", {"silver.orders": {"a": "int"}})
    'SELECT o.a FROM (SELECT CAST(NULL AS INT) AS `a` WHERE FALSE) AS o'

    Args:
        query: Spark SQL; tables are written ``layer.name``.
        columns: Spark SQL types by column, of each table by its name in SQL.
    """
    tree = parse(query)
    for node in list(table_nodes(tree)):
        typed = [
            exp.alias_(exp.cast(exp.null(), kind, dialect=LakehouseSpark), name, quoted=True)
            for name, kind in columns[f"{node.db}.{node.name}".lower()].items()
        ]
        empty = exp.select(*typed).where(exp.false())
        alias = exp.TableAlias(this=exp.to_identifier(node.alias_or_name))
        rows = exp.Subquery(this=empty, alias=alias)
        for key in _BEHIND:
            if node.args.get(key):
                rows.set(key, node.args[key])
        node.replace(rows)
    return to_sql(tree)
