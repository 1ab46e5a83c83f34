"""Finds columns that a query of groups uses outside of its groups.

Spark takes a column beside aggregates if it, or an expression around it, is one of the grouping
expressions. It compares them after it swapped the sides of operators, replaced functions by others
and added casts. Only what is certainly none of them is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from sqlglot import exp

from spark_jobs.graph.clause_checks import grouping_calls
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.functions import aggregates, bare_columns, called_name, looks_up
from spark_jobs.graph.sql import relations_of

_LISTS: Final = (exp.Group, exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets)
# Parts of an expression that have no value.
_CLAUSES: Final = (exp.Alias, exp.Order, exp.Ordered, exp.Window, exp.WindowSpec)
# Expressions that no column, operator or function of those below equals.
_CONDITIONS: Final = (exp.Predicate, exp.Connector, exp.Not, exp.Case, exp.If)
# Expressions with comparisons that are not in their tree.
_COMPARING: Final = (exp.Case, exp.Nullif, exp.Between)
_OPERATORS: Final = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Bracket, exp.Struct,
)  # fmt: skip
# Functions that no other one replaces.
_PLAIN: Final = frozenset(
    {"date_trunc", "lower", "minute", "month", "quarter", "trunc", "upper", "weekofyear", "year"}
)


def ungrouped_columns(select: exp.Select) -> Iterator[exp.Column]:
    """The first use of each column next to aggregates that GROUP BY does not contain.

    Args:
        select: a query that ``resolve`` qualified without problems.
    """
    group = select.args.get("group")
    if select.args.get("pivots"):
        return
    having = select.args.get("having")
    parts = [*select.expressions, *([having.this] if having is not None else [])]
    # HAVING makes one group of all rows, also without an aggregate.
    if group is None and having is None and not any(aggregates(one) for one in parts):
        return
    order = select.args.get("order")
    parts += [] if order is None else order.expressions
    yield from _first_uses(_outside(parts, select, _groups(select)))


def hidden_in_qualify(select: exp.Select) -> Iterator[exp.Column]:
    """The first use of each column in QUALIFY over groups where Spark does not find it.

    It finds outputs and what is grouped by, but not if that has a call of a function, or numbers
    of two types, to which it adds a cast.

    Args:
        select: a query that ``resolve`` qualified without problems.
    """
    qualify, group = select.args.get("qualify"), select.args.get("group")
    if qualify is None or select.args.get("pivots"):
        return
    outputs = [one.unalias() for one in select.expressions]
    grouped = group is not None or select.args.get("having") is not None
    if not grouped and not any(aggregates(one) for one in outputs):
        return
    groups = _groups(select)
    kept = [one for one in groups if not looks_up(one) and not any(map(_casts, one.walk()))]
    found = _outside([qualify.this], select, kept)
    # An output that QUALIFY names is in its place.
    of_outputs = {_start(column) for one in outputs for column in _columns(one)}
    yield from _first_uses(one for one in found if _start(one) not in of_outputs)


def _groups(select: exp.Select) -> list[exp.Expr]:
    """The grouping expressions; of GROUP BY ALL, the outputs without an aggregate."""
    group = select.args.get("group")
    if group is not None and group.args.get("all"):
        return [_bare(one) for one in select.expressions if not aggregates(one)]
    return [] if group is None else grouping_expressions(group)


def _outside(
    parts: list[exp.Expr], select: exp.Select, groups: list[exp.Expr]
) -> Iterator[exp.Column]:
    """The columns of relations in parts of a SELECT, outside of the groups."""
    relations = {one.alias_or_name.lower() for one in relations_of(select)}
    grouped = {_name(column) for one in groups for column in _columns(one)}
    known = not any(
        one.find(exp.Query) or any(_of(column) not in relations for column in _columns(one))
        for one in groups
    )
    for part in parts:
        for column in bare_columns(part):
            outside = _name(column) not in grouped
            outside = outside or (known and not _is_grouped(column, part, groups))
            if outside and _of(column) in relations:
                yield column


def _first_uses(columns: Iterator[exp.Column]) -> Iterator[exp.Column]:
    seen: set[str] = set()
    for column in columns:
        if _name(column) not in seen:
            seen.add(_name(column))
            yield column


def _casts(node: exp.Expr) -> bool:
    """Whether Spark certainly adds a cast to a side of an operator."""
    if not isinstance(node, exp.Binary):
        return False
    kinds = [one.type.this for one in (node.left, node.right) if isinstance(one.type, exp.DataType)]
    whole = [one for one in kinds if one in exp.DataType.INTEGER_TYPES]
    if isinstance(node, exp.Div | exp.IntDiv) and len(whole) == len(kinds) == 2:
        return isinstance(node, exp.Div) or whole != [exp.DType.BIGINT] * 2
    numbers = [one for one in kinds if one in exp.DataType.NUMERIC_TYPES]
    dates = [one for one in kinds if one is exp.DType.DATE]
    return len(set(numbers)) == 2 or (len(numbers) == 1 and len(dates) == 1)


def _start(column: exp.Column) -> int | None:
    """The place of a column's name in the text."""
    start: int | None = column.this.meta.get("start")
    return start


