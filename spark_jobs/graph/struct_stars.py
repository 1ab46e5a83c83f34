"""Structs without a name: ``place.*``, all fields of one, and ``(a, b)``, which is one.

sqlglot takes the star for all columns of a table, and the list for no struct.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp
from typing_extensions import TypeIs

from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.functions import called_name
from spark_jobs.graph.sql import relations_of
from spark_jobs.graph.written_calls import path_of_variant

# The names in the path of a variant.
_KEYS = re.compile(r"\.(\w+)|\['([^']*)'\]")
# Returns the columns of a table of the query, with their types; None: they are not known.
ColumnsOf = Callable[[exp.Table], dict[str, str] | None]


def with_fields(tree: exp.Query, columns_of: ColumnsOf) -> exp.Query:
    """The same tree with the fields instead of each star of a struct.

    Only of columns of tables: the columns of subqueries have no types yet.

    Args:
        tree: the parsed query; it is changed.
        columns_of: the columns of its tables, in lower case.
    """
    for select in tree.find_all(exp.Select):
        stars = [one for one in select.expressions if _is_star_of_a_name(one)]
        relations = (
            {one.alias_or_name.lower(): one for one in relations_of(select)} if stars else {}
        )
        for star in stars:
            fields = _fields(star, relations, columns_of)
            if fields is not None:
                at = select.expressions.index(star)
                listed = [*select.expressions[:at], *fields, *select.expressions[at + 1 :]]
                select.set("expressions", listed)
    return tree


def with_named_fields(tree: exp.Query) -> None:
    """Write ``STRUCT(a, b)`` for each value ``(a, b)``, and name fields as they are written.

    sqlglot names columns only, and numbers ``place['City']`` and ``tags[0].City``.

    >>> from spark_jobs.graph.dialect import parse, to_sql
    >>> tree = parse("SELECT TO_JSON((Id, b AS c)) AS j FROM t WHERE (Id, b) IN ((1, 2))")
    >>> with_named_fields(tree)
    >>> to_sql(tree)
    'SELECT TO_JSON(STRUCT(Id AS Id, b AS c)) AS j FROM t WHERE (Id, b) IN ((1, 2))'
    >>> tree = parse("SELECT STRUCT(a['B'], f(a)[0].c, (a), a[0]) AS s FROM t")
    >>> with_named_fields(tree)
    >>> to_sql(tree)
    "SELECT STRUCT(a['B'] AS B, F(a)[0].c AS c, (a) AS a, a[0] AS col4) AS s FROM t"
    """
    for values in [*tree.find_all(exp.Tuple)]:
        around: exp.Expr | None = values.parent
        whole = isinstance(around, exp.Group) and values.arg_key == "expressions"
        while isinstance(around, exp.Paren | exp.Alias | exp.PropertyEQ | exp.Tuple):
            around = around.parent
        if values.expressions and (whole or isinstance(around, exp.Func | exp.Select)):
            values.replace(exp.Struct(expressions=[_named(one) for one in values.expressions]))
    for struct in tree.find_all(exp.Struct):
        for number, field in enumerate(struct.expressions, start=1):
            numbered = isinstance(field, exp.PropertyEQ) and field.name == f"col{number}"
            if numbered and "start" not in field.this.meta:
                named = _named(field.expression.copy())
                field.replace(named if isinstance(named, exp.PropertyEQ) else field)


def _named(value: exp.Expr) -> exp.Expr:
    """A field with its name; Spark numbers other expressions, and so does the parser."""
    if isinstance(value, exp.Alias):
        return exp.PropertyEQ(this=value.args["alias"], expression=value.this)
    name = "" if value.is_star else _name(value.unnest())
    return exp.PropertyEQ(this=exp.to_identifier(name), expression=value) if name else value


def _name(value: exp.Expr) -> str:
    """The name of a column or of a field, also of one in brackets or in the path of a variant."""
    if isinstance(value, exp.Bracket) and not called_name(value):
        key = value.expressions[0]
        return key.name if isinstance(key, exp.Literal) and key.is_string else ""
    if names := _KEYS.findall(path_of_variant(value)):
        return "".join(names[-1])
    return value.output_name if isinstance(value, exp.Column | exp.Dot) else ""


def _is_star_of_a_name(node: exp.Expr) -> TypeIs[exp.Column]:
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Star) and bool(node.table)


def _fields(
    star: exp.Column, relations: dict[str, exp.Expr], columns_of: ColumnsOf
) -> list[exp.Expr] | None:
    """The fields, if the star is that of one struct of one table."""
    path = [one.name.lower() for one in star.parts[:-1]]
    if len(path) == 1 and path[0] in relations:
        return None
    if path[0] in relations:
        owners, names = [relations[path[0]]], path[1:]
    else:
        owners, names = list(relations.values()), path
    kinds = [kind for owner in owners if (kind := _kind(owner, names, columns_of)) is not None]
    options = star.this.args
    if len(kinds) != 1 or options.get("replace") or options.get("rename"):
        return None
    left_out = {one.name.lower() for one in options.get("except_") or ()}
    return [
        exp.alias_(_field(star, one.this), one.this.copy())
        for one in kinds[0].expressions
        if one.name.lower() not in left_out
    ]


def _kind(owner: exp.Expr, names: list[str], columns_of: ColumnsOf) -> exp.DataType | None:
    """The type of a struct within a table; None if it is something else."""
    columns = columns_of(owner) if isinstance(owner, exp.Table) else None
    text = (columns or {}).get(names[0])
    kind = exp.DataType.build(text, dialect=dialect()) if text else None
    for name in names[1:]:
        inner = kind.expressions if kind is not None and kind.is_type(exp.DType.STRUCT) else ()
        kind = next((one.args["kind"] for one in inner if one.name.lower() == name), None)
    return kind if kind is not None and kind.is_type(exp.DType.STRUCT) else None


def _field(star: exp.Column, name: exp.Identifier) -> exp.Expr:
    """The field of that name where the star stands."""
    *around, last = [one.copy() for one in star.parts[:-1]]
    parts = [*around, last, name.copy()]
    found: exp.Expr = exp.Column(
        **dict(zip(("this", "table", "db", "catalog"), reversed(parts[:4]), strict=False))
    )
    return exp.Dot.build([found, *parts[4:]]) if parts[4:] else found
