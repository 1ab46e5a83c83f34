"""A view's SQL over tables without rows, for Spark's analyzer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

from sqlglot import exp

from spark_jobs.graph.columns_read import read_of_tables
from spark_jobs.graph.dialect import dialect, parse, to_sql
from spark_jobs.graph.manifest import SOURCE_RELATION, GoldEntry, Manifest, SilverEntry
from spark_jobs.graph.sql import pin_tables, table_nodes
from spark_jobs.graph.typed_source import typed_columns
from spark_jobs.names import Layer, TableName

# What may stand behind a table in FROM.
_BEHIND = ("joins", "laterals", "pivots", "sample")
# The alias of a query whose types only Spark knows.
_MADE = "made"


class ViewsOverNoRows:
    """The queries of a project's gold views over tables without rows, made when asked for."""

    def __init__(self, manifest: Manifest) -> None:
        self._columns: dict[str, Mapping[str, str]] = {
            str(source.table_name): typed_columns(source) for source in manifest.sources.values()
        }
        stored: list[SilverEntry | GoldEntry] = [*manifest.silver.values()]
        stored += manifest.gold.values()
        for table in stored:
            self._columns[str(table.table_name)] = {one.name: one.type for one in table.columns}
        self._manifest = manifest
        self._digests: dict[str, str] = {}

    def views(self) -> list[str]:
        """The views without an undeclared table below them, by name."""
        whole: set[str] = {one for one in self._columns if not one.startswith(f"{Layer.GOLD}.")}
        found = []
        for tier in self._manifest.gold_by_tier():
            views = [view for view in tier if whole.issuperset(view.inputs)]
            whole.update(str(view.table_name) for view in views)
            found += [view.name for view in views]
        return sorted(found)

    def digest(self, view: str) -> str:
        """A digest that changes if the query over no rows changes."""
        if view not in self._digests:
            entry = self._manifest.gold[view]
            inputs = [
                (table, list(self._columns[table].items()), self._made(table, digest=True))
                for table in entry.inputs
            ]
            content = json.dumps([entry.query, entry.sql, inputs]).encode()
            self._digests[view] = hashlib.sha256(content).hexdigest()
        return self._digests[view]

    def query(self, view: str) -> str:
        """The query of a view over no rows."""
        entry = self._manifest.gold[view]
        made = {table: text for table in entry.inputs if (text := self._made(table))}
        return over_no_rows(entry.query, self._columns, made)

    def texts(self, view: str) -> list[str]:
        """All texts of a view that a refresh may run, over no rows.

        The author's own for a full refresh; what the compiler reads of it, if it is maintained.
        """
        entry = self._manifest.gold[view]
        columns = _columns_read(entry.query, self._columns)
        empty = {one: to_sql(_empty(columns(one), self._made(one))) for one in entry.inputs}
        written = pin_tables(entry.sql, {one: f"({text})" for one, text in empty.items()})
        maintained = entry.maintenance is not None and not entry.maintenance.obstacle
        return [written, *([self.query(view)] if maintained else [])]

    def _made(self, table: str, *, digest: bool = False) -> str | None:
        """What makes the columns of a table whose types only Spark knows; None for others."""
        name = TableName.parse(table)
        if name.layer is Layer.BRONZE or all(self._columns[table].values()):
            return None
        if name.layer is Layer.GOLD:
            return self.digest(name.name) if digest else self.query(name.name)
        entry = self._manifest.silver[name.name]
        typed = typed_columns(self._manifest.sources[entry.source])
        if digest:
            return json.dumps([entry.projection, list(typed.items())])
        return over_no_rows(entry.projection, {SOURCE_RELATION: typed})


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
    tree, read = parse(query), _columns_read(query, columns)
    for node in list(table_nodes(tree)):
        name = f"{node.db}.{node.name}".lower().removeprefix(".")
        empty = _empty(read(name), (made or {}).get(name))
        alias = exp.TableAlias(this=exp.to_identifier(node.alias_or_name))
        rows = exp.Subquery(this=empty, alias=alias)
        for key in _BEHIND:
            if node.args.get(key):
                rows.set(key, node.args[key])
        node.replace(rows)
    return to_sql(tree)


def _columns_read(
    query: str, columns: Mapping[str, Mapping[str, str]]
) -> Callable[[str], Mapping[str, str]]:
    """Returns the columns of a table that a query needs; for the arguments see above."""
    # A join by equal names depends on all of them.
    by_name = any(one.args.get("using") or one.method for one in parse(query).find_all(exp.Join))
    read = {} if by_name else read_of_tables(query)

    def found(table: str) -> Mapping[str, str]:
        only = read.get(table)
        known = columns[table].items()
        return {one: kind for one, kind in known if only is None or one.lower() in only}

    return found


def _empty(columns: Mapping[str, str], made: str | None) -> exp.Select:
    selected: list[exp.Expr] = [
        exp.alias_(exp.cast(exp.null(), kind, dialect=dialect()), name, quoted=True)
        if kind
        else exp.column(exp.to_identifier(name, quoted=True), table=_MADE)
        for name, kind in columns.items()
    ]
    empty = exp.select(*(selected or [exp.Literal.number(1)])).where(exp.false())
    if made is None:
        return empty
    alias = exp.TableAlias(this=exp.to_identifier(_MADE))
    return empty.from_(exp.Subquery(this=parse(made), alias=alias))
