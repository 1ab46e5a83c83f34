"""Decides at compile time whether and how a view can be maintained."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.functions import called_name
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Filter,
    Generate,
    Join,
    LeftJoin,
    Node,
    Scan,
    Side,
    TopK,
    Union,
    Window,
    children,
    scans,
)
from spark_jobs.graph.maintenance.builder import Outputs
from spark_jobs.graph.maintenance.delta import group_keys
from spark_jobs.graph.maintenance.group_types import check_groups
from spark_jobs.graph.maintenance.incomparable import MAP, VARIANT, incomparable, netted_operators
from spark_jobs.graph.maintenance.program import check_clock
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.maintenance.scope import named
from spark_jobs.graph.maintenance.states import EAGER, Cutter, is_state
from spark_jobs.graph.maintenance.ties import undecided_order
from spark_jobs.graph.maintenance.unique import Uniqueness
from spark_jobs.graph.maintenance.zeros import check_zeros
from spark_jobs.graph.manifest import Maintenance, MaintenanceStrategy, OperatorRule

# What follows from ties, without and with tie breakers.
_UNDECIDED = "so two correct results may differ"
_DECIDED = "and the other columns decide between them"
# Names of the distinct values of an aggregate, which are stored.
_DISTINCT = re.compile(r"d\d+_\d+_\d+")
_ADDED = re.compile(rf"(?<=\w)(__\d+)+\b|\b{EAGER}\d+_")


def maintenance_of(
    query: str,
    *,
    types: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, frozenset[str]] | None = None,
) -> tuple[Maintenance, NotIncrementalError | None]:
    """How a view is maintained, and the error if it cannot be maintained incrementally.

    Args:
        query: qualified Spark SQL, as in ``GoldEntry.query``.
        types: column types, by table and lower-case column name.
        keys: columns that identify a table's rows, by table, if known.
    """
    cutter, unique = Cutter(types), Uniqueness(types)
    try:
        whole, outputs = build(query, keys=keys)
        check_clock(whole)
        _check_types(whole, types)
        check_zeros(whole, types)
        check_groups(whole, types)
        key = _key(unique.columns(whole), outputs)
        _check_computed(whole, types, keyed=bool(key))
        root = cutter.cut(whole)
        _check_groups(root)
    except NotIncrementalError as error:
        return refused(error), error
    return (
        Maintenance(
            rule=MaintenanceStrategy.AGGREGATE_STATE if cutter.states else _rule(root),
            key=key,
            operators=tuple(_operators(root, cutter, unique)),
        ),
        None,
    )


def refused(error: NotIncrementalError) -> Maintenance:
    """The maintenance of a view that has no incremental rule."""
    return Maintenance(
        rule=MaintenanceStrategy.FULL,
        obstacle=error.obstacle.value,
        detail=error.text,
        suggestion=error.suggestion,
    )


def _check_types(node: Node, types: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse columns whose values cannot be compared.

    Raises:
        NotIncrementalError: a column that is read is a map or a variant.
    """
    if isinstance(node, Scan):
        for _, name in node.names:
            kind = types.get(node.table, {}).get(name, "")
            if "map<" in kind or "variant" in kind:
                text = f"{node.table}.{name} is of type {kind}, whose values have no equality"
                raise NotIncrementalError(Obstacle.INCOMPARABLE_TYPE, text)
    for child in children(node):
        _check_types(child, types)


def _check_computed(root: Node, types: Mapping[str, Mapping[str, str]], *, keyed: bool) -> None:
    """Refuse columns that are computed as maps or variants where rows are compared by them.

    Spark groups by maps, so that those of a view with a key are only written.

    Raises:
        NotIncrementalError: there is such a column.
    """
    found = incomparable(netted_operators(root), types, VARIANT)
    if found is None and not keyed:
        found = incomparable([root], types, MAP)
    if found is not None:
        text = f"{_text(named(found[0]))} is a map or a variant, whose values have no equality"
        raise NotIncrementalError(Obstacle.INCOMPARABLE_TYPE, text, found[1])


def _key(found: frozenset[str] | None, outputs: Outputs) -> tuple[str, ...]:
    names = {at: name for name, at in outputs}
    if not found or not found <= names.keys():
        return ()
    return tuple(name for name, at in outputs if at in found)


def _check_groups(node: Node) -> None:
    """Refuse operators in which each row depends on all others.

    Raises:
        NotIncrementalError: the operator has no groups to which a change could be confined.
    """
    whole = {
        Aggregate: "an aggregate without GROUP BY",
        Window: "a window without PARTITION BY",
        TopK: "ORDER BY with LIMIT over the whole result",
    }
    for kind, what in whole.items():
        grouped = isinstance(node, Aggregate | Window) and group_keys(node)
        kept = all(map(is_state, scans(node)))
        if isinstance(node, kind) and not grouped and not kept:
            raise NotIncrementalError(
                Obstacle.DEPENDS_ON_EVERY_ROW, f"{what} reads every row for each change"
            )
    for child in children(node):
        _check_groups(child)


