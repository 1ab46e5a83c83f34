"""Builds the operators of FROM and JOIN."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import (
    Constant,
    Filter,
    Generate,
    Join,
    LeftJoin,
    Node,
    Project,
    Scan,
    Side,
    Union,
    conjuncts,
    implied,
    used,
)
from spark_jobs.graph.maintenance.builder import Builder
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.maintenance.scope import Scope, named
from spark_jobs.names import Layer

_LAYERS = frozenset(Layer)


def from_clause(builder: Builder, select: exp.Select, scope: Scope) -> Node:
    """The operators of FROM, JOIN and LATERAL VIEW; fills in the scope.

    Raises:
        NotIncrementalError: a relation or a kind of join has no rule.
    """
    source = select.args.get("from_")
    if source is None:
        return nothing(builder)
    node = _relation(builder, source.this, select, scope)
    for join in select.args.get("joins") or ():
        node = _join(builder, node, join, select, scope)
    for lateral in select.args.get("laterals") or ():
        node = _generate(builder, node, lateral, scope)
    return node


def nothing(builder: Builder) -> Constant:
    """One row without columns."""
    one = builder.names.fresh("one")
    return Constant(exp.select(exp.alias_(exp.Literal.number(1), one)), (one,))


def push(node: Node, condition: exp.Expr) -> Node:
    """Push a filter down, so that changes are filtered early."""
    reads = used(condition)
    match node:
        case Join():
            for index, one in enumerate(node.inputs):
                if reads and reads <= set(one.columns):
                    inputs = list(node.inputs)
                    inputs[index] = push(one, condition)
                    return Join(tuple(inputs), node.conditions)
            narrowed = (_narrowed(one, condition) for one in node.inputs)
            return Join(tuple(narrowed), (*node.conditions, condition))
        case LeftJoin() if reads and reads <= set(node.left.columns):
            return LeftJoin(push(node.left, condition), node.right, node.condition, node.side)
        case Filter(child=child):
            below = push(child, condition)
            if isinstance(below, Filter) and below.child is child:
                return Filter(node, condition)
            return Filter(below, node.condition)
        case _:
            return Filter(node, condition)


def _narrowed(node: Node, condition: exp.Expr) -> Node:
    """An input of a join, without rows that a condition of the join rules out by themselves."""
    own = implied(condition, set(node.columns))
    return node if own is None else push(node, own)


def inner(left: Node, right: Node, conditions: list[exp.Expr]) -> Node:
    """An inner join, flattened with those below it, so that a change can join in any order."""
    inputs: list[Node] = []
    known: list[exp.Expr] = []
    for one in (left, right):
        if isinstance(one, Join):
            inputs += one.inputs
            known += one.conditions
        else:
            inputs.append(one)
    node: Node = Join(tuple(inputs), tuple(known))
    for condition in conditions:
        node = push(node, condition)
    return node


def _relation(builder: Builder, node: exp.Expr, select: exp.Select, scope: Scope) -> Node:
    for name in ("sample", "pivots", "version"):
        if node.args.get(name):
            raise _unsupported(node, f"a relation with {name.upper()}")
    match node:
        case exp.Table(this=exp.Identifier()):
            return _table(builder, node, select, scope)
        case exp.Subquery(this=exp.Query() as query):
            child, outputs = builder.query(query, scope.around)
            _enter(scope, node, outputs)
            return child
        case exp.Values():
            return _values(builder, node, scope)
        case _:
            raise _unsupported(node, f"the relation {type(node).__name__.lower()}")


def _table(builder: Builder, node: exp.Table, select: exp.Select, scope: Scope) -> Node:
    if node.args.get("joins"):
        raise _unsupported(node, "a join in parentheses")
    cte = builder.ctes.get(node.name.lower()) if not node.db else None
    if cte is not None:
        child, outputs = builder.common_table(cte)
        _enter(scope, node, outputs)
        return child
    if node.db.lower() not in _LAYERS:
        raise _unsupported(node, f"the relation {node.sql()}")
    if node.alias_column_names:
        raise _unsupported(node, "a table whose columns are renamed")
    table = f"{node.db}.{node.name}".lower()
    names = _read(builder, node.alias_or_name, select)
    scope.relations[node.alias_or_name.lower()] = names
    key = builder.key_of(table)
    mapped = frozenset(names[one] for one in key) if key and key <= names.keys() else None
    return Scan(table, tuple((new, old) for old, new in names.items()), mapped)


def _read(builder: Builder, alias: str, select: exp.Select) -> Mapping[str, str]:
    """Columns of an alias that the SELECT and its subqueries read, with their names in the tree."""
    found = {
        column.name.lower(): None
        for column in select.find_all(exp.Column)
        if column.table.lower() == alias.lower()
    }
    return {name: builder.names.fresh(name) for name in found}


def _values(builder: Builder, node: exp.Values, scope: Scope) -> Node:
    names = node.alias_column_names
    fresh = {name.lower(): builder.names.fresh(name) for name in names}
    scope.relations[node.alias.lower()] = fresh
    bare = node.copy()
    query = exp.select(
        *(exp.alias_(exp.column(name, table=node.alias), fresh[name.lower()]) for name in names)
    ).from_(bare)
    return Constant(query, tuple(fresh.values()))


def _enter(scope: Scope, node: exp.Expr, outputs: list[tuple[str, str]]) -> None:
    """Register the outputs of a query under an alias, which may rename them."""
    names = node.alias_column_names or [name for name, _ in outputs]
    if len(names) != len(outputs):
        raise _unsupported(node, "a query of another number of columns than are named")
    scope.relations[node.alias_or_name.lower()] = {
        name.lower(): inner_name for name, (_, inner_name) in zip(names, outputs, strict=True)
    }


def _join(builder: Builder, left: Node, join: exp.Join, select: exp.Select, scope: Scope) -> Node:
    side, kind = join.side.upper(), join.kind.upper()
    if join.args.get("using") or join.method.upper() == "NATURAL":
        raise _unsupported(join, "a join that does not write its condition out")
    condition = join.args.get("on")
    if isinstance(join.this, exp.Lateral):
        if side or (condition is not None and not _is_true(condition)):
            raise _unsupported(join, "a lateral join with a side or a condition")
        return _generate(builder, left, join.this, scope)
    right = _relation(builder, join.this, select, scope)
    if condition is not None and condition.find(exp.Query):
        raise NotIncrementalError(
            Obstacle.UNSUPPORTED_SUBQUERY, "a subquery in the condition of a join", condition
        )
    conditions = [scope.rewrite(one) for one in conjuncts(condition)]
    whole = all_of(conditions)
    if kind in {"SEMI", "ANTI"}:
        scope.relations.pop(join.this.alias_or_name.lower())
        return LeftJoin(left, right, whole, Side.SEMI if kind == "SEMI" else Side.ANTI)
    match side:
        case "":
            return inner(left, right, conditions)
        case "LEFT":
            return LeftJoin(left, right, whole, Side.OUTER)
        case "RIGHT":
            return LeftJoin(right, left, whole, Side.OUTER)
        case "FULL":
            return _full_outer(left, right, whole)
        case _:
            raise _unsupported(join, f"a {side} {kind} join")


def _is_true(condition: exp.Expr) -> bool:
    return isinstance(condition, exp.Boolean) and bool(condition.this)


def _full_outer(left: Node, right: Node, condition: exp.Expr) -> Node:
    """A left outer join, and the unmatched rows of the right side."""
    columns = (*left.columns, *right.columns)
    lone = LeftJoin(
        LeftJoin(right, left, condition, Side.ANTI),
        # An outer join with no rows returns NULLs of the right types.
        Filter(left, exp.false()),
        exp.false(),
        Side.OUTER,
    )
    reordered = Project(lone, tuple((name, named(name)) for name in columns))
    return Union((LeftJoin(left, right, condition, Side.OUTER), reordered), alike=True)


def _generate(builder: Builder, child: Node, lateral: exp.Lateral, scope: Scope) -> Node:
    alias = lateral.args["alias"]
    if not isinstance(lateral.this, exp.Func) or not alias.columns:
        raise _unsupported(lateral, "a lateral subquery, or a generator without names")
    call = scope.rewrite(lateral.this)
    outer = bool(lateral.args.get("outer"))
    fresh = {one.name.lower(): builder.names.fresh(one.name) for one in alias.columns}
    scope.relations[alias.name.lower()] = fresh
    return Generate(child, call, outer, tuple(fresh.values()))


def all_of(conditions: list[exp.Expr]) -> exp.Expr:
    """The conjunction; TRUE if there are no conditions."""
    return exp.and_(*conditions) if conditions else exp.true()


def _unsupported(node: exp.Expr, what: str) -> NotIncrementalError:
    return NotIncrementalError(
        Obstacle.UNSUPPORTED_RELATION, f"{what} has no incremental rule", node
    )
