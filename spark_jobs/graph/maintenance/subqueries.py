"""Subqueries as joins: EXISTS and IN as semi joins, scalar ones as outer joins with a group.

Kim, "On Optimizing an SQL-like Nested Query", 1982, with the fix of its count bug by Ganski and
Wong, 1987; NOT IN with SQL's NULL semantics.
"""

from __future__ import annotations

import re

from sqlglot import exp

from spark_jobs.graph.functions import aggregates, called_name, generates
from spark_jobs.graph.maintenance.aggregation import aggregate_calls
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Identity,
    LeftJoin,
    Named,
    Node,
    Side,
    conjuncts,
    used,
)
from spark_jobs.graph.maintenance.builder import Builder
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.maintenance.relations import all_of, from_clause, inner, push
from spark_jobs.graph.maintenance.scope import Scope, named

SEVERAL_ROWS = "A scalar subquery returned more than one row."
_ENDS_ZERO = (exp.Count, exp.CountIf, exp.ApproxDistinct)
# Those of other aggregates that are not NULL over no rows, and that once were taken to be so.
FULL_OVER_NO_ROWS = frozenset([
    "approx_top_k", "bitmap_and_agg", "bitmap_or_agg", "hll_sketch_agg", "hll_union_agg",
    "schema_of_variant_agg",
])  # fmt: skip
_ENDS_FULL = FULL_OVER_NO_ROWS | frozenset(
    ["collect_list", "collect_set", "array_agg", "bitmap_construct_agg", "count_min_sketch"]
)
_SKETCH = re.compile(r"(kll|theta|tuple)_\w*agg\w*|approx_top_k_(accumulate|combine)")


def where(builder: Builder, node: Node, condition: exp.Expr | None, scope: Scope) -> Node:
    """The rows for which a condition, which may contain subqueries, is true.

    Raises:
        NotIncrementalError: a subquery has no rule.
    """
    later = []
    for one in conjuncts(condition):
        if one.find(exp.Query):
            later.append(one)
        else:
            node = push(node, _rewrite(one.copy(), scope, node))
    for one in later:
        node = _conjunct(builder, node, one, scope)
    return node


def scalars(
    builder: Builder, node: Node, expression: exp.Expr, scope: Scope, *, condition: bool
) -> tuple[Node, exp.Expr]:
    """Join the subqueries of an expression to a node, and replace them by columns.

    The new columns have no table and use the tree's names; other columns stay as written.

    Args:
        builder: builds the tree.
        node: the rows for which the expression is computed.
        expression: with subqueries.
        scope: the names of the query.
        condition: whether the expression is one, in which NULL and false are alike.

    Raises:
        NotIncrementalError: a subquery has no rule.
    """
    holder = exp.Paren(this=expression.copy())
    for found in _outermost(holder):
        if isinstance(found, exp.Subquery):
            node, value = _scalar(builder, node, found.this, scope)
        elif isinstance(found, exp.Exists):
            node, value = _exists(builder, node, found, scope)
        else:
            node, value = _in(builder, node, found, scope, condition=condition)
        found.replace(exp.Paren(this=value))
    return node, holder.this


def _outermost(holder: exp.Expr) -> list[exp.Expr]:
    """The subqueries of an expression, without nested ones."""

    def holds(one: exp.Expr) -> bool:
        # EXISTS of an array is a function of it.
        tests = isinstance(one, exp.Exists) and isinstance(one.this, exp.Query)
        return tests or isinstance(one, exp.Subquery) or bool(one.args.get("query"))

    return [one for one in holder.walk(prune=holds) if holds(one)]


def _conjunct(builder: Builder, node: Node, condition: exp.Expr, scope: Scope) -> Node:
    condition = condition.unnest()
    negated = isinstance(condition, exp.Not)
    inside = condition.this.unnest() if negated else condition
    side = Side.ANTI if negated else Side.SEMI
    if isinstance(inside, exp.Exists):
        right, conditions, _ = _matching(builder, inside.this, scope, outputs=False)
        return LeftJoin(node, right, all_of(conditions), side)
    if inside.args.get("query"):
        return _joined_by_in(builder, node, inside, scope, side)
    node, rewritten = scalars(builder, node, condition, scope, condition=True)
    return push(node, _rewrite(rewritten, scope, node))


