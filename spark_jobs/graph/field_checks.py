"""Checks fields of structs, where the struct's type is certain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.errors import UnknownColumnError, UnknownRelationError
from spark_jobs.graph.functions import called_name
from spark_jobs.graph.inference import field_type
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import ArgumentTypeError
from spark_jobs.graph.shown import shown
from spark_jobs.graph.sql import relations_of
from spark_jobs.graph.type_checks import first_at_each_place, sure_kind, sure_type

# Kinds of types without parts.
_SCALARS: Final = frozenset({"number", "text", "boolean", "date", "timestamp"})


def check_fields(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report fields that a struct lacks, and fields and elements of values that have none.

    Args:
        tree: a query that ``check_types`` checked.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    yield from first_at_each_place(
        _bracket_problem(node, source, subject)
        if isinstance(node, exp.Bracket)
        else _dot_problem(node, source, subject)
        for node in tree.walk()
        if isinstance(node, exp.Dot | exp.Bracket)
    )


def _dot_problem(node: exp.Dot, source: SqlText, subject: str) -> LakehouseError | None:
    if not isinstance(node.expression, exp.Identifier):
        return None
    name, kind = node.expression, _type(node.this)
    fields = _fields(kind)
    if fields is not None:
        return _missing(node.this, name.name, fields, subject, source.of(name))
    if kind is None or _kind(kind) not in _SCALARS:
        return None
    select = node.parent_select
    known = [one.alias_or_name for one in relations_of(select)] if select else []
    return UnknownRelationError(
        subject, node.this.output_name, name.name, known, location=source.of(node)
    )


def _bracket_problem(node: exp.Bracket, source: SqlText, subject: str) -> LakehouseError | None:
    kind, key = _type(node.this), node.expressions[0]
    # ELEMENT_AT is one in sqlglot.
    if kind is None or called_name(node):
        return None
    place, fields = source.of(node), _fields(kind)
    if fields is not None and isinstance(key, exp.Literal) and key.is_string:
        return _missing(node.this, key.name, fields, subject, place)
    of_array, found = kind.is_type(exp.DType.ARRAY), sure_type(key)
    if kind.is_type(exp.DType.STRUCT):
        hint = "Name the field: place.city, or place['city']."
        return ArgumentTypeError(subject, shown(node), _text(kind), hint=hint, location=place)
    if of_array and found is not None and not found.is_type(*exp.DataType.INTEGER_TYPES):
        hint = "Take an element by its number, from 0: tags[0]."
        return ArgumentTypeError(subject, shown(node), _text(found), hint=hint, location=place)
    if _kind(kind) in _SCALARS:
        hint = "Brackets take elements of arrays and maps, and fields of structs."
        return ArgumentTypeError(subject, shown(node), _text(kind), hint=hint, location=place)
    return None


def _missing(
    of: exp.Expr, name: str, fields: list[str], subject: str, place: Location
) -> UnknownColumnError | None:
    if name.lower() in {one.lower() for one in fields}:
        return None
    return UnknownColumnError(subject, name, fields, table=to_sql(of), location=place)


def _fields(kind: exp.DataType | None) -> list[str] | None:
    """The fields of a struct, or of an array's structs; None if it has none."""
    if kind is not None and kind.is_type(exp.DType.ARRAY):
        # A field of an array of structs is the array of this field.
        kind = next((one for one in kind.expressions if isinstance(one, exp.DataType)), None)
    struct = kind is not None and kind.is_type(exp.DType.STRUCT)
    return [one.name for one in kind.expressions] if kind is not None and struct else None


def _kind(kind: exp.DataType) -> str | None:
    return sure_kind(exp.Cast(this=exp.null(), to=kind))


def _text(kind: exp.DataType) -> str:
    return kind.sql("spark").lower()


def _type(node: exp.Expr) -> exp.DataType | None:
    """The type of a value if it is certain, also of a field or an element of a column."""
    node = node.unnest()
    if isinstance(node, exp.Dot):
        return field_type(_type(node.this), node.expression.name)
    if isinstance(node, exp.Bracket):
        return node.type if _type(node.this) is not None and _is_known(node.type) else None
    return sure_type(node)


def _is_known(kind: exp.DataType | None) -> bool:
    return kind is not None and not kind.is_type(exp.DType.UNKNOWN)
