"""GROUP BY, its aggregates, and grouping sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from spark_jobs.graph.functions import WRAPPERS, called_name, is_aggregate
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Identity,
    Named,
    Node,
    Project,
    Union,
    identity,
)
from spark_jobs.graph.maintenance.builder import Builder
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.maintenance.scope import Names, named

# Aggregates whose result depends on the order of rows, unless it is sorted.
_BY_ARRIVAL = frozenset([
    "collect_list", "collect_set", "array_agg", "first", "first_value", "last", "last_value",
    "any_value", "mode",
])  # fmt: skip
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
# What these say of an array does not depend on its order.
_SORTERS = frozenset([
    "array_sort", "sort_array", "size", "array_size", "cardinality", "array_contains",
    "array_max", "array_min",
])  # fmt: skip


@dataclass
class Keys:
    """The keys of a GROUP BY.

    Attributes:
        named: key expressions with their names in the tree.
        windows: expressions computed below the grouping, because a row may be in several windows.
        sessions: names of the session windows.
        structs: names of window keys, by the name of their struct in Spark.
    """

    named: dict[Identity, Named] = field(default_factory=dict)
    windows: list[Named] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    structs: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, builder: Builder, expressions: Sequence[exp.Expr]) -> Keys:
        """Name the keys; expressions use the tree's names."""
        keys = cls()
        for one in expressions:
            if identity(one) in keys.named:
                continue
            call = called_name(one)
            name = builder.names.fresh(one.name if isinstance(one, exp.Column) else call or "key")
            value = one
            if call == "window":
                under = builder.names.fresh("window_of")
                keys.windows.append((under, one.copy()))
                value = named(under)
            if call == "session_window":
                keys.sessions.add(name)
            if call in {"window", "session_window"}:
                keys.structs[call] = name
            keys.named[identity(one)] = (name, value)
        return keys

    def column(self, part: exp.Expr) -> exp.Expr | None:
        """The key column for an expression; aggregates are kept, because they read the rows."""
        if is_call(part):
            return part
        found = self.named.get(identity(part))
        if found is not None:
            return named(found[0])
        if isinstance(part, exp.Column):
            struct = self.structs.get(part.table.lower())
            if struct is not None:
                return exp.Dot(this=named(struct), expression=part.this.copy())
            struct = self.structs.get(part.name.lower())
            return named(struct) if struct is not None else None
        return None


def aggregate_calls(expression: exp.Expr, calls: dict[Identity, Named], names: Names) -> exp.Expr:
    """Replace each aggregate in an expression by a column, and collect the aggregates.

    Args:
        expression: in the tree's names; modified in place.
        calls: the aggregates collected so far; extended.
        names: generates names for the aggregates.

    Raises:
        NotIncrementalError: an aggregate depends on the order of rows.
    """

    def replace(node: exp.Expr) -> exp.Expr | None:
        if not is_call(node):
            return None
        _check_order(node)
        found = identity(node)
        if found not in calls:
            inside = _unwrapped(node)
            calls[found] = (
                names.fresh(called_name(inside) or inside.sql_name().lower()),
                node.copy(),
            )
        return named(calls[found][0])

    return outside_in(expression, replace)


