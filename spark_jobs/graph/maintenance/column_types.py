"""The types of an operator's columns, where the declarations tell them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.inference import spark_type
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Filter,
    Generate,
    Join,
    LeftJoin,
    Named,
    Node,
    Project,
    Scan,
    TopK,
    Union,
    Window,
)

# Spark SQL types in lower case, by the tree's names; a column that nobody knows is absent.
Types = dict[str, str]


def column_types(  # noqa: PLR0911 - one case for each operator
    node: Node, tables: Mapping[str, Mapping[str, str]]
) -> Types:
    """The types of the columns of an operator.

    Args:
        node: the operator.
        tables: for each table ``layer.name`` the types of its columns, by name in lower case.
    """
    match node:
        case Scan():
            known = tables.get(node.table, {})
            return {name: known[old] for name, old in node.names if known.get(old)}
        case Filter() | TopK():
            return column_types(node.child, tables)
        case Project():
            return _of(node.outputs, column_types(node.child, tables))
        case Join():
            return {k: v for one in node.inputs for k, v in column_types(one, tables).items()}
        case LeftJoin():
            return column_types(node.left, tables) | column_types(node.right, tables)
        case Aggregate():
            return _of((*node.keys, *node.aggregates), column_types(node.child, tables))
        case Window():
            below = column_types(node.child, tables)
            return below | _of(node.functions, below)
        case Union():
            return _of_union(node, tables)
        case Generate():
            return column_types(node.child, tables)
        case _:
            return {}


def expression_types(expressions: list[exp.Expr], columns: Types) -> list[str]:
    """The types of expressions over columns; "" where they cannot be told."""
    reader = dialect()
    schema = MappingSchema(dialect=reader)
    schema.add_table("t", dict(columns))
    query = exp.select(
        *(exp.alias_(one.copy(), f"e{index}") for index, one in enumerate(expressions))
    ).from_("t")
    for column in query.find_all(exp.Column):
        column.set("table", exp.to_identifier("t"))
    try:
        typed = annotate_types(query, schema=schema, dialect=reader)
    except SqlglotError:
        return ["" for _ in expressions]
    return [spark_type(one, reader) for one in typed.selects]


def _of(outputs: tuple[Named, ...], columns: Types) -> Types:
    names = [name for name, _ in outputs]
    found = expression_types([value for _, value in outputs], columns)
    return {name: kind for name, kind in zip(names, found, strict=True) if kind}


def _of_union(node: Union, tables: Mapping[str, Mapping[str, str]]) -> Types:
    """The types that all inputs agree on; Spark would widen the others."""
    found = [column_types(one, tables) for one in node.inputs]
    result = {}
    for at, name in enumerate(node.columns):
        kinds = {
            types.get(one.columns[at], "") for one, types in zip(node.inputs, found, strict=True)
        }
        if len(kinds) == 1 and (kind := kinds.pop()):
            result[name] = kind
    return result