def _joined_by_in(builder: Builder, node: Node, test: exp.Expr, scope: Scope, side: Side) -> Node:
    query = test.args["query"]
    right, conditions, outputs = _matching(builder, query.unnest(), scope, outputs=True)
    if test.this.find(exp.Query):
        raise unsupported(test, "a subquery on the left of IN")
    left = test.this.unnest()
    values = left.expressions if isinstance(left, exp.Tuple) else [test.this]
    equal = all_of(
        [
            exp.EQ(this=_closed(scope.rewrite(value)), expression=_closed(output))
            for value, output in zip(values, outputs, strict=True)
        ]
    )
    if side is Side.ANTI:
        # NOT IN keeps a row only if every comparison is false; NULL is not false.
        unknown = exp.Is(this=exp.paren(equal), expression=exp.null())
        equal = exp.paren(exp.or_(equal, unknown))
    return LeftJoin(node, right, all_of([*conditions, equal]), side)


def _closed(value: exp.Expr) -> exp.Expr:
    """A value as a side of an equality; equal columns restrict what is read."""
    return value.copy() if isinstance(value, exp.Column) else exp.paren(value)


def _matching(
    builder: Builder, query: exp.Expr, scope: Scope, *, outputs: bool
) -> tuple[Node, list[exp.Expr], list[exp.Expr]]:
    """The right side of a semi join: rows, conditions on the outer row, outputs."""
    if isinstance(query, exp.Select) and _is_plain(query):
        inner_scope = Scope(around=scope)
        with builder.common_tables(query):
            right = from_clause(builder, query, inner_scope)
            right, conditions = _split_where(builder, right, query, inner_scope)
        columns = [inner_scope.rewrite(one.unalias()) for one in query.selects] if outputs else []
        if any(not used(one) <= set(right.columns) for one in columns):
            raise unsupported(query, "a subquery that gives out columns of the query around")
        return right, conditions, columns
    if not isinstance(query, exp.Query):
        raise unsupported(query, "this form of subquery")
    right, found = builder.query(query)
    return right, [], [named(name) for _, name in found]


def _split_where(
    builder: Builder, node: Node, query: exp.Select, scope: Scope
) -> tuple[Node, list[exp.Expr]]:
    """Apply conditions on the subquery alone; return those that read the outer row."""
    clause = query.args.get("where")
    alone: list[exp.Expr] = []
    outer: list[exp.Expr] = []
    for one in conjuncts(clause.this if clause else None):
        reads_outer = scope.is_outer(one) and not one.find(exp.Query)
        (outer if reads_outer else alone).append(one)
    node = where(builder, node, exp.and_(*alone) if alone else None, scope)
    return node, [scope.rewrite(one) for one in outer]


def _scalar(builder: Builder, node: Node, query: exp.Expr, scope: Scope) -> tuple[Node, exp.Expr]:
    """Join a scalar subquery to each row, and return the expression of its value."""
    child, outer, value = _aggregated(builder, query, scope)
    calls: dict[Identity, Named] = {}
    value = aggregate_calls(value, calls, builder.names)
    keys, pairs = _group(builder, outer, child, query)
    group = Aggregate(child, keys, tuple(calls.values()))
    if not keys:
        return inner(node, group, []), value
    for _, call in calls.values():
        ended = called_name(_inside(call))
        if ended in _ENDS_FULL or _SKETCH.fullmatch(ended):
            raise unsupported(query, f"a correlated scalar subquery with {ended}")
    # A row without matches joins no group, while the subquery's COUNT would be 0.
    marks = {name: call for name, call in calls.values() if _counts(call)}
    for column in list(value.find_all(exp.Column)):
        if column.name in marks:
            zero = exp.Coalesce(this=column.copy(), expressions=[exp.Literal.number(0)])
            if column is value:
                value = zero
            else:
                column.replace(zero)
    return LeftJoin(node, group, _matches(pairs), Side.OUTER), value


