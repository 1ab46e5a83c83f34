"""Finds columns that are computed as maps or variants, whose values have no equality."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.functions import called_name
from spark_jobs.graph.inference import chosen_values
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Join,
    LeftJoin,
    Named,
    Node,
    Project,
    Scan,
    TopK,
    Window,
    children,
    used,
)
from spark_jobs.graph.maintenance.column_types import column_types, expression_types

MAP, VARIANT = "map<", "variant"
_EXAMPLES = {MAP: "map<string,string>", VARIANT: "variant"}
_OF_MAPS = frozenset([
    "map", "map_concat", "map_filter", "map_from_arrays", "map_from_entries", "map_zip_with",
    "str_to_map", "transform_keys", "transform_values",
])  # fmt: skip
_OF_VARIANTS = frozenset(["parse_json", "try_parse_json", "to_variant_object"])
_PARTS_OF_VARIANTS = frozenset(["variant_get", "try_variant_get"])
_CHOICES = (exp.Coalesce, exp.If, exp.Nvl2, exp.Case, exp.Nullif)
# They return the value of one row, or are around a function that does.
_OF_ONE_ROW = (
    *(exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Lag, exp.Lead),
    *(exp.FirstValue, exp.LastValue, exp.NthValue, exp.First, exp.Last, exp.AnyValue),
    *(exp.ArgMax, exp.ArgMin),
)


def incomparable(
    nodes: Iterable[Node], tables: Mapping[str, Mapping[str, str]], word: str
) -> tuple[str, exp.Expr] | None:
    """A column that some operators compute, or those below them, as a map or a variant.

    Args:
        nodes: the operators.
        tables: column types, by table and lower-case column name.
        word: what the type contains: ``MAP`` or ``VARIANT``.

    Returns:
        its name in the tree, and how it is computed; None if there is none.
    """
    # The columns of many operators are computed of the rows of one.
    types = cache(lambda node: column_types(node, tables))

    @cache
    def computed(node: Node, name: str) -> exp.Expr | None:
        found = origin(node, name)
        if found is None:
            return None
        below, value = found
        known = types(below)
        # The type of a function's result may be unknown, but not that it is such a type.
        such = {one for one in used(value) - known.keys() if computed(below, one) is not None}
        kinds = known | dict.fromkeys(such, _EXAMPLES[word])
        return value if is_computed(value, kinds, word) else None

    values = ((name, computed(node, name)) for node in nodes for name in node.columns)
    return next(((name, value) for name, value in values if value is not None), None)


def netted_operators(node: Node) -> Iterator[Node]:
    """The operators whose change is added up by equal rows.

    Those are the view itself, and what a join, a grouping, a window or a LIMIT reads.
    """
    yield node
    for one in _below(node):
        yield from netted_operators(one)


def is_computed(value: exp.Expr, kinds: Mapping[str, str], word: str) -> bool:
    """Whether an expression is a map or a variant, or holds one."""
    value = value.unnest()
    if isinstance(value, exp.Column):
        return word in kinds.get(value.name, "")
    (kind,) = expression_types([value], dict(kinds))
    if kind:
        return word in kind
    if parts := _parts(value):
        return any(is_computed(one, kinds, word) for one in parts)
    if isinstance(value, exp.Cast):
        return word in f"{to_sql(value.to).lower()}<"
    name = called_name(value)
    if name in _PARTS_OF_VARIANTS:
        typed = list(value.iter_expressions())[2:]
        return word == VARIANT and (not typed or typed[0].name.lower() == "variant")
    if name == "from_json":
        return any(word in one.name.lower() for one in value.find_all(exp.Literal))
    return name in (_OF_MAPS if word == MAP else _OF_VARIANTS)


def _parts(value: exp.Expr) -> list[exp.Expr]:
    """The values of which an expression is one, or that it holds."""
    if isinstance(value, _CHOICES):
        return chosen_values(value)
    if isinstance(value, _OF_ONE_ROW):
        return [value.this]
    if isinstance(value, exp.Struct | exp.Array):
        return [
            one.expression if isinstance(one, exp.PropertyEQ) else one for one in value.expressions
        ]
    return []


def _below(node: Node) -> Iterator[Node]:
    """The nearest operators below whose change is netted."""
    whole = isinstance(node, Join | LeftJoin | Aggregate | Window | TopK)
    for child in children(node):
        if whole:
            yield child
        else:
            yield from _below(child)


def origin(node: Node, name: str) -> tuple[Node, exp.Expr] | None:
    """The operator whose rows a column is computed of, and how; None if a table has it."""
    match node:
        case Scan():
            return None
        case Project() | Aggregate() | Window():
            named: tuple[Named, ...] = (
                node.outputs
                if isinstance(node, Project)
                else node.functions
                if isinstance(node, Window)
                else (*node.keys, *node.aggregates)
            )
            value = dict(named).get(name)
            if value is None:
                # A window has the columns of its rows beside its own.
                return origin(node.child, name)
            if isinstance(value, exp.Column):
                return origin(node.child, value.name)
            return node.child, value
        case _:
            below = (one for one in children(node) if name in one.columns)
            return next((origin(one, name) for one in below), None)
