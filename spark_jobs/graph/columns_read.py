"""The columns of each table that a query reads; changes in others cannot affect its result."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.qualify_tables import qualify_tables

from spark_jobs.graph.dialect import dialect, parse
from spark_jobs.names import Layer


def read_of_tables(query: str) -> dict[str, frozenset[str] | None]:
    """The columns that a query reads, in lower case, by ``layer.name``; may contain too many.

    >>> found = read_of_tables("SELECT o.a FROM silver.orders AS o WHERE o.b > 1 ORDER BY c")
    >>> sorted(found["silver.orders"])
    ['a', 'b', 'c']

    Args:
        query: qualified Spark SQL, as in ``GoldEntry.query``.

    Returns:
        None for a table whose columns are all read.
    """
    # Make aliases unique, also if a subquery reuses a name.
    tree = qualify_tables(parse(query), canonicalize_table_aliases=True, dialect=dialect())
    tables = {
        node.alias_or_name.lower(): f"{node.db}.{node.name}".lower()
        for node in tree.find_all(exp.Table)
        if node.db.lower() in set(Layer)
    }
    # COUNT(*) reads no column; any other remaining star reads all.
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return dict.fromkeys(tables.values())
    found: dict[str, set[str]] = {table: set() for table in tables.values()}
    for column in tree.find_all(exp.Column):
        # A name without a table may be an output, or a column of any table.
        owner = tables.get(column.table.lower())
        for table in [owner] if owner else [] if column.table else found:
            found[table].add(column.name.lower())
    return {table: frozenset(columns) for table, columns in found.items()}