def ungrouped_marks(select: exp.Select) -> Iterator[exp.Func]:
    """The calls of GROUPING and GROUPING_ID of a column that is none of the grouping expressions.

    Args:
        select: a query that ``resolve`` qualified without problems.
    """
    group = select.args.get("group")
    if group is None:
        return
    names = {one.alias.lower() for one in select.expressions if isinstance(one, exp.Alias)}
    names |= {one.name.lower() for one in grouping_expressions(group)}
    for part in select.expressions:
        for call in grouping_calls(part, select):
            values = [one.unnest() for one in call.iter_expressions()]
            if any(isinstance(one, exp.Column) and one.name.lower() not in names for one in values):
                yield call


def other_ids(select: exp.Select) -> Iterator[exp.Func]:
    """The calls of GROUPING_ID whose arguments are not all grouping expressions in their order.

    Args:
        select: a query that ``resolve`` qualified without problems.
    """
    group = select.args.get("group")
    if group is None:
        return
    groups = list(dict.fromkeys(grouping_expressions(group)))
    for call in grouping_calls(select, select):
        values = [_bare(one) for one in call.iter_expressions()]
        if called_name(call) != "grouping_id" or not values or call.find_ancestor(exp.Group):
            continue
        pairs = [
            pair
            for pair in zip(values, groups, strict=False)
            if any(isinstance(one, exp.Column) and one.table for one in pair)
        ]
        if len(values) != len(groups) or any(_text(a) != _text(b) for a, b in pairs):
            yield call


def grouping_expressions(group: exp.Expr) -> list[exp.Expr]:
    """The grouping expressions, also those within ROLLUP, CUBE and GROUPING SETS."""
    if isinstance(group, _LISTS):
        return [one for inner in group.iter_expressions() for one in grouping_expressions(inner)]
    return [_bare(group)]


def _is_grouped(column: exp.Column, part: exp.Expr, groups: list[exp.Expr]) -> bool:
    """Whether a column of a part, or an expression around it, may be a grouping expression."""
    node: exp.Expr | None = column
    conditions = any(isinstance(one, exp.Predicate) for one in groups)
    while node is not None and node is not part.parent:
        if conditions and isinstance(node, _COMPARING):
            return True
        if not isinstance(node, _CLAUSES):
            alone = _is_as_written(node, part)
            if any(_may_equal(node, one, alone=alone) for one in groups):
                return True
        node = node.parent
    return False


def _is_as_written(node: exp.Expr, part: exp.Expr) -> bool:
    """Whether Spark adds no cast around a node: it is an output, or is cast already."""
    while node is not part and isinstance(node.parent, exp.Paren):
        node = node.parent
    if node is part or isinstance(node.parent, exp.Alias):
        return isinstance(part.parent, exp.Select) and part.arg_key == "expressions"
    return isinstance(node.parent, exp.Cast)


def _may_equal(node: exp.Expr, grouping: exp.Expr, *, alone: bool) -> bool:
    node = _bare(node)
    if {_name(one) for one in _columns(node)} != {_name(one) for one in _columns(grouping)}:
        return False
    if alone and isinstance(node, exp.Column):
        return isinstance(grouping, exp.Column)
    left, right = _parts(node), _parts(grouping)
    if left is None or right is None:
        sides = ((node, right), (grouping, left))
        return not any(isinstance(one, _CONDITIONS) and other for one, other in sides)
    return left == right and not (alone and _cast_to(node) != _cast_to(grouping))


def _parts(node: exp.Expr) -> Counter[str] | None:
    """What an expression consists of in any order, without casts; None if it may be another."""
    node = _bare(node)
    leaf = _leaf(node)
    if leaf is not None:
        return Counter([leaf])
    found, inner, called = Counter[str](), [node.this], called_name(node)
    match node:
        case exp.Cast() if called in {"", "cast"} and not _is_text(node.this):
            pass
        case exp.TsOrDsToDate() if not called:
            pass
        case exp.PropertyEQ():
            inner = [node.expression]
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            # Written as st.x, or as st['x'].
            found.update(["Bracket", f"'{node.expression.name.lower()}'"])
        case _ if isinstance(node, _OPERATORS) or called in _PLAIN:
            found[type(node).__name__] = 1
            inner = [*node.iter_expressions()]
        case _:
            return None
    for one in inner:
        more = _parts(one)
        if more is None:
            return None
        found.update(more)
    return found


def _leaf(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Column):
        return _name(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        return str(Decimal(node.name).normalize())
    return f"'{node.name.lower()}'" if isinstance(node, exp.Literal | exp.Var) else None


def _bare(node: exp.Expr) -> exp.Expr:
    """An expression without what Spark drops: its alias, parentheses and plus signs."""
    node = node.unalias().unnest()
    signed = isinstance(node, exp.Anonymous) and node.name == "POSITIVE" and node.expressions
    return _bare(node.expressions[0]) if signed else node


def _is_text(node: exp.Expr) -> bool:
    """Whether a node is a text, which may be a literal of another type."""
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _cast_to(node: exp.Expr) -> str:
    """The type of a cast; decimals have a default size."""
    if not isinstance(node, exp.Cast):
        return ""
    return "DECIMAL" if node.to.is_type(exp.DType.DECIMAL) else to_sql(node.to)


def _columns(node: exp.Expr) -> Iterator[exp.Column]:
    return node.find_all(exp.Column)


def _text(node: exp.Expr) -> str:
    return to_sql(node).lower()


def _name(column: exp.Column) -> str:
    return f"{column.table}.{column.name}".lower()


def _of(column: exp.Column) -> str:
    return column.table.lower()
