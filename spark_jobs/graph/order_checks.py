"""Checks the use of values without an order, maps and variants, where values are compared.

Only values whose types are certain are checked, as in ``type_checks``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.functions import called_name
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import ArgumentTypeError
from spark_jobs.graph.shown import set_word, shown
from spark_jobs.graph.type_checks import COMPARISONS, first_at_each_place, sure_kind, sure_type

_UNORDERED: Final = (exp.DType.MAP, exp.DType.VARIANT)
_EXTREMES: Final = frozenset({"max", "min", "greatest", "least"})


def check_order(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report maps and variants where an order or an equality is needed.

    Args:
        tree: a query that ``check_types`` checked.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    yield from first_at_each_place(_order_problem(node, source, subject) for node in tree.walk())


def _order_problem(node: exp.Expr, source: SqlText, subject: str) -> ArgumentTypeError | None:
    """The use of a map or a variant where values are compared."""
    for value in _ordered_values(node):
        kind = sure_type(value)
        if kind is not None and _lacks_order(kind):
            return ArgumentTypeError(
                subject,
                _name(node),
                to_sql(kind).lower(),
                hint="Its values have no order, and no equality. Take a part of it: m['key'] of "
                "a map, VARIANT_GET(v, '$.key', 'INT') of a variant.",
                location=source.of(value),
            )
    return None


def _ordered_values(node: exp.Expr) -> list[exp.Expr]:
    """The values that a node compares."""
    found: list[exp.Expr | None] = []
    match node:
        case exp.Select() if node.args.get("distinct"):
            found = [*node.expressions]
        case exp.SetOperation() if isinstance(node.left, exp.Query):
            whole = isinstance(node, exp.Union) and not node.args.get("distinct")
            found = [] if whole else [*node.left.selects]
        case exp.Ordered() | exp.Between() | exp.Nullif():
            found = [node.this]
        case exp.Case() | exp.In():
            found = _of_one_kind([node.this, *node.expressions])
        case exp.Window():
            found = node.args.get("partition_by") or []
        case exp.ArgMax() | exp.ArgMin():
            found = [node.expression]
        case _ if isinstance(node, COMPARISONS):
            found = _of_one_kind([node.left, node.right])
        case _ if called_name(node) in _EXTREMES:
            found = [node.this, *node.expressions]
    return [one for one in found if isinstance(one, exp.Expr)]


def _of_one_kind(values: list[exp.Expr | None]) -> list[exp.Expr | None]:
    """The values, if no other check reports that they cannot be compared."""
    kinds = {sure_kind(one) for one in values if one is not None} - {None}
    return values if len(kinds) <= 1 else []


def _lacks_order(kind: exp.DataType) -> bool:
    return any(one.is_type(*_UNORDERED) for one in kind.find_all(exp.DataType))


def _name(node: exp.Expr) -> str:
    match node:
        case exp.Select():
            return "SELECT DISTINCT"
        case exp.SetOperation():
            return set_word(node)
        case exp.Ordered():
            return "ORDER BY"
        case exp.Window():
            return "PARTITION BY"
        case exp.Case():
            return "CASE"
        case _:
            return shown(node)
