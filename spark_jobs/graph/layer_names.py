"""Columns that are written with the layer of their table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from spark_jobs.graph.errors import UnknownRelationError
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.sql import SPARK_CATALOG, relations_of
from spark_jobs.names import Layer, TableName

_LAYERS = frozenset(Layer)


def drop_layers(tree: exp.Query) -> None:
    """Write ``t.place.at.x`` for ``silver.t.place.at.x``, whose table sqlglot does not find.

    And ``silver.t.a`` for ``spark_catalog.silver.t.a``.
    """
    tables = {
        (one.db.lower(), one.name.lower())
        for one in tree.find_all(exp.Table)
        if one.db and not one.alias
    }
    for column in tree.find_all(exp.Column):
        names = [part.name.lower() for part in column.parts]
        of_spark = names[0] == SPARK_CATALOG and tuple(names[1:3]) in tables
        if column.catalog and (of_spark or tuple(names[:2]) in tables):
            column.set("catalog", None)


def unknown_layers(
    tree: exp.Query,
    schemas: Mapping[TableName, Mapping[str, str]],
    source: SqlText,
    subject: str,
) -> Iterator[UnknownRelationError]:
    """Report ``silver.x.a`` where x is an alias: Spark has no layer of it, and sqlglot drops it.

    Args:
        tree: a query that is not qualified.
        schemas: columns of the tables.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    columns = {name.lower() for table in schemas.values() for name in table}
    for column in tree.find_all(exp.Column):
        names = [part.name for part in column.parts]
        first = names[0].lower()
        if len(names) < 3 or first in columns or first not in {*_LAYERS, SPARK_CATALOG}:
            continue
        relations = list(_in_reach(column))
        known = sorted({one.alias_or_name for one in relations if one.alias_or_name})
        if first in {one.lower() for one in known}:
            continue
        layer, table = names[first == SPARK_CATALOG :][:2]
        if not any(_is_table(one, layer, table) for one in relations):
            written = ".".join(names[:-1])
            place = source.of(column)
            yield UnknownRelationError(subject, written, names[-1], known, location=place)


def _in_reach(column: exp.Column) -> Iterator[exp.Expr]:
    select = column.parent_select
    while select is not None:
        if isinstance(select, exp.Select):
            yield from relations_of(select)
        select = select.parent_select


def _is_table(relation: exp.Expr, layer: str, table: str) -> bool:
    """Whether a relation is a table without an alias."""
    plain = isinstance(relation, exp.Table) and not relation.alias
    found = (relation.text("db").lower(), relation.name.lower())
    return plain and found == (layer.lower(), table.lower())
