"""Which tables a query reads, and the query over other relations in their place.

Tables are replaced in the text itself, so that Spark runs every other word as it was written; a
query that passed through a parser and back may come to mean something else. Comments and hints are
left out, because two readers may end them at different places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.parsing import SqlText, plain_sql
from spark_jobs.names import Layer, TableName

# What other layers hold of a statement: they pass it on and never look into it.
Relation = exp.Table
Query = exp.Query

_LAYERS = frozenset(Layer)
# What stands for a text that is not shown.
MASK = "***"


def tables_of(query: str) -> tuple[TableName, ...]:
    """The lakehouse tables that a query reads, sorted, each once.

    Raises:
        InvalidNameError: a table of a layer whose name is not an identifier.

    >>> tables_of("WITH users AS (SELECT 1 AS a) SELECT a FROM users JOIN silver.orders AS o")
    (TableName(layer=<Layer.SILVER: 'silver'>, name='orders'),)
    """
    found = {
        TableName.parse(f"{node.db.lower()}.{node.name.lower()}")
        for node in table_nodes(parse(query))
        if node.db.lower() in _LAYERS
    }
    return tuple(sorted(found))


def table_nodes(tree: exp.Expr) -> Iterator[exp.Table]:
    """Every reference to a stored table; not those to a CTE and not table functions."""
    shadowed = {
        id(source_node)
        for scope in traverse_scope(tree)
        for name, (source_node, source) in scope.selected_sources.items()
        if not isinstance(source, exp.Table) and isinstance(source_node, exp.Table)
    }
    for node in tree.find_all(exp.Table):
        if id(node) not in shadowed and isinstance(node.this, exp.Identifier):
            yield node


def pin_tables(query: str, relations: Mapping[str, exp.Expr | str]) -> str:
    """The query with each table ``layer.name`` replaced by its relation.

    Args:
        query: one SELECT in Spark SQL. Its comments and hints are left out.
        relations: for each table name a relation: a node, or the SQL of one. A table that is
            not among them stays as it is.

    Raises:
        SqlSyntaxError: Spark reads the text otherwise than it was checked.

    >>> pin_tables("SELECT orders.a FROM silver.orders", {"silver.orders": "pinned"})
    'SELECT orders.a FROM pinned AS orders'
    """
    query = plain_sql(SqlText("query", query))
    tree = parse(query)
    edits: list[tuple[int, int, str]] = []
    for node in table_nodes(tree):
        relation = relations.get(f"{node.db}.{node.name}".lower())
        if relation is None:
            continue
        text = relation if isinstance(relation, str) else to_sql(relation)
        # Spark calls a table without an alias by its last name, and so must the replacement.
        alias = "" if node.alias else f" AS {node.this.sql(dialect='spark')}"
        edits.append((*_span(node), text + alias))
    edits += [(*span, "") for span in _layer_qualifiers(tree, relations)]
    for start, end, text in sorted(edits, reverse=True):
        query = query[:start] + text + query[end:]
    return query


def _span(node: exp.Table) -> tuple[int, int]:
    parts = [part.meta for part in node.parts]
    return parts[0]["start"], parts[-1]["end"] + 1


def _layer_qualifiers(
    tree: exp.Expr, relations: Mapping[str, exp.Expr | str]
) -> Iterator[tuple[int, int]]:
    """The ``layer.`` in columns that are written ``layer.table.column``."""
    for column in tree.find_all(exp.Column):
        layer = column.args.get("db")
        table = column.args.get("table")
        if layer and table and f"{layer.name}.{column.table}".lower() in relations:
            yield layer.meta["start"], table.meta["start"]


def masked_relation(
    relation: Relation, columns: Sequence[tuple[str, str]], masked: Collection[str]
) -> str:
    """A relation with the values of some columns taken away: texts as stars, others as NULL.

    Args:
        relation: what is read.
        columns: names and Spark SQL types of all of its columns.
        masked: those to be masked, in lower case.

    >>> masked_relation(named_relation("t"), [("a", "int"), ("b", "string")], {"b"})
    "(SELECT `a`, IF(`b` IS NULL, NULL, '***') AS `b` FROM t)"
    """

    def shown(name: str, kind: str) -> str:
        quoted = to_sql(exp.to_identifier(name, quoted=True))
        if name.lower() not in masked:
            return quoted
        if kind == "string":
            return f"IF({quoted} IS NULL, NULL, '{MASK}') AS {quoted}"
        return f"CAST(NULL AS {kind}) AS {quoted}"

    return f"(SELECT {', '.join(shown(*one) for one in columns)} FROM {to_sql(relation)})"


def named_relation(name: str) -> Relation:
    """A relation that the session knows by a name.

    >>> to_sql(named_relation("__orders"))
    '__orders'
    """
    return exp.to_table(name)


def text_literal(text: str) -> str:
    """A text as SQL writes it.

    >>> text_literal("/lake/a b")
    "'/lake/a b'"
    """
    return to_sql(exp.Literal.string(text))


def delta_relation(location: str, version: int | None = None) -> Relation:
    """The Delta table at a location, at one version or the newest.

    >>> to_sql(delta_relation("/lake/silver/a b", 3))
    'delta.`/lake/silver/a b` VERSION AS OF 3'
    """
    table = exp.Table(this=exp.to_identifier(location, quoted=True), db=exp.to_identifier("delta"))
    if version is not None:
        table.set(
            "version",
            exp.Version(this="VERSION", kind="AS OF", expression=exp.Literal.number(version)),
        )
    return table
