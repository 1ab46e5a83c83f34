"""Finds the tables that a query reads, and replaces them by other relations.

Tables are replaced in the text, so that Spark runs all other words as written: a query that was
parsed and generated again may change its meaning. Comments and hints are removed, because parsers
may disagree where they end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.parsing import SqlText, plain_sql
from spark_jobs.names import Layer, TableName

# Opaque to other layers, which only pass these on.
Relation = exp.Table
Query = exp.Query

_LAYERS = frozenset(Layer)
_SAMPLE = re.compile(
    r"\s+TABLESAMPLE\s*\((?:[^()]|\([^()]*\))*\)(?:\s*REPEATABLE\s*\([^()]*\))?", re.IGNORECASE
)
# The name of the catalog with all tables.
SPARK_CATALOG = "spark_catalog"
# Replaces masked text.
MASK = "***"


def relations_of(select: exp.Select) -> Iterator[exp.Expr]:
    """The relations of FROM, JOIN and LATERAL VIEW."""
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from_.this
    for join in select.args.get("joins") or ():
        yield join.this
    yield from select.args.get("laterals") or ()


def tables_of(query: str) -> tuple[TableName, ...]:
    """The lakehouse tables that a query reads, sorted and unique.

    >>> tables_of("WITH users AS (SELECT 1 AS a) SELECT a FROM users JOIN silver.orders AS o")
    (TableName(layer=<Layer.SILVER: 'silver'>, name='orders'),)

    Raises:
        InvalidNameError: the name of a layer's table is not an identifier.
    """
    found = {
        TableName.parse(f"{node.db.lower()}.{node.name.lower()}")
        for node in table_nodes(parse(query))
        if node.db.lower() in _LAYERS
    }
    return tuple(sorted(found))


def table_nodes(tree: exp.Expr) -> Iterator[exp.Table]:
    """All references to stored tables, without CTEs and table functions."""
    shadowed = {
        id(source_node)
        for scope in traverse_scope(tree)
        for name, (source_node, source) in scope.selected_sources.items()
        if isinstance(source_node, exp.Table)
        and (not _stored(source_node, source) or _names_query(source_node, scope))
    }
    for node in tree.find_all(exp.Table):
        if id(node) not in shadowed and isinstance(node.this, exp.Identifier):
            yield node


def _names_query(node: exp.Table, scope: Scope) -> bool:
    """Whether a name is that of a query of WITH in another case, which sqlglot does not find."""
    return not node.db and node.name.lower() in {one.lower() for one in scope.cte_sources}


def _stored(node: exp.Table, source: exp.Expr | Scope) -> bool:
    """Whether a table in FROM is a stored one, from the scope that sqlglot finds for it."""
    if not isinstance(source, Scope):
        return isinstance(source, exp.Table)
    # ``(name) AS alias`` has a scope of its own, which says nothing of what the name is.
    named = isinstance(source.expression, exp.Table)
    return named and (bool(node.db) or node.name not in source.cte_sources)


def pin_tables(query: str, relations: Mapping[str, exp.Expr | str]) -> str:
    """The query with each table ``layer.name`` replaced by its relation.

    >>> pin_tables("SELECT orders.a FROM silver.orders", {"silver.orders": "pinned"})
    'SELECT orders.a FROM pinned AS orders'

    Args:
        query: one SELECT in Spark SQL; comments and hints are removed.
        relations: a relation for each table name, as a node or as SQL. Other tables stay.

    Raises:
        SqlSyntaxError: Spark would read the text differently from the checks.
    """
    query = plain_sql(SqlText("query", query))
    tree = parse(query)
    edits: list[tuple[int, int, str]] = []
    for node in table_nodes(tree):
        relation = relations.get(f"{node.db}.{node.name}".lower())
        if relation is None:
            continue
        text = relation if isinstance(relation, str) else to_sql(relation)
        start, end = _span(node)
        edits.append((start, end, text))
        if not node.alias:
            # It is referred to by its last name; keep that. An alias stands behind a sample.
            sample = _SAMPLE.match(query, end)
            behind = sample.end() if sample else end
            edits.append((behind, behind, f" AS {node.this.sql(dialect='spark')}"))
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
    """The ``layer.`` in columns written as ``layer.table.column``, with or without fields.

    With the catalog, if that is written too.
    """
    for column in tree.find_all(exp.Column):
        names = column.parts
        own = names[1:] if names[0].name.lower() == SPARK_CATALOG else names
        if len(own) > 2 and f"{own[0].name}.{own[1].name}".lower() in relations:
            yield names[0].meta["start"], own[1].meta["start"]


def masked_relation(
    relation: Relation, columns: Sequence[tuple[str, str]], masked: Collection[str]
) -> str:
    """A relation with some columns masked: texts as stars, other types as NULL.

    >>> masked_relation(named_relation("t"), [("a", "int"), ("b", "string")], {"b"})
    "(SELECT `a`, IF(`b` IS NULL, NULL, '***') AS `b` FROM t)"

    Args:
        relation: the relation to read.
        columns: names and Spark SQL types of all its columns.
        masked: lower-case names of the columns to mask.
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
    """A relation registered in the session.

    >>> to_sql(named_relation("__orders"))
    '__orders'
    """
    return exp.to_table(name)


def relations_read(query: Query) -> set[str]:
    """The names of the relations without a schema that a query reads.

    >>> sorted(relations_read(parse("SELECT a.x FROM a, b AS c, s.d")))
    ['a', 'b']
    """
    return {table.name for table in query.find_all(exp.Table) if not table.db}


def with_prefix(query: Query, names: Collection[str], prefix: str) -> Query:
    """A copy of a query that reads some relations under longer names.

    >>> to_sql(with_prefix(parse("SELECT a.x FROM a, b AS c"), {"a", "b"}, "p_"))
    'SELECT a.x FROM p_a AS a CROSS JOIN p_b AS c'

    Args:
        query: refers to columns by the name or the alias of their relation.
        names: the relations to rename.
        prefix: prefix of the new names.
    """
    found = query.copy()
    for table in found.find_all(exp.Table):
        if table.name in names and not table.db:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=table.this.copy()))
            table.this.set("this", prefix + table.name)
    return found


def text_literal(text: str) -> str:
    """A text as a SQL literal.

    >>> text_literal("/lake/a b")
    "'/lake/a b'"
    """
    return to_sql(exp.Literal.string(text))


def delta_relation(location: str, version: int | None = None) -> Relation:
    """The Delta table at a location, at a version or the newest.

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
