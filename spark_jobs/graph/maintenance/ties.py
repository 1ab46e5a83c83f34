"""Finds orders that may have ties, so that Spark chooses which of the tied rows come first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import Aggregate, Node, TopK, Window
from spark_jobs.graph.maintenance.unique import Uniqueness

# Tied rows get the same value of these functions.
_FAIR = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
_BY_PLACE = (
    exp.RowNumber,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
)


def undecided_order(node: Node, proofs: Uniqueness) -> tuple[exp.Expr, ...] | None:
    """The order of a position-dependent operator that no unique key makes total.

    Returns:
        the order's expressions, possibly empty; None if the operator does not depend on positions,
            or if the order provably has no ties between different rows.
    """
    match node:
        case TopK():
            found = [(node.order, frozenset[str]())]
        case Window():
            within = _columns(node.partition)
            found = [(order, within) for order in _orders(node)]
        case Aggregate():
            within = _columns(value for _, value in node.keys)
            found = [(order, within) for order in _extremes(node)]
        case _:
            return None
    child = node.child
    return next(
        (
            order
            for order, within in found
            if not proofs.distinguishes_rows(child, within | _columns(map(_value, order)))
        ),
        None,
    )


def _orders(node: Window) -> Iterator[tuple[exp.Expr, ...]]:
    for _, function in node.functions:
        order = function.args.get("order")
        if _by_place(function):
            yield tuple(order.expressions) if order is not None else ()


def _extremes(node: Aggregate) -> Iterator[tuple[exp.Expr, ...]]:
    """The orders by which an aggregate takes the value of one row, or puts values together."""
    for _, call in node.aggregates:
        for one in call.find_all(exp.ArgMax, exp.ArgMin):
            if one.this != one.expression:
                yield (one.expression,)
        for one in call.find_all(exp.GroupConcat):
            order = one.this
            # Equal values may come in any order, and DISTINCT allows no other order than theirs.
            if isinstance(order, exp.Order) and order.this not in map(_value, order.expressions):
                yield tuple(order.expressions)


def _by_place(function: exp.Expr) -> bool:
    """Whether a window function may return different values for tied rows."""
    call = function.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    if isinstance(call, _FAIR):
        return False
    frame = function.args.get("spec")
    rows = frame is not None and frame.args.get("kind") == "ROWS"
    whole = frame is not None and frame.args.get("start") == frame.args.get("end") == "UNBOUNDED"
    return (rows and not whole) or isinstance(call, _BY_PLACE)


def _value(term: exp.Expr) -> exp.Expr:
    """What a term of an order sorts by."""
    return term.this if isinstance(term, exp.Ordered) else term


def _columns(expressions: Iterable[exp.Expr]) -> frozenset[str]:
    """Names of the plain columns among expressions; other expressions may map rows to equals."""
    plain = (one.unnest() for one in expressions)
    return frozenset(one.name for one in plain if isinstance(one, exp.Column))
