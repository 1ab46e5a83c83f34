"""A plain DuckDB that runs what maintenance programs say: the rules are the same on any engine."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from sqlglot import exp

from spark_jobs.graph.dialect import parse
from tests.properties.tables import Row, Types, plain, values_query

_MOST_TABLES = 200


class Engine:
    """A database with the tables before and after a change.

    Attributes:
        splits: whether aggregate state may lie in parts here.
    """

    splits = True

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": "1"})
        # Its rewriting of unions and outer joins over the same subquery loses rows.
        self.connection.execute("PRAGMA disable_optimizer")
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute("CREATE MACRO sequence(a, b) AS generate_series(a, b)")
        self._texts: dict[int, tuple[exp.Expr, str]] = {}
        self._tables: dict[str, str] = {}

    def load(self, name: str, types: Types, rows: Sequence[Row]) -> None:
        """Name rows; a weight in addition is a column like others."""
        text = values_query(types, rows)
        table = self._tables.get(text)
        if table is None:
            # The same rows come again, as what was before the next change.
            table = self._tables[text] = f"rows_{len(self._tables)}"
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {text}")
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS FROM {table}")

    def rows(self, query: exp.Expr) -> list[Row]:
        """The rows of a query in Spark's words."""
        return self.plain_rows(query)

    def plain_rows(self, query: exp.Expr) -> list[Row]:
        """The same, from this engine alone."""
        found = self.connection.execute(self.text(query)).fetchall()
        return [tuple(map(plain, row)) for row in found]

    def table(self, name: str) -> list[Row]:
        """The rows of a relation that was computed."""
        return [tuple(map(plain, r)) for r in self.connection.execute(f"FROM {name}").fetchall()]

    def create(self, name: str, query: exp.Expr) -> None:
        """Compute a query once and name its rows."""
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {self.text(query)}")

    def text(self, query: exp.Expr) -> str:
        """A query in DuckDB's words; that of a tree is written once."""
        found = self._texts.get(id(query))
        if found is None:
            found = self._texts[id(query)] = (query, _in_duckdb(query))
        return found[1]

    def forget(self) -> None:
        """Another view comes: its queries are others."""
        self._texts.clear()
        if len(self._tables) > _MOST_TABLES:
            self._tables.clear()


def _in_duckdb(query: exp.Expr) -> str:
    outer = [one for one in query.find_all(exp.Lateral) if one.args.get("outer")]
    if outer:
        query = query.copy()
        for one in list(query.find_all(exp.Lateral)):
            _written_out(one)
    return query.sql(dialect="duckdb")


def _written_out(lateral: exp.Lateral) -> None:
    """LATERAL VIEW OUTER as a join; the parser's writer leaves the OUTER away."""
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
    """A query whose grouping sets give no row for no rows, as Spark's do and DuckDB's do not."""
    for select in query.find_all(exp.Select):
        group = select.args.get("group")
        if group is None or not group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            continue
        some = parse("COUNT(*) > 0")
        having = select.args.get("having")
        select.set("having", exp.Having(this=exp.and_(having.this, some) if having else some))
    return query
