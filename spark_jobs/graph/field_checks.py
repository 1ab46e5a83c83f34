"""Checks fields of structs, where the struct's type is certain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.errors import UnknownColumnError, UnknownRelationError
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.sql import relations_of
from spark_jobs.graph.type_checks import first_at_each_place, sure_kind, sure_type

# Kinds of types without parts.
_SCALARS: Final = frozenset({"number", "text", "boolean", "date", "timestamp"})


def check_fields(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report fields that a struct lacks, and fields of values that are no structs.

    Args:
        tree: a query that ``check_types`` checked.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    yield from first_at_each_place(
        _field_problem(node, source, subject) for node in tree.find_all(exp.Dot)
    )


def _field_problem(node: exp.Dot, source: SqlText, subject: str) -> LakehouseError | None:
    if not isinstance(node.expression, exp.Identifier):
        return None
    name, kind = node.expression, _type(node.this)
    if kind is not None and kind.is_type(exp.DType.ARRAY):
        # A field of an array of structs is the array of this field.
        kind = next((one for one in kind.expressions if isinstance(one, exp.DataType)), None)
    place = source.of(name)
    if kind is not None and kind.is_type(exp.DType.STRUCT):
        fields = [one.name for one in kind.expressions]
        if name.name.lower() in {one.lower() for one in fields}:
            return None
        table = to_sql(node.this)
        return UnknownColumnError(subject, name.name, fields, table=table, location=place)
    if kind is None or sure_kind(exp.Cast(this=exp.null(), to=kind)) not in _SCALARS:
        return None
    select = node.parent_select
    known = [one.alias_or_name for one in relations_of(select)] if select else []
    return UnknownRelationError(
        subject, node.this.output_name, name.name, known, location=source.of(node)
    )


def _type(node: exp.Expr) -> exp.DataType | None:
    """The type of a value if it is certain, also of a field of a column."""
    node = node.unnest()
    if isinstance(node, exp.Dot):
        kind, name = _type(node.this), node.expression.name.lower()
        if kind is None or not kind.is_type(exp.DType.STRUCT):
            return None
        fields = [one for one in kind.expressions if one.name.lower() == name]
        return fields[0].args.get("kind") if len(fields) == 1 else None
    return sure_type(node)
