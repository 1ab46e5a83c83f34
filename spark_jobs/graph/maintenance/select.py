"""Builds the operators of a SELECT, in the order in which SQL evaluates its clauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from spark_jobs.graph.functions import aggregates, called_name, generates
from spark_jobs.graph.maintenance.aggregation import (
    Keys,
    aggregate_calls,
    grouped_by_sets,
    grouping_sets,
    is_call,
    outside_in,
)
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Constant,
    Filter,
    Identity,
    Join,
    Named,
    Node,
    Project,
    Window,
    conjuncts,
    identity,
    used,
)
from spark_jobs.graph.maintenance.builder import Builder, Outputs
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.maintenance.relations import from_clause, inner, nothing
from spark_jobs.graph.maintenance.scope import Scope, named
from spark_jobs.graph.maintenance.subqueries import scalars, where

_NOT_FOLLOWED = (
    "connect", "match", "sort", "cluster", "distribute", "pivots", "into", "kind", "sample",
)  # fmt: skip


@dataclass
class Selected:
    """The operators of a SELECT; ``order`` is over the columns of the node."""

    node: Node
    outputs: Outputs
    order: list[exp.Expr] = field(default_factory=list)


@dataclass
class _Clauses:
    """The expressions of a SELECT while they are converted to the tree's names."""

    outputs: list[exp.Expr]
    having: exp.Expr | None
    qualify: exp.Expr | None
    order: list[exp.Expr]

    def all(self) -> list[exp.Expr]:
        more = [one for one in (self.having, self.qualify) if one is not None]
        return [*self.outputs, *more, *self.order]

    def each(self, change: Callable[[exp.Expr], exp.Expr]) -> _Clauses:
        """The clauses with each expression changed."""
        return _Clauses(
            [change(one) for one in self.outputs],
            change(self.having) if self.having is not None else None,
            change(self.qualify) if self.qualify is not None else None,
            [change(one) for one in self.order],
        )


def build_select(builder: Builder, select: exp.Select, around: Scope | None) -> Selected:
    """The operators of a SELECT, without LIMIT.

    Raises:
        NotIncrementalError: a clause or an operator has no rule.
    """
    _check_clauses(select)
    scope = Scope(around=around)
    node = from_clause(builder, select, scope)
    clause = select.args.get("where")
    node = where(builder, node, clause.this if clause else None, scope)
    names = [one.alias_or_name for one in select.selects]
    clauses = _clauses(select, names)
    group = select.args.get("group")
    # HAVING makes one group of all rows, also without an aggregate.
    grouped = group is not None or clauses.having is not None
    if grouped or any(aggregates(one) for one in clauses.all()):
        having, clauses.having = _of_keys(clauses.having, group, scope)
        node = where(builder, node, having, scope)
        rows, clauses = _within_aggregates(builder, node, clauses, scope)
        known = set(rows.columns) - set(node.columns)
        # Join scalar subqueries next to aggregates to the groups, not to the rows.
        subquery, clauses = _subqueries(builder, nothing(builder), clauses, scope)
        node, clauses = rows, _rewritten(clauses, scope, known | set(subquery.columns))
        node, clauses = _grouped(builder, node, clauses, group, scope, subquery=subquery)
    else:
        node, clauses = _subqueries(builder, node, clauses, scope)
        clauses = _rewritten(clauses, scope, set(node.columns))
    for one in conjuncts(clauses.having):
        node = Filter(node, one)
    node, clauses = _windows(builder, node, clauses)
    for one in conjuncts(clauses.qualify):
        node = Filter(node, one)
    return _projected(builder, node, clauses, names, distinct=bool(select.args.get("distinct")))


def _check_clauses(select: exp.Select) -> None:
    for name in _NOT_FOLLOWED:
        if select.args.get(name):
            raise _unsupported(select, f"the clause {name.upper()}")
    if any(isinstance(one, exp.Aliases) for one in select.selects):
        raise _unsupported(select, "a generator of several columns")
    group = select.args.get("group")
    if group is not None and group.args.get("all"):
        raise _unsupported(select, "GROUP BY ALL without a column to group by")
    if group is not None and any(_is_nothing(one) for one in group.expressions):
        raise _unsupported(select, "GROUP BY ()")


def _is_nothing(key: exp.Expr) -> bool:
    return isinstance(key, exp.Tuple) and not key.expressions