def _aggregated(
    builder: Builder, query: exp.Expr, scope: Scope
) -> tuple[Node, list[exp.Expr], exp.Expr]:
    """The rows of a scalar subquery, its conditions on the outer row, and its value over them."""
    if not isinstance(query, exp.Query):
        raise unsupported(query, "this form of subquery")
    one = query.selects[0].unalias()
    if isinstance(query, exp.Select) and not one.find(exp.Query):
        aggregate = _is_scalar(query)
        if aggregate or (_is_plain(query) and not query.args.get("distinct")):
            inner_scope = Scope(around=scope)
            with builder.common_tables(query):
                child = from_clause(builder, query, inner_scope)
                child, outer = _split_where(builder, child, query, inner_scope)
            if inner_scope.is_outer(one):
                text = "a scalar subquery that computes with columns from around it"
                raise unsupported(query, text)
            value = inner_scope.rewrite(one)
            return child, outer, value if aggregate else _only(value)
    child, outputs = builder.query(query)
    return child, [], _only(named(outputs[0][1]))


def _only(value: exp.Expr) -> exp.Expr:
    """The value of the only row, NULL if there is none; several fail as the subquery does."""
    many = exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Literal.number(1))
    failure = exp.Anonymous(this="RAISE_ERROR", expressions=[exp.Literal.string(SEVERAL_ROWS)])
    return exp.func("IF", many, failure, exp.Max(this=value))


def _exists(builder: Builder, node: Node, test: exp.Exists, scope: Scope) -> tuple[Node, exp.Expr]:
    """Join a Boolean column for EXISTS below OR, or anywhere in an expression."""
    right, outer, _ = _matching(builder, test.this, scope, outputs=False)
    return _mark(builder, node, right, outer, test)


def _in(
    builder: Builder, node: Node, test: exp.Expr, scope: Scope, *, condition: bool
) -> tuple[Node, exp.Expr]:
    """Join the columns of IN's value inside of an expression.

    Where SQL says NULL, Spark says false, and for NOT IN false as well. That is the same in a
    condition. A value that is not negated is followed as Spark computes it; other values depend on
    what Spark's optimizer does first.
    """
    negated, below, above = False, test, test.parent
    while isinstance(above, exp.Paren | exp.And | exp.Or | exp.Not):
        negated = negated or isinstance(above, exp.Not)
        below, above = above, above.parent
    if isinstance(above, exp.If):
        # CASE x WHEN y compares.
        case = above.parent if isinstance(above.parent, exp.Case) else None
        decides = above.this is below and (case is None or case.this is None)
    else:
        decides = above is None and (condition or not negated)
    if not decides:
        raise unsupported(test, "IN with a subquery inside of an expression")
    return (_in_or_unknown if negated else _is_in)(builder, node, test, scope)


def _is_in(builder: Builder, node: Node, test: exp.Expr, scope: Scope) -> tuple[Node, exp.Expr]:
    """Join a Boolean column for IN, false instead of NULL."""
    right, outer, column = _one_column(builder, test, scope)
    equal = exp.EQ(this=scope.rewrite(test.this), expression=column)
    return _mark(builder, node, right, [*outer, equal], test)


def _in_or_unknown(
    builder: Builder, node: Node, test: exp.Expr, scope: Scope
) -> tuple[Node, exp.Expr]:
    """Join the columns of IN's value in SQL: NULL if nothing is equal, but a NULL is compared."""
    right, outer, column = _one_column(builder, test, scope)
    if outer:
        raise unsupported(test, "IN with a correlated subquery inside of an expression")
    rows, filled = builder.names.fresh("rows"), builder.names.fresh("filled")
    calls: tuple[Named, ...] = (
        (rows, exp.Count(this=exp.Star(), big_int=True)),
        (filled, exp.Count(this=column, big_int=True)),
    )
    node = inner(node, Aggregate(right, (), calls), [])
    node, found = _is_in(builder, node, test, scope)
    left = exp.Paren(this=scope.rewrite(test.this))
    unknown = exp.or_(
        exp.Is(this=left, expression=exp.null()),
        exp.LT(this=named(filled), expression=named(rows)),
    )
    none = exp.EQ(this=named(rows), expression=exp.Literal.number(0))
    value = (
        exp.Case()
        .when(found, exp.true())
        .when(none, exp.false())
        .when(unknown, exp.null())
        .else_(exp.false())
    )
    return node, value


