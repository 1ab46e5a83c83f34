"""A plain DuckDB that executes maintenance programs, which are the same on any engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import duckdb
from sqlglot import exp

from spark_jobs.graph.dialect import parse
from tests.properties.tables import Row, Types, plain, values_query

_MOST_TABLES = 200
# The name of a relation in a text, instead of the table that holds its rows now.
_NAME = re.compile(r'"<(\w+)>"')
_OTHERWISE = (exp.Table, exp.CTE, exp.Lateral, exp.TsOrDsAdd, exp.CountIf)


class Engine:
    """A database with the tables before and after a change.

    Attributes:
        splits: whether aggregate state may be stored in parts.
    """

    splits = True

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": "1"})
        # This optimizer rule loses rows in unions and outer joins of the same subquery.
        self.connection.execute("PRAGMA disable_optimizer")
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute("CREATE MACRO sequence(a, b) AS generate_series(a, b)")
        self.connection.execute("CREATE MACRO raise_error(text) AS error(text)")
        self._texts: dict[int, tuple[exp.Expr, str]] = {}
        self._loaded: dict[str, str] = {}
        self._tables: dict[str, str] = {}

    def load(self, name: str, types: Types, rows: Sequence[Row]) -> None:
        """Register rows under a name; a weight is an additional column."""
        text = values_query(types, rows)
        table = self._loaded.get(text)
        if table is None:
            # The same rows are loaded again as the state before the next change.
            table = self._loaded[text] = f"rows_{len(self._loaded)}"
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {text}")
        self._tables[name] = table

    def rows(self, query: exp.Expr) -> list[Row]:
        """The rows of a query in Spark's dialect."""
        return self.plain_rows(query)

    def plain_rows(self, query: exp.Expr) -> list[Row]:
        """The same, from this engine only."""
        found = self.connection.execute(self.text(query)).fetchall()
        return [tuple(map(plain, row)) for row in found]

    def table(self, name: str) -> list[Row]:
        """The rows of a relation."""
        found = self.connection.execute(f"FROM {self._tables[name]}").fetchall()
        return [tuple(map(plain, row)) for row in found]

    def create(self, name: str, query: exp.Expr) -> None:
        """Compute a query once and register its rows."""
        text = self.text(query)
        # Its own last table may hold the rows of another name.
        held = {table for other, table in self._tables.items() if other != name}
        table = name
        while table in held:
            table += "_again"
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {text}")
        self._tables[name] = table

    def also(self, name: str, known: str) -> None:
        """Give the rows of a relation a second name, which keeps them."""
        self._tables[name] = self._tables[known]

    def types(self, name: str) -> dict[str, str]:
        """The types of a relation's columns, as DuckDB has them."""
        found = self.connection.execute(f"DESCRIBE {self._tables[name]}").fetchall()
        return {str(row[0]): str(row[1]) for row in found}

    def text(self, query: exp.Expr) -> str:
        """A query in DuckDB's dialect over the tables as they are; generated once per tree."""
        found = self._texts.get(id(query))
        if found is None:
            found = self._texts[id(query)] = (query, _in_duckdb(query))
        return _NAME.sub(lambda name: self._tables[name[1]], found[1])

    def forget(self) -> None:
        """Forget texts and names, for the next view, which writes over the tables."""
        self._texts.clear()
        self._tables.clear()
        if len(self._loaded) > _MOST_TABLES:
            self._loaded.clear()


def _in_duckdb(query: exp.Expr) -> str:
    query = query.copy()
    # Copies of what is marked are marked too.
    found = _nodes(query)
    _mark(found)
    if found[exp.Lateral]:
        for one in found[exp.Lateral]:
            _written_out(one)
        found = _nodes(query)
    for added in reversed(found[exp.TsOrDsAdd]):
        # A date and an interval are a timestamp here, and a date in Spark.
        added.replace(exp.cast(added.copy(), exp.DType.DATE))
    for counted in reversed(found[exp.CountIf]):
        # NULL here if no condition is known, and 0 in Spark.
        condition = exp.func("IF", counted.this.copy(), exp.Literal.number(1), exp.null())
        counted.replace(exp.Count(this=condition))
    return query.sql(dialect="duckdb")


def _nodes(query: exp.Expr) -> dict[type, list[Any]]:
    """The nodes of a query that are written otherwise in DuckDB, by type, the outer ones first."""
    found: dict[type, list[Any]] = {kind: [] for kind in _OTHERWISE}
    for node in query.walk():
        if type(node) in found:
            found[type(node)].append(node)
    return found


def _mark(found: dict[type, list[Any]]) -> None:
    """Put marks instead of the names of relations; an alias keeps each name."""
    common = {one.alias for one in found[exp.CTE]}
    for table in found[exp.Table]:
        name = table.name
        if not isinstance(table.this, exp.Identifier) or name in common:
            continue
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
        table.set("this", exp.to_identifier(f"<{name}>", quoted=True))


def _written_out(lateral: exp.Lateral) -> None:
    """LATERAL VIEW OUTER as a join; sqlglot's generator omits the OUTER."""
    select = lateral.parent
    if not (lateral.args.get("outer") and isinstance(select, exp.Select)):
        return
    alias = lateral.args["alias"]
    unnest = exp.Unnest(
        expressions=[lateral.this.this.copy()],
        alias=exp.TableAlias(this=alias.this.copy(), columns=[one.copy() for one in alias.columns]),
    )
    join = exp.Join(this=unnest, side="LEFT", on=exp.true())
    select.set("laterals", [one for one in select.args["laterals"] if one is not lateral])
    select.append("joins", join)


def by_spark(query: exp.Expr) -> exp.Expr:
    """A query whose grouping sets return no row for empty input, as in Spark but not in DuckDB."""
    for select in query.find_all(exp.Select):
        group = select.args.get("group")
        if group is None or not group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            continue
        some = parse("COUNT(*) > 0")
        having = select.args.get("having")
        select.set("having", exp.Having(this=exp.and_(having.this, some) if having else some))
    return query