def outside_in(expression: exp.Expr, replace: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """Replace nodes top-down; replaced nodes are not descended into."""
    found = replace(expression)
    if found is not None:
        return found
    if isinstance(expression, exp.Window):
        # A window function is not an aggregate of its SELECT, but its arguments may contain one.
        call: exp.Expr = expression.this
        while isinstance(call, WRAPPERS):
            call = call.this
        parts = [call]
        order = expression.args.get("order")
        parts += [order] if order else []
        children = [child for part in parts for child in part.iter_expressions()]
        children += expression.args["partition_by"]
    else:
        children = list(expression.iter_expressions())
    for child in children:
        child.replace(outside_in(child, replace))
    return expression


def grouping_sets(
    group: exp.Group | None,
) -> tuple[list[exp.Expr], list[list[exp.Expr]]] | None:
    """The keys in the order of GROUPING_ID(), and the grouping sets; None for a plain GROUP BY.

    Raises:
        NotIncrementalError: several GROUPING SETS, ROLLUP or CUBE are combined or nested.
    """
    if group is None:
        return None
    special = [
        one
        for one in (
            *group.expressions,
            *(group.args.get("rollup") or ()),
            *(group.args.get("cube") or ()),
            *(group.args.get("grouping_sets") or ()),
        )
        if isinstance(one, _SETS)
    ]
    if not special:
        return None
    nested = any(one is not special[0] for one in special[0].find_all(*_SETS))
    if len(special) > 1 or nested:
        text = "several ROLLUP, CUBE or GROUPING SETS in one GROUP BY have no incremental rule"
        raise NotIncrementalError(Obstacle.UNSUPPORTED_CLAUSE, text, group)
    plain = [one for one in group.expressions if one is not special[0]]
    if not plain and not any(_sets(special[0])):
        # Spark returns a row for no rows, as without GROUP BY.
        text = "GROUPING SETS without a key have no incremental rule"
        raise NotIncrementalError(Obstacle.UNSUPPORTED_CLAUSE, text, group)
    if len(plain) < len(group.expressions):
        sets = _sets(special[0])
        keys = [
            key
            for one in group.expressions
            for key in ([part for of in sets for part in of] if one is special[0] else [one])
        ]
        return keys, [[*plain, *one] for one in sets]
    if isinstance(special[0], exp.GroupingSets):
        # Without a comma before them Spark uses the sets as they are: other keys are NULL.
        sets = _sets(special[0])
        return [*(part for of in sets for part in of), *plain], sets
    # WITH ROLLUP or WITH CUBE, of the keys before it.
    return plain, _sets(type(special[0])(expressions=[one.copy() for one in plain]))


def _sets(node: exp.Expr) -> list[list[exp.Expr]]:
    parts = [_members(one) for one in node.expressions]
    if isinstance(node, exp.GroupingSets):
        return parts
    if isinstance(node, exp.Rollup):
        return [[one for part in parts[:n] for one in part] for n in range(len(parts), -1, -1)]
    return [
        [one for at, part in enumerate(parts) if mask >> at & 1 for one in part]
        for mask in range(2 ** len(parts))
    ]


def _members(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def grouped_by_sets(
    child: Node,
    keys: tuple[Named, ...],
    sets: list[list[str]],
    calls: tuple[Named, ...],
    names: Names,
) -> Node:
    """The union of one grouping per set; the columns are the keys, then the aggregates.

    Args:
        child: the input rows.
        keys: all keys, with their names in the tree.
        sets: names of the keys in each set.
        calls: the aggregates, with their names in the tree.
        names: generates names for the columns of each set.
    """
    branches = []
    for members in sets:
        one = names.fresh("grand")
        # Group by a constant: in grouping sets the grand total of no rows is no row, unlike in a
        # SELECT without GROUP BY.
        base = Project(
            child, (*((c, named(c)) for c in child.columns), (one, exp.Literal.number(1)))
        )
        nulls = {key: names.fresh(key) for key, _ in keys if key not in members}
        here = {key: names.fresh(key) for key, _ in keys if key in members}
        made = {call: names.fresh(call) for call, _ in calls}
        grouped = Aggregate(
            base,
            (*((here[k], e.copy()) for k, e in keys if k in members), (one, named(one))),
            (
                # A NULL of the key's type.
                *(
                    (nulls[k], exp.func("MAX", exp.func("IF", exp.false(), e.copy(), exp.null())))
                    for k, e in keys
                    if k in nulls
                ),
                *((made[c], _grouping(e.copy(), keys, members)) for c, e in calls),
            ),
        )
        outputs = [
            *((k, named(here.get(k) or nulls[k])) for k, _ in keys),
            *((c, named(made[c])) for c, _ in calls),
        ]
        branches.append(Project(grouped, tuple(outputs)))
    return Union(tuple(branches), alike=True)


def _grouping(call: exp.Expr, keys: tuple[Named, ...], members: list[str]) -> exp.Expr:
    """``grouping`` and ``grouping_id`` mark the keys that are not in the set."""
    name = called_name(call)
    if name not in {"grouping", "grouping_id"}:
        return call
    absent = {identity(expression): key not in members for key, expression in keys}
    over = [identity(one.unnest()) for one in call.iter_expressions()] or list(absent)
    if not absent.keys() >= set(over):
        text = f"{name} of something else than a key has no incremental rule"
        raise NotIncrementalError(Obstacle.UNSUPPORTED_CLAUSE, text, call)
    bits = "".join(str(int(absent[one])) for one in over)
    return exp.func("MAX", exp.Literal.number(int(bits, 2)))


def is_call(node: exp.Expr) -> bool:
    """Whether an expression is an aggregate call, including FILTER or WITHIN GROUP."""
    inside = _unwrapped(node)
    return isinstance(inside, exp.Func) and is_aggregate(inside)


def _unwrapped(node: exp.Expr) -> exp.Func:
    """The call inside of FILTER, IGNORE NULLS or WITHIN GROUP."""
    while isinstance(node, WRAPPERS):
        node = node.this
    return node  # type: ignore[return-value]


def _check_order(node: exp.Expr) -> None:
    call, around = _unwrapped(node), node.parent
    name = called_name(around) if isinstance(around, exp.Func) else ""
    listed = isinstance(call, exp.GroupConcat)
    # sqlglot names it as MySQL does.
    called = "listagg" if listed else called_name(call)
    if (listed and node.find(exp.Order) is None) or (
        called in _BY_ARRIVAL and name not in _SORTERS
    ):
        text = f"{called} takes rows in the order in which they are met"
        raise NotIncrementalError(Obstacle.ORDER_DEPENDENT, text, call)
