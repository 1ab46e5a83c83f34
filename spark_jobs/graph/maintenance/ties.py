"""Orders that may leave ties: which of the tied rows come first is then Spark's choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import Node, TopK, Window
from spark_jobs.graph.maintenance.unique import Uniqueness

# Of these, tied rows have the same value, or it does not matter which of them is read.
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
    """The order of an operator that takes rows by their place, where no unique key ends ties.

    Returns:
        what it orders by, which may be nothing; None where the operator takes no row by its
        place, or the order is proved to put rows that differ at places of their own.
    """
    match node:
        case TopK():
            found = [(node.order, frozenset[str]())]
        case Window():
            within = _columns(node.partition)
            found = [(order, within) for order in _orders(node)]
        case _:
            return None
    child = node.child
    return next(
        (
            order
            for order, within in found
            if not proofs.told_apart(child, within | _columns(map(_value, order)))
        ),
        None,
    )


def _orders(node: Window) -> Iterator[tuple[exp.Expr, ...]]:
    for _, function in node.functions:
        order = function.args.get("order")
        if _by_place(function):
            yield tuple(order.expressions) if order is not None else ()


def _by_place(function: exp.Expr) -> bool:
    """Whether a window function gives tied rows different values."""
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
    """What a term of an order compares; one without a direction stands alone."""
    return term.this if isinstance(term, exp.Ordered) else term


def _columns(expressions: Iterable[exp.Expr]) -> frozenset[str]:
    """The names of the columns among expressions; an expression may give rows the same value."""
    return frozenset(one.name for one in expressions if isinstance(one, exp.Column))