def _clauses(select: exp.Select, names: list[str]) -> _Clauses:
    having, qualify = select.args.get("having"), select.args.get("qualify")
    order = select.args.get("order")
    outputs = [one.unalias().copy() for one in select.selects]
    limited = select.args.get("limit") or select.args.get("offset")
    clauses = _Clauses(
        outputs,
        having.this.copy() if having else None,
        qualify.this.copy() if qualify else None,
        [one.copy() for one in order.expressions] if order and limited else [],
    )
    # These clauses may refer to an output by name or position.
    by_name = {name.lower(): value for name, value in zip(names, outputs, strict=True)}
    for index, one in enumerate(clauses.order):
        # In Spark integers are positions, and 1e3 is a constant.
        if one.this.is_int:
            one.set("this", outputs[int(one.this.name) - 1].copy())
        clauses.order[index] = _outputs_replaced(one, by_name)
    if clauses.having is not None:
        clauses.having = _outputs_replaced(clauses.having, by_name)
    if clauses.qualify is not None:
        clauses.qualify = _outputs_replaced(clauses.qualify, by_name)
    return clauses


def _outputs_replaced(expression: exp.Expr, by_name: dict[str, exp.Expr]) -> exp.Expr:
    def replace(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in by_name:
            return exp.paren(by_name[node.name.lower()])
        return node if isinstance(node, exp.Query) else None

    return outside_in(expression, replace)


def _of_keys(
    having: exp.Expr | None, group: exp.Group | None, scope: Scope
) -> tuple[exp.Expr | None, exp.Expr | None]:
    """The conditions of HAVING with a subquery that are those of all rows of a group, and the rest.

    A group has the rows for which they hold, or does not exist.
    """
    if having is None or group is None or grouping_sets(group) is not None:
        return None, having
    keys = {
        scope.own(key) for one in group.expressions if isinstance(key := one.unnest(), exp.Column)
    }
    of_keys: list[exp.Expr] = []
    others: list[exp.Expr] = []
    for one in conjuncts(having):
        alone = _reads_around(one, scope) and not aggregates(one) and not one.find(exp.Window)
        columns = {scope.own(column) for column in one.find_all(exp.Column)} - {None}
        (of_keys if alone and columns <= keys else others).append(one)
    both = (exp.and_(*found) if found else None for found in (of_keys, others))
    return next(both), next(both)


def _reads_around(condition: exp.Expr, scope: Scope) -> bool:
    """Whether a condition has a subquery that reads, or is compared with, a row of the query."""
    compared = any(isinstance(one, exp.In) and one.args.get("query") for one in condition.walk())
    return compared or any(
        scope.own(column) is not None
        for query in condition.find_all(exp.Query)
        for column in query.find_all(exp.Column)
    )


def _within_aggregates(
    builder: Builder, node: Node, clauses: _Clauses, scope: Scope
) -> tuple[Node, _Clauses]:
    """Join the subqueries within aggregates to the rows that are aggregated."""
    found: dict[Identity, exp.Expr] = {}

    def replace(part: exp.Expr) -> exp.Expr | None:
        nonlocal node
        if not is_call(part):
            return part if isinstance(part, exp.Query) else None
        if not part.find(exp.Query):
            return part
        which = identity(part)
        if which not in found:
            node, found[which] = scalars(builder, node, part, scope, condition=False)
        return found[which].copy()

    clauses = clauses.each(lambda one: outside_in(one, replace))
    return node, clauses


def _subqueries(
    builder: Builder, node: Node, clauses: _Clauses, scope: Scope
) -> tuple[Node, _Clauses]:
    """Join the scalar subqueries of the clauses after FROM to its rows."""

    def joined(expression: exp.Expr, *, condition: bool = False) -> exp.Expr:
        nonlocal node
        node, value = scalars(builder, node, expression, scope, condition=condition)
        return value

    outputs = [joined(one) for one in clauses.outputs]
    having = joined(clauses.having, condition=True) if clauses.having is not None else None
    return node, _Clauses(outputs, having, clauses.qualify, clauses.order)


def _rewritten(clauses: _Clauses, scope: Scope, known: set[str]) -> _Clauses:
    def rewrite(expression: exp.Expr) -> exp.Expr:
        holder = exp.Paren(this=expression)
        for column in list(holder.find_all(exp.Column)):
            is_tree = not column.table and column.name in known
            if not is_tree and not _of_window(column, scope):
                column.replace(named(scope.resolve(column)))
        return holder.this  # type: ignore[no-any-return]

    return clauses.each(rewrite)


def _of_window(column: exp.Column, scope: Scope) -> bool:
    """Whether a column belongs to the struct of ``window(...)`` in GROUP BY."""
    own = {"window", "session_window"}
    # A table in front of the name makes it a field of the table's column.
    free = scope.own(column) is None and not column.db
    return free and bool({column.table.lower(), column.name.lower()} & own)


def _grouped(
    builder: Builder,
    node: Node,
    clauses: _Clauses,
    group: exp.Group | None,
    scope: Scope,
    *,
    subquery: Node,
) -> tuple[Node, _Clauses]:
    found = grouping_sets(group)
    written, sets = found or (group.expressions if group else [], None)
    keys = Keys.of(builder, [scope.rewrite(one.unnest()) for one in written])
    if keys.windows:
        passed = tuple((column, named(column)) for column in node.columns)
        node = Project(node, (*passed, *keys.windows), multiplies=True)
    calls: dict[Identity, Named] = {}

    def above(expression: exp.Expr) -> exp.Expr:
        expression = outside_in(expression, keys.column)
        return aggregate_calls(expression, calls, builder.names)

    clauses = clauses.each(above)
    if not keys.named and not calls:
        count = exp.Count(this=exp.Star(), big_int=True)
        calls[identity(count)] = (builder.names.fresh("rows"), count)
    by, aggregates_of = tuple(keys.named.values()), tuple(calls.values())
    if sets is None:
        node = Aggregate(node, by, aggregates_of, frozenset(keys.sessions))
    elif keys.sessions:
        raise _unsupported(None, "session_window in grouping sets")
    else:
        members = [
            [keys.named[identity(scope.rewrite(one.unnest()))][0] for one in part] for part in sets
        ]
        node = grouped_by_sets(node, by, members, aggregates_of, builder.names)
    if not isinstance(subquery, Constant):
        if not isinstance(subquery, Join):
            raise _unsupported(None, "a subquery next to aggregates that reads their rows")
        node = inner(node, subquery, [])
    known = set(node.columns)
    for one in clauses.all():
        if missing := sorted(used(one) - known):
            text = f"{missing[0]} is neither grouped by nor aggregated"
            raise NotIncrementalError(Obstacle.UNRESOLVED_COLUMN, text)
    return node, clauses


def _windows(builder: Builder, node: Node, clauses: _Clauses) -> tuple[Node, _Clauses]:
    """One operator per partitioning, later ones on top."""
    found: dict[tuple[Identity, ...], list[exp.Window]] = {}
    for one in clauses.all():
        for window in one.find_all(exp.Window):
            parts = tuple(map(identity, window.args["partition_by"]))
            found.setdefault(parts, []).append(window)
    names: dict[Identity, str] = {}
    for windows in found.values():
        functions = []
        for window in windows:
            which = identity(window)
            if which not in names:
                names[which] = builder.names.fresh(called_name(window.this) or "window")
                functions.append((names[which], window.copy()))
        partition = tuple(one.copy() for one in windows[0].args["partition_by"])
        node = Window(node, partition, tuple(functions))

    def replace(part: exp.Expr) -> exp.Expr | None:
        return named(names[identity(part)]) if isinstance(part, exp.Window) else None

    return node, clauses.each(lambda one: outside_in(one, replace))


def _projected(
    builder: Builder, node: Node, clauses: _Clauses, names: list[str], *, distinct: bool
) -> Selected:
    outputs = [(name, builder.names.fresh(name or "column")) for name in names]
    expressions = [(at, value) for (_, at), value in zip(outputs, clauses.outputs, strict=True)]
    order, more = _order_columns(builder, clauses.order, expressions)
    if distinct and more:
        raise _unsupported(None, "DISTINCT with ORDER BY over something else")
    everything = (*expressions, *more)
    multiplies = any(generates(value) for _, value in everything)
    node = Project(node, everything, multiplies=multiplies)
    if distinct:
        fresh = [(at, builder.names.fresh(at)) for at, _ in expressions]
        node = Aggregate(node, tuple((new, named(at)) for at, new in fresh), ())
        renamed = dict(fresh)
        outputs = [(name, renamed[at]) for name, at in outputs]
        for one in order:
            for column in list(one.find_all(exp.Column)):
                column.replace(named(renamed[column.name]))
    return Selected(node, outputs, order)


def _order_columns(
    builder: Builder, order: list[exp.Expr], outputs: list[Named]
) -> tuple[list[exp.Expr], list[Named]]:
    """ORDER BY over the projection's columns, and additional columns that it needs."""
    known = {identity(value.unnest()): at for at, value in outputs}
    more: list[Named] = []
    result = []
    for one in order:
        value = one.this.unnest()
        which = identity(value)
        if which not in known:
            known[which] = builder.names.fresh("sort")
            more.append((known[which], value.copy()))
        copy = one.copy()
        copy.set("this", named(known[which]))
        result.append(copy)
    return result, more


def _unsupported(node: exp.Expr | None, what: str) -> NotIncrementalError:
    text = f"{what} has no incremental rule"
    return NotIncrementalError(Obstacle.UNSUPPORTED_CLAUSE, text, node)
