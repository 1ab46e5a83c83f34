"""Forms of SQL that an earlier release maintained with other rows, or with other stored state."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from spark_jobs.graph.functions import called_name, is_group_aggregate
from spark_jobs.graph.inference import chosen_values
from spark_jobs.graph.maintenance.correlated import sees_groups
from spark_jobs.graph.maintenance.exact_sums import LONGEST_MEAN, has_exact_negative
from spark_jobs.graph.maintenance.group_types import merges
from spark_jobs.graph.maintenance.subqueries import FULL_OVER_NO_ROWS
from spark_jobs.graph.tie_breakers import unbroken_ties

_CHOICES = (exp.Coalesce, exp.If, exp.Case, exp.Greatest, exp.Least)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def revised_forms(query: exp.Query) -> tuple[str, ...]:
    """The names of the forms that a query has; they are part of its fingerprint.

    So the next refresh of a view with such a form computes it in full, and other views are not
    computed again.

    Args:
        query: qualified, with types.
    """
    return tuple(sorted({form for node in query.walk() for form in _forms(node)}))


def _forms(node: exp.Expr) -> Iterator[str]:
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
        yield "grouping sets"
    if isinstance(node, exp.Select) and node.args.get("having") and not node.args.get("group"):
        yield "having without groups"
    if isinstance(node, exp.Avg) and _has_long_mean(node.this.type):
        yield "mean of long numbers"
    if isinstance(node, exp.Sum) and not has_exact_negative(_text(node.this.type)):
        yield "sum of long numbers"
    yield from _forms_refreshed_in_full(node)
    yield from _forms_with_a_rule(node)
    if isinstance(node, exp.Extract):
        yield "extract"
    if isinstance(node, exp.SetOperation) and _mixes_types(node.left.selects, node.right.selects):
        yield "union of several types"
    if _is_equality(node) and _mixes_types([node.this], [node.expression]):
        yield "equality of several types"
    if isinstance(node, exp.In) and _is_in_conditions(node.args.get("query")):
        yield "in conditions"
    if isinstance(node, (*_CHOICES, *_ARITHMETIC)) and _mixes_decimals(node):
        yield "mixed decimals"


def _forms_refreshed_in_full(node: exp.Expr) -> Iterator[str]:
    """Forms that once had a rule, and have none now."""
    if isinstance(node, exp.Query) and any(unbroken_ties(node)):
        yield "row of a frame by value"
    if called_name(node) in FULL_OVER_NO_ROWS and node.find_ancestor(exp.Subquery):
        yield "value over no rows"
    if isinstance(node, exp.Not) and _is_in_floats(node.this.unnest()):
        yield "not in of two zeros"
    if any(merges(*kinds) for kinds in _compared(node)):
        yield "groups of another type"


def _forms_with_a_rule(node: exp.Expr) -> Iterator[str]:
    """Forms that once had no rule, and have one now."""
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Column | exp.Dot):
        yield "field of a struct"
    if is_group_aggregate(node) and node.find(exp.Query):
        yield "subquery in an aggregate"
    if isinstance(node, exp.Having) and node.find(exp.Exists, exp.In, exp.Subquery):
        yield "subquery in having"
    if isinstance(node, exp.Select) and sees_groups(node):
        yield "correlated subquery of groups"


def _compared(node: exp.Expr) -> Iterator[tuple[str, str]]:
    """The types of what a subquery is compared by, and of what it is compared with."""
    if isinstance(node, exp.EQ) and node.find_ancestor(exp.Subquery, exp.Exists):
        kinds = (_text(node.this.type), _text(node.expression.type))
        yield from (kinds, kinds[::-1])
    query = node.args.get("query") if isinstance(node, exp.In) else None
    found = query.unnest() if query else None
    if isinstance(found, exp.Query):
        yield _text(found.selects[0].type), _text(node.this.type)


def _text(kind: exp.DataType | None) -> str:
    return "" if kind is None else kind.sql("spark").lower()


def _mixes_types(left: list[exp.Expr], right: list[exp.Expr]) -> bool:
    """Whether two columns beside each other have types that are known and differ."""
    for kinds in zip(map(_kind, left), map(_kind, right), strict=False):
        known = not any(one.is_type(exp.DType.UNKNOWN, exp.DType.NULL) for one in kinds)
        same = kinds[0] == kinds[1] or any(
            all(one.is_type(*alike) for one in kinds)
            for alike in (exp.DataType.INTEGER_TYPES, exp.DataType.TEXT_TYPES)
        )
        if known and not same:
            return True
    return False


def _is_equality(node: exp.Expr) -> bool:
    """Whether a node compares two columns."""
    sides = (node.this, node.args.get("expression"))
    return isinstance(node, exp.EQ) and all(isinstance(one, exp.Column) for one in sides)


def _is_in_conditions(query: exp.Expr | None) -> bool:
    """Whether IN compares with a condition; without parentheses, it was taken apart."""
    found = query.unnest() if query else None
    values = found.selects if isinstance(found, exp.Query) else []
    conditions = (exp.Connector, exp.Predicate, exp.Not)
    return any(isinstance(one.unalias(), conditions) for one in values)


def _is_in_floats(node: exp.Expr) -> bool:
    """Whether IN compares one value with those of a query, and one of them may be -0.0."""
    query = node.args.get("query") if isinstance(node, exp.In) else None
    found = query.unnest() if query else None
    values = [node.this, *found.selects] if isinstance(found, exp.Query) else []
    return any(one.is_type(exp.DType.FLOAT, exp.DType.DOUBLE) for one in values)


def _kind(node: exp.Expr) -> exp.DataType:
    return node.type or exp.DataType.build("unknown")


def _has_long_mean(kind: exp.DataType | None) -> bool:
    if kind is None or not kind.is_type(exp.DType.DECIMAL):
        return kind is not None and kind.is_type(exp.DType.BIGINT)
    return bool(kind.expressions) and int(kind.expressions[0].name) > LONGEST_MEAN


def _mixes_decimals(node: exp.Expr) -> bool:
    """Whether the type was taken to be that of the first decimal, or of a number with a point."""
    if isinstance(node, _ARITHMETIC):
        sides = (node.this, node.expression)
        literal = any(isinstance(one, exp.Literal) and "." in one.name for one in sides)
        return literal and not all(one.is_type(exp.DType.DECIMAL) for one in sides)
    decimals = [one.type for one in chosen_values(node) if one.is_type(exp.DType.DECIMAL)]
    return bool(decimals) and node.type != decimals[0]
