"""Reports incompatible types of expressions whose types are certain.

Certain are literals, casts, conditions, columns of stored tables, their MIN and MAX, and columns of
subqueries with such values. Inference of anything else may be wrong, for instance of the columns
of a LATERAL VIEW, so Spark decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.functions import called_name
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import (
    ArgumentTypeError,
    IncomparableTypesError,
    NotConditionError,
)
from spark_jobs.graph.shown import shown

# Marks a column whose type is certain.
_SURE = "sure_type"
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_CONDITIONS = (exp.Connector, exp.Not, exp.Predicate)
# Types that Spark adds to a date as days.
_DAYS = ("tinyint", "smallint", "int")
_TIMES = frozenset({"date", "timestamp"})
_NESTED = frozenset({"array", "map", "struct"})
# Functions whose first argument is a variant; ``v:path`` calls the first.
_OF_VARIANTS = frozenset({"variant_get", "try_variant_get"})
_TIMESTAMPS = ("timestamp", "timestampltz", "timestamptz", "timestampntz", "datetime")
_KINDS: dict[str, tuple[str, ...]] = {
    "date": ("date",),
    "timestamp": _TIMESTAMPS,
    "boolean": ("boolean",),
    "array": ("array",),
    "map": ("map",),
    "struct": ("struct",),
    "text": ("text", "varchar", "char"),
}
# Building a type parses its text, so the table of types is built once.
_KIND_OF_TYPE = {
    **dict.fromkeys(exp.DataType.NUMERIC_TYPES, "number"),
    **{exp.DataType.build(word).this: kind for kind, words in _KINDS.items() for word in words},
}
_UNKNOWN, _BOOLEAN = exp.DataType.build("unknown"), exp.DataType.build("boolean")
# Pairs of types without a cast in Spark.
_NO_CAST = frozenset(
    {
        *((one, "date") for one in ("number", "boolean")),
        *(("date", one) for one in ("number", "boolean")),
        *((nested, one) for nested in _NESTED for one in ("number", "boolean", *_TIMES)),
    }
)


def check_types(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report operators, branches, arguments, casts and conditions of incompatible types.

    Args:
        tree: a query that ``resolve`` qualified and typed without problems.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    _mark_sure_columns(tree)
    for node in tree.walk():
        for left, right in _compared(node):
            if not _mix(_kind(left), _kind(right)):
                yield _incomparable(node, left, right, source, subject)
                break
        if isinstance(node, _ARITHMETIC) and not _computes(node):
            yield _incomparable(node, node.left, node.right, source, subject)
        elif argument := _refused_argument(node):
            yield ArgumentTypeError(
                subject,
                shown(node),
                _written(argument),
                hint=_remedy(node, argument),
                location=source.of(node),
            )
        for condition in _conditions(node):
            kind = _kind(condition)
            if kind is not None and kind != "boolean":
                yield NotConditionError(
                    subject, shown(condition), _written(condition), location=source.of(condition)
                )


def _compared(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The pairs of expressions that must have a common type in a node."""
    match node:
        case exp.Between():
            yield node.this, node.args["low"]
            yield node.this, node.args["high"]
        case exp.In() if not node.args.get("query"):
            yield from ((node.this, one) for one in node.expressions)
        case exp.Case():
            ifs = node.args["ifs"]
            if node.this is not None:
                yield from ((node.this, one.this) for one in ifs)
            branches = [*(one.args["true"] for one in ifs), node.args.get("default")]
            yield from pairwise(_typed(branches))
        case exp.If() if not isinstance(node.parent, exp.Case):
            yield from pairwise(_typed([node.args.get("true"), node.args.get("false")]))
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            yield from pairwise(_typed([node.this, *node.expressions]))
        case exp.Array():
            yield from pairwise(_typed(node.expressions))
        case exp.SetOperation():
            yield from _united(node)
        case _ if isinstance(node, COMPARISONS):
            yield node.left, node.right


