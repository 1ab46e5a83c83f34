"""The change of stored extremes: the MIN and MAX of aggregates without GROUP BY.

An inserted value beyond the stored extreme replaces it. If the stored extreme may have been deleted
and no inserted value is beyond it, all rows are read: Mumick, Quass and Mumick, "Maintenance of
Data Cubes and Summary Tables in a Warehouse", 1997.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from spark_jobs.graph.maintenance.clauses import aliased, selected
from spark_jobs.graph.maintenance.relation import When, Writer
from spark_jobs.graph.maintenance.scope import named
from spark_jobs.graph.maintenance.states import State
from spark_jobs.graph.maintenance.terms import Stored

# Names a relation as a step, and returns the name.
NewStep = Callable[[str, exp.Query], str]
# Suffix of the columns that say whether an extreme must be computed again.
_GONE = "_gone"


def with_extremes(writer: Writer, step: NewStep, state: State, change: str) -> str:
    """The only row of a state after a change.

    Args:
        writer: writes the operators' relations.
        step: adds a step.
        state: the state with extremes.
        change: name of the row of a net change, as from ``State.change``.

    Returns:
        the name of a relation with the columns of the state.
    """
    compared = step("compared", _compared(writer, state, change))
    extremes = state.extreme_columns
    gone = step(
        "deleted_extremes",
        exp.select(*selected(()))
        .from_(exp.to_table(compared))
        .where(exp.or_(*(named(f"{name}{_GONE}") for name in extremes))),
    )
    # ``gone`` has one row or none; without it, an engine does not read the rows.
    child = state.node.child
    rows = (
        exp.select(*(exp.column(name, table="t") for name in child.columns))
        .from_(aliased(writer.relation(child, When.NEW), "t"))
        .join(exp.to_table(gone).as_("k"), join_type="cross")
    )
    columns = [
        exp.alias_(
            exp.func("IF", _of("c", f"{name}{_GONE}"), _of("f", name), _of("c", name))
            if name in extremes
            else _of("c", name),
            name,
        )
        for name in state.columns
    ]
    chosen = exp.select(*columns).from_(exp.to_table(compared).as_("c"))
    return step("extremes", chosen.join(aliased(state.extremes(rows), "f"), join_type="cross"))


def _compared(writer: Writer, state: State, change: str) -> exp.Select:
    """The row with extremes as far as the stored ones and the change show them."""
    old = writer.tables.content(state.table, When.OLD)
    columns: list[exp.Expr] = []
    for term in state.terms:
        some = exp.NEQ(this=_of("s", term.present), expression=exp.Literal.number(0))
        for kind in term.extremes:
            name = term.column(kind)
            before, came, went = _of("o", name), _of("c", f"{name}_in"), _of("c", f"{name}_out")
            beyond = _beyond(kind, came, before)
            value = exp.func("IF", exp.or_(_is_null(before), beyond), came, before)
            columns.append(exp.alias_(exp.func("IF", some.copy(), value, exp.null()), name))
            # NULL if nothing was deleted, or nothing was stored.
            lost = exp.and_(some.copy(), _beyond(kind, went, before), exp.not_(_true(beyond)))
            columns.append(exp.alias_(_true(lost), f"{name}{_GONE}"))
    sums = state.merged(old, exp.to_table(change))
    others = [one for one in state.columns if one not in state.extreme_columns]
    rest = [exp.alias_(_of("s", one), one) for one in others]
    return (
        exp.select(*rest, *columns)
        .from_(aliased(sums, "s"))
        .join(old.copy().as_("o"), join_type="cross")
        .join(exp.to_table(change).as_("c"), join_type="cross")
    )


def _of(table: str, name: str) -> exp.Expr:
    return exp.column(name, table=table)


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.null())


def _beyond(kind: Stored, value: exp.Expr, extreme: exp.Expr) -> exp.Expr:
    """Whether a value is the extreme, or would be a new one; NULL if one of them is NULL."""
    compare = exp.GTE if kind is Stored.MAX else exp.LTE
    return compare(this=value.copy(), expression=extreme.copy())


def _true(condition: exp.Expr) -> exp.Expr:
    """A condition with FALSE in place of NULL."""
    return exp.Coalesce(this=condition.copy(), expressions=[exp.false()])