def _one_column(
    builder: Builder, test: exp.Expr, scope: Scope
) -> tuple[Node, list[exp.Expr], exp.Expr]:
    """The right side of IN below another operator: rows, conditions on the outer row, its column.

    It is built anew at each call, with names of its own.
    """
    right, outer, columns = _matching(builder, test.args["query"].unnest(), scope, outputs=True)
    if len(columns) != 1 or test.this.find(exp.Query):
        raise unsupported(test, "IN over several columns inside of an expression")
    return right, outer, columns[0]


def _mark(
    builder: Builder, node: Node, right: Node, outer: list[exp.Expr], test: exp.Expr
) -> tuple[Node, exp.Expr]:
    """Join a column that says whether there are rows that meet the conditions on the outer row."""
    keys, pairs = _group(builder, outer, right, test)
    if not keys:
        count = builder.names.fresh("rows")
        rows: Named = (count, exp.Count(this=exp.Star(), big_int=True))
        node = inner(node, Aggregate(right, (), (rows,)), [])
        return node, exp.GT(this=named(count), expression=exp.Literal.number(0))
    found = exp.Is(this=named(keys[0][0]), expression=exp.null()).not_()
    return LeftJoin(node, Aggregate(right, keys, ()), _matches(pairs), Side.OUTER), found


def _matches(pairs: list[tuple[str, exp.Expr]]) -> exp.Expr:
    """The condition of a row and its group."""
    return all_of([exp.EQ(this=left, expression=named(key)) for key, left in pairs])


def _group(
    builder: Builder, outer: list[exp.Expr], child: Node, query: exp.Expr
) -> tuple[tuple[Named, ...], list[tuple[str, exp.Expr]]]:
    """Group by the expressions that are compared with the outer row."""
    keys: list[Named] = []
    pairs: list[tuple[str, exp.Expr]] = []
    inside = set(child.columns)
    for one in outer:
        if not isinstance(one, exp.EQ):
            raise unsupported(query, "a scalar subquery that is correlated by more than equality")
        for ours, theirs in ((one.this, one.expression), (one.expression, one.this)):
            if used(ours) and used(ours) <= inside and not used(theirs) & inside:
                name = builder.names.fresh("key")
                keys.append((name, ours.copy()))
                pairs.append((name, theirs.copy()))
                break
        else:
            raise unsupported(query, "a scalar subquery that is correlated by more than equality")
    return tuple(keys), pairs


def _rewrite(expression: exp.Expr, scope: Scope, node: Node) -> exp.Expr:
    """Rewrite the columns of the scope; names of the tree stay."""
    known = set(node.columns)
    copy = exp.Paren(this=expression)
    for column in list(copy.find_all(exp.Column)):
        if column.table or column.name not in known:
            column.replace(named(scope.resolve(column)))
    return copy.this  # type: ignore[no-any-return]


def _counts(call: exp.Expr) -> bool:
    inside = _inside(call)
    return isinstance(inside, _ENDS_ZERO) or called_name(inside) == "regr_count"


def _inside(call: exp.Expr) -> exp.Expr:
    return call.this if isinstance(call, exp.Filter) else call


def _is_plain(query: exp.Select) -> bool:
    """Whether the subquery returns the rows of its FROM and WHERE, or the distinct ones."""
    if any(query.args.get(name) for name in ("group", "having", "limit", "offset", "qualify")):
        return False
    return not any(
        aggregates(one) or generates(one) or one.find(exp.Window) for one in query.selects
    )


def _is_scalar(query: exp.Select) -> bool:
    """Whether the subquery always returns one row: an aggregate without GROUP BY."""
    clauses = ("group", "having", "qualify", "limit", "offset", "distinct")
    one = query.selects[0].unalias()
    if any(query.args.get(name) for name in clauses) or one.find(exp.Window) or generates(one):
        return False
    return aggregates(one)


def unsupported(node: exp.Expr, what: str) -> NotIncrementalError:
    """The error of a subquery without a rule."""
    return NotIncrementalError(
        Obstacle.UNSUPPORTED_SUBQUERY, f"{what} has no incremental rule", node
    )
