"""A view's SQL over tables without rows, for Spark's analyzer."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.dialect import LakehouseSpark, parse, to_sql
from spark_jobs.graph.manifest import SOURCE_RELATION, Manifest
from spark_jobs.graph.sql import table_nodes
from spark_jobs.graph.typed_source import typed_columns

# What may stand behind a table in FROM.
_BEHIND = ("joins", "laterals", "pivots", "sample")
# The alias of a query whose types only Spark knows.
_MADE = "made"


def views_over_no_rows(manifest: Manifest) -> dict[str, str]:
    """The queries of all gold views, by name; without those that read an undeclared table."""
    columns: dict[str, Mapping[str, str]] = {}
    made: dict[str, str] = {}
    for source in manifest.sources.values():
        columns[str(source.table_name)] = typed_columns(source)
    for table in manifest.silver.values():
        name = str(table.table_name)
        columns[name] = {column.name: column.type for column in table.columns}
        if not all(columns[name].values()):
            typed = typed_columns(manifest.sources[table.source])
            made[name] = over_no_rows(table.projection, {SOURCE_RELATION: typed})
    found = {}
    for tier in manifest.gold_by_tier():
        for view in tier:
            name = str(view.table_name)
            try:
                found[view.name] = over_no_rows(view.query, columns, made)
            except KeyError:
                # Its own problem, or that of the table, is reported.
                continue
            columns[name] = {column.name: column.type for column in view.columns}
            if not all(columns[name].values()):
                made[name] = found[view.name]
    return found


def over_no_rows(
    query: str, columns: Mapping[str, Mapping[str, str]], made: Mapping[str, str] | None = None
) -> str:
    """A query in which each table is a subquery of typed columns without rows.

    >>> over_no_rows("SELECT o.a FROM silver.orders AS o", {"silver.orders": {"a": "int"}})
    'SELECT o.a FROM (SELECT CAST(NULL AS INT) AS `a` WHERE FALSE) AS o'
    >>> over_no_rows("SELECT x.a FROM gold.x", {"gold.x": {"a": ""}}, {"gold.x": "SELECT 1 AS a"})
    'SELECT x.a FROM (SELECT made.`a` FROM (SELECT 1 AS a) AS made WHERE FALSE) AS x'

    Args:
        query: Spark SQL; tables are written ``layer.name``.
        columns: Spark SQL types by column, of each table by its name in SQL; "" if only Spark
            knows the type.
        made: queries of the tables with such columns, over no rows.

    Raises:
        KeyError: a table is not among ``columns``.
    """
    tree = parse(query)
    for node in list(table_nodes(tree)):
        name = f"{node.db}.{node.name}".lower().removeprefix(".")
        empty = _empty(columns[name], (made or {}).get(name))
        alias = exp.TableAlias(this=exp.to_identifier(node.alias_or_name))
        rows = exp.Subquery(this=empty, alias=alias)
        for key in _BEHIND:
            if node.args.get(key):
                rows.set(key, node.args[key])
        node.replace(rows)
    return to_sql(tree)


def _empty(columns: Mapping[str, str], made: str | None) -> exp.Select:
    selected: list[exp.Expr] = [
        exp.alias_(exp.cast(exp.null(), kind, dialect=LakehouseSpark), name, quoted=True)
        if kind
        else exp.column(exp.to_identifier(name, quoted=True), table=_MADE)
        for name, kind in columns.items()
    ]
    empty = exp.select(*selected).where(exp.false())
    if made is None:
        return empty
    alias = exp.TableAlias(this=exp.to_identifier(_MADE))
    return empty.from_(exp.Subquery(this=parse(made), alias=alias))
