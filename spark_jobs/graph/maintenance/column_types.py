"""The types of an operator's columns, as far as the declarations have them."""

from __future__ import annotations

import re
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
    equality,
)

# An integer or decimal whose precision only Spark knows.
EXACT = "exact"
_EXACT = re.compile(r"tinyint|smallint|int|bigint|decimal\(\d+,\s*\d+\)")
_ORDERED = re.compile(r"string|binary|boolean|date|timestamp|timestamp_ntz|float|double")

# Spark SQL types in lower case, by name in the tree; columns of unknown type are missing.
Types = dict[str, str]


def column_types(  # noqa: PLR0911 - one case for each operator
    node: Node, tables: Mapping[str, Mapping[str, str]]
) -> Types:
    """Spark SQL types of an operator's columns, by name; unknown ones are left out.

    Args:
        node: the operator.
        tables: types of each table's columns: ``layer.name``, then lower-case column name.
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
    """The types of expressions over columns; "" if unknown."""
    reader = dialect()
    schema = MappingSchema(dialect=reader)
    schema.add_table(
        exp.table_("t"), {name: kind for name, kind in columns.items() if kind != EXACT}
    )
    query = exp.select(
        *(exp.alias_(one.copy(), f"e{index}") for index, one in enumerate(expressions))
    ).from_(exp.table_("t"))
    for column in query.find_all(exp.Column):
        column.set("table", exp.to_identifier("t"))
    try:
        typed = annotate_types(query, schema=schema, dialect=reader)
    except SqlglotError:
        return ["" for _ in expressions]
    return [spark_type(one, reader) for one in typed.selects]


def _of(outputs: tuple[Named, ...], columns: Types) -> Types:
    found = expression_types([value for _, value in outputs], columns)
    types: Types = {}
    for (name, value), kind in zip(outputs, found, strict=True):
        if kind:
            types[name] = kind
        elif is_exact(value, columns):
            types[name] = EXACT
    return types


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


def is_alike(node: Union, tables: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether all inputs of a union are known to have columns of the same types."""
    found = _of_union(node, tables)
    return all(found.get(name, EXACT) != EXACT for name in node.columns)


def of_one_type(condition: exp.Expr, kinds: Types) -> exp.Expr:
    """A condition in which ``a = b`` of different types is ``a = (b)``, which restricts no keys.

    Equality of different types is not transitive: '01' = 1 and 1 = '1', but '01' <> '1'. So keys of
    one column must not be handed on from another to a third.
    """
    found = condition.copy()
    for one in found.find_all(exp.EQ):
        pair = equality(one)
        left, right = (kinds.get(name, "") for name in pair or ("", ""))
        exact = is_exact_type(left) and is_exact_type(right)
        if left and right and left != right and not exact:
            one.set("expression", exp.paren(one.expression))
    return found


def is_exact(  # noqa: PLR0911 - one case for each kind of expression
    value: exp.Expr, kinds: Mapping[str, str]
) -> bool:
    """Whether a sum of the values does not depend on their order: integers and decimals.

    Args:
        value: an expression over columns.
        kinds: Spark SQL types of the columns, by name.
    """
    match value:
        case exp.Column():
            return is_exact_type(kinds.get(value.name, ""))
        case exp.Literal():
            # A literal with an exponent is a DOUBLE.
            return not value.is_string and "e" not in value.name.lower()
        case exp.Null():
            return True
        case exp.Paren() | exp.Neg():
            return is_exact(value.this, kinds)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Div():
            # A quotient of integers is a DOUBLE. One of a decimal is rounded to its last digit.
            decimal = not isinstance(value, exp.Div) or _is_decimal(value, kinds)
            return decimal and all(is_exact(one, kinds) for one in (value.left, value.right))
        case exp.Cast():
            return value.to.is_type(*exp.DataType.INTEGER_TYPES, exp.DType.DECIMAL)
        case exp.If():
            return all(is_exact(one, kinds) for one in _branches(value))
        case exp.Case():
            branches = [one.args["true"] for one in value.args["ifs"]]
            branches += [value.args["default"]] if value.args.get("default") else []
            return all(is_exact(one, kinds) for one in branches)
        case exp.Coalesce():
            return all(is_exact(one, kinds) for one in (value.this, *value.expressions))
        case _:
            return is_exact_type(expression_types([value], dict(kinds))[0])


def _is_decimal(value: exp.Expr, kinds: Mapping[str, str]) -> bool:
    """Whether an exact value is known to be no integer."""
    match value:
        case exp.Column():
            return kinds.get(value.name, "").startswith("decimal")
        case exp.Literal():
            return "." in value.name
        case exp.Paren() | exp.Neg():
            return _is_decimal(value.this, kinds)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Div():
            return _is_decimal(value.this, kinds) or _is_decimal(value.expression, kinds)
        case exp.Cast():
            return value.to.is_type(exp.DType.DECIMAL)
        case _:
            return False


def _branches(value: exp.If) -> list[exp.Expr]:
    other = value.args.get("false")
    return [value.args["true"], *([other] if other else [])]


def is_exact_type(kind: str) -> bool:
    """Whether a sum of values of this type does not depend on their order."""
    return kind == EXACT or _EXACT.fullmatch(kind) is not None


def is_ordered(kind: str) -> bool:
    """Whether MIN and MAX of values of this type do not depend on the order of rows."""
    return is_exact_type(kind) or _ORDERED.fullmatch(kind) is not None