def _united(node: exp.SetOperation) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The pairs of columns of a set operation."""
    left, right = node.left.unnest(), node.right.unnest()
    by_place = not node.args.get("by_name")
    if by_place and isinstance(left, exp.Query) and isinstance(right, exp.Query):
        yield from zip(left.selects, right.selects, strict=False)


def _typed(nodes: Iterable[exp.Expr | None]) -> list[exp.Expr]:
    """The expressions whose kind is certain."""
    return [one for one in nodes if one is not None and _kind(one) is not None]


def _mix(left: str | None, right: str | None) -> bool:
    """Whether Spark finds a common type of two kinds; true if one is unknown."""
    if left is None or right is None or left == right:
        return True
    kinds = {left, right}
    return kinds == _TIMES or ("text" in kinds and not kinds & _NESTED)


def _computes(node: exp.Binary) -> bool:
    """Whether Spark has the arithmetic operator for these kinds."""
    left, right = _kind(node.left), _kind(node.right)
    if left is None or right is None:
        return True
    kinds = {left, right}
    if kinds & _NESTED or "boolean" in kinds:
        return False
    if not kinds & _TIMES:
        return True
    if isinstance(node, exp.Sub) and kinds <= _TIMES:
        return True
    if "text" in kinds:
        return True
    sums = isinstance(node, exp.Add | exp.Sub) and kinds == {"date", "number"}
    days = node.right if left == "date" else node.left
    return (
        sums
        and _kind_of(days).is_type(*_DAYS)
        and not (isinstance(node, exp.Sub) and right == "date")
    )


def _refused_argument(node: exp.Expr) -> exp.Expr | None:
    """The argument of a sum, a sign, a cast or a path, if its type is not accepted."""
    if called_name(node) in _OF_VARIANTS and node.expressions:
        return node.expressions[0] if _kind(node.expressions[0]) is not None else None
    argument = node.this if isinstance(node.this, exp.Expr) else None
    kind = None if argument is None else _kind(argument)
    if kind is None:
        return None
    match node:
        case exp.Sum() | exp.Avg() | exp.Neg() | exp.Abs():
            # Spark sums timestamps as seconds.
            return argument if kind not in ("number", "text", "timestamp") else None
        case exp.Cast() if not isinstance(argument, exp.Literal):
            return argument if (kind, _named(node.to)) in _NO_CAST else None
        case _:
            return None


def _remedy(node: exp.Expr, argument: exp.Expr) -> str:
    kind = _kind(argument)
    if called_name(node) in _OF_VARIANTS:
        return "Write PARSE_JSON(text) for the variant of a text, and place.city for a field."
    if isinstance(node, exp.Cast):
        if "date" in (kind, _named(node.to)):
            return (
                "Say what is meant: UNIX_DATE(day) and DATE_FROM_UNIX_DATE(days) count days, "
                "TO_DATE(text, 'yyyyMMdd') and DATE_FORMAT(day, 'yyyyMMdd') read and write digits."
            )
        return "Take an element of it first: tags[0], or its length: SIZE(tags)."
    if kind == "boolean":
        return "Count where it is true: COUNT_IF(condition)."
    if kind in _TIMES:
        return "MIN and MAX take times; DATEDIFF and TIMESTAMPDIFF give numbers."
    return "Take an element of it first, or EXPLODE it."


def _conditions(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions of a node that must be Boolean."""
    match node:
        case exp.Where() | exp.Having() | exp.Qualify():
            yield node.this
        case exp.Join() if isinstance(node.args.get("on"), exp.Expr):
            yield node.args["on"]
        case exp.If():
            case = node.parent
            if not (isinstance(case, exp.Case) and case.this is not None):
                yield node.this
        case exp.Connector():
            yield from (one for one in (node.left, node.right) if _kind(one) != "text")
        case exp.Not() if _kind(node.this) != "text":
            yield node.this


def _incomparable(
    node: exp.Expr, left: exp.Expr, right: exp.Expr, source: SqlText, subject: str
) -> IncomparableTypesError:
    at = right if isinstance(node, exp.SetOperation) else node
    return IncomparableTypesError(
        subject, shown(node), _written(left), _written(right), location=source.of(at)
    )


def first_at_each_place(problems: Iterable[LakehouseError | None]) -> Iterator[LakehouseError]:
    """The problems without those at a place that has one already.

    An output is repeated where its alias stood.
    """
    seen: set[Location | None] = set()
    for problem in problems:
        if problem is not None and problem.location not in seen:
            seen.add(problem.location)
            yield problem


def sure_type(node: exp.Expr) -> exp.DataType | None:
    """The type of an expression if it is certain, after ``check_types``; else None."""
    return _sure_type(node)


def sure_kind(node: exp.Expr) -> str | None:
    """The kind of an expression's type if it is certain, after ``check_types``; else None."""
    return _kind(node)


def _kind(node: exp.Expr) -> str | None:
    """The kind of an expression's type if it is certain."""
    found = _sure_type(node)
    return None if found is None else _named(found)


def _kind_of(node: exp.Expr) -> exp.DataType:
    return _sure_type(node) or _UNKNOWN


def _mark_sure_columns(tree: exp.Query) -> None:
    """Mark the columns whose types are certain: of stored tables, and of certain values."""
    # Inner queries come before those that read them.
    for scope in traverse_scope(tree):
        for column in scope.columns:
            around: Scope | None = scope
            while around is not None and column.table not in around.sources:
                around = around.parent
            source = around.sources[column.table] if around is not None else None
            if isinstance(source, exp.Table):
                column.meta[_SURE] = True
            elif isinstance(source, Scope) and isinstance(source.expression, exp.Select):
                outputs = [one for one in source.expression.selects if one.alias == column.name]
                named = len(outputs) == 1 and not source.outer_columns
                column.meta[_SURE] = named and _sure_type(outputs[0]) is not None


def _sure_type(node: exp.Expr) -> exp.DataType | None:
    node = node.unalias().unnest()
    if isinstance(node, exp.Column) and not node.meta.get(_SURE):
        return None
    if isinstance(node, _CONDITIONS):
        return _BOOLEAN
    if isinstance(node, exp.Neg):
        return _sure_type(node.this)
    if isinstance(node, exp.Max | exp.Min) and called_name(node) in {"max", "min"}:
        return _sure_type(node.this)
    sure = isinstance(node, exp.Column | exp.Literal | exp.Cast | exp.Boolean | exp.CurrentDate)
    return node.type if sure and isinstance(node.type, exp.DataType) else None


def _named(kind: exp.DataType) -> str | None:
    return _KIND_OF_TYPE.get(kind.this)


def _written(node: exp.Expr) -> str:
    return _kind_of(node).sql("spark").lower()