def _rule(root: Node) -> MaintenanceStrategy:
    found = [root]
    while found:
        node = found.pop()
        if isinstance(node, Aggregate | Window | TopK | LeftJoin):
            return MaintenanceStrategy.AFFECTED_GROUP_RECOMPUTE
        found += children(node)
    return MaintenanceStrategy.ROW_DELTAS


def _operators(node: Node, cutter: Cutter, unique: Uniqueness) -> list[OperatorRule]:
    """The operators from the root down, each with its rule."""
    kept = {state.table: state for state in cutter.states}
    if isinstance(node, Scan) and node.table in kept:
        state = kept[node.table]
        words = _aggregate_words(state.node, cutter)
        own = OperatorRule(operator=words, rule="aggregate state, to which changes are added")
        return [own, *_operators(state.node.child, cutter, unique)]
    found = _operator(node, cutter)
    if found is not None:
        # Uniqueness of state rows has to be proved on the operator that the state replaces.
        found = found.model_copy(update={"note": _ties(cutter.uncut(node), unique)})
    below = [one for child in children(node) for one in _operators(child, cutter, unique)]
    return [*([found] if found else []), *below]


def _aggregate_words(node: Aggregate, cutter: Cutter) -> str:
    stored = [key for state in cutter.states for key in state.node.row_keys]
    values = {name: value for name, value in stored if _DISTINCT.fullmatch(name)}

    def written(part: exp.Expr) -> exp.Expr:
        known = values.get(part.name) if isinstance(part, exp.Column) else None
        return part if known is None else known.copy()

    calls = ", ".join(_text(value.copy().transform(written)) for _, value in node.aggregates)
    return f"aggregate {calls or 'distinct rows'} {_by(value for _, value in node.row_keys)}"


def _by(keys: Iterable[exp.Expr]) -> str:
    return f"by {texts}" if (texts := ", ".join(map(_text, keys))) else "over all rows"


def _operator(  # noqa: PLR0911 - one case for each operator
    node: Node, cutter: Cutter
) -> OperatorRule | None:
    match node:
        case Filter():
            return OperatorRule(operator=f"filter {_text(node.condition)}", rule="row deltas")
        case Join():
            return OperatorRule(
                operator=f"join of {len(node.inputs)}",
                rule="row deltas of each input, joined with the other inputs",
            )
        case LeftJoin():
            words = {Side.OUTER: "outer join", Side.SEMI: "semi join", Side.ANTI: "anti join"}
            return OperatorRule(
                operator=f"{words[node.side]} on {_text(node.condition)}",
                rule="row deltas of the left side, and rows that changes of the right side touch",
            )
        case Aggregate():
            return OperatorRule(
                operator=_aggregate_words(node, cutter), rule="affected-group recompute"
            )
        case TopK():
            order = f" by {', '.join(map(_text, node.order))}" if node.order else ""
            return OperatorRule(operator=f"first rows{order}", rule="recompute of all rows below")
        case Window():
            calls = ", ".join(window_name(one) for _, one in node.functions)
            return OperatorRule(
                operator=f"window {calls} {_by(node.partition)}",
                rule="affected-partition recompute",
            )
        case Generate():
            return OperatorRule(operator="generate", rule="row deltas")
        case Union():
            return OperatorRule(operator="union all", rule="row deltas of each input")
        case Scan():
            return OperatorRule(operator=f"scan {node.table}", rule="change feed")
        case _:
            return None


def window_name(window: exp.Expr) -> str:
    """The name of the function that is called over a window."""
    call = window.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    return called_name(call)


def with_broken_ties(found: Maintenance, written: Maintenance) -> Maintenance:
    """The maintenance of a query with tie breakers, with notes on the orders as they are written.

    Args:
        found: of the query with them.
        written: of the query without them.
    """
    notes = [one.note for one in written.operators]
    if len(notes) != len(found.operators):
        return found
    operators = tuple(
        one
        if one.note or not note
        else one.model_copy(update={"note": note.replace(_UNDECIDED, _DECIDED)})
        for one, note in zip(found.operators, notes, strict=True)
    )
    return found.model_copy(update={"operators": operators})


def _ties(node: Node, unique: Uniqueness) -> str | None:
    order = undecided_order(node, unique)
    if order is None:
        return None
    if not order:
        return (
            f"it selects rows by position without ORDER BY, {_UNDECIDED}; "
            "add an ORDER BY with a unique key"
        )
    terms = ", ".join(map(_text, order))
    if isinstance(node, Aggregate):
        return f"{terms} may be the same for several rows, {_UNDECIDED}; add a unique key to it"
    return f"ORDER BY {terms} may leave ties, {_UNDECIDED}; add columns of a unique key at its end"


def _text(expression: exp.Expr) -> str:
    """The expression with the author's names; the tree may have numbered them."""
    return _ADDED.sub("", to_sql(expression))
