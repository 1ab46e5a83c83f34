"""Completes orders that may have ties, so that each computation chooses the same rows.

SQL leaves it open which of several tied rows ROW_NUMBER, FIRST_VALUE, MAX_BY or LIMIT takes, and
Spark takes the one that it meets first. A change is the difference between two computations. If
they chose differently, a count above would keep a row that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.functions import aggregates
from spark_jobs.graph.inference import spark_type

# Further columns of the order change no frame of these: they see the whole partition.
_PLACES = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)
_OF_A_ROW = (exp.FirstValue, exp.LastValue, exp.NthValue)
_WITHOUT_ORDER = ("map<", "variant", "void", "geometry", "geography")


def with_tie_breakers(canonical: exp.Query) -> exp.Query:
    """A copy of a query whose orders end with all columns that the rows' output depends on.

    The result is one that the query itself may return. These stay as they are: LAST_VALUE,
    NTH_VALUE and IGNORE NULLS in frames by value, since further columns would change the frame, and
    values that have no order, such as maps.

    Args:
        canonical: a query as from ``canonical_query``, qualified and with types.
    """
    found = canonical.copy()
    for scope in list(traverse_scope(found)):
        if isinstance(scope.expression, exp.Select):
            _complete_windows(scope, scope.expression)
    for call in list(found.find_all(exp.ArgMax, exp.ArgMin)):
        _complete_extreme(call)
    for joined in list(found.find_all(exp.GroupConcat)):
        _complete_list(joined)
    for query in list(found.find_all(exp.Query)):
        if query.args.get("limit") or query.args.get("offset"):
            _complete_limit(query)
    return found


def unbroken_ties(query: exp.Query) -> Iterator[exp.Window]:
    """The window functions of a row in a frame by value, which ``with_tie_breakers`` leaves."""
    for window in query.find_all(exp.Window):
        call = window.this
        call = call.this if isinstance(call, exp.IgnoreNulls | exp.RespectNulls) else call
        order = window.args.get("order")
        # Tied rows have the same value of what they are ordered by.
        alike = order is not None and call.this in set(_values(order.expressions))
        if isinstance(call, _OF_A_ROW) and not _by_place(window) and not alike:
            yield window


def _complete_windows(scope: Scope, select: exp.Select) -> None:
    windows = [
        one for one in select.find_all(exp.Window) if one.parent_select is select and _by_place(one)
    ]
    # Chosen before any window changes.
    breakers = _row_columns(scope, select) if windows else []
    for window in windows:
        order = window.args.get("order")
        terms = order.expressions if order is not None else []
        known = {*_values(terms), *(window.args.get("partition_by") or ())}
        more = [_term(one.copy()) for one in breakers if one not in known]
        if more:
            window.set("order", exp.Order(expressions=[*terms, *more]))


def _by_place(window: exp.Window) -> bool:
    """Whether a window function depends on the order of tied rows, and no frame on the columns."""
    call, frame = window.this, window.args.get("spec")
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        call, ignores = call.this, isinstance(call, exp.IgnoreNulls)
    else:
        ignores = False
    if isinstance(call, _PLACES):
        return True
    if frame is None:
        return isinstance(call, exp.FirstValue) and not ignores
    whole = frame.args.get("start") == frame.args.get("end") == "UNBOUNDED"
    valued = isinstance(call, exp.FirstValue | exp.LastValue | exp.NthValue)
    return valued if whole else frame.args.get("kind") == "ROWS"


def _row_columns(scope: Scope, select: exp.Select) -> list[exp.Expr]:
    """What tells apart the rows that the windows of a SELECT see, as far as its output goes."""
    group = select.args.get("group")
    if group is not None:
        # The keys tell groups apart.
        return _distinct(_keys(group))
    if any(aggregates(one) for one in select.selects):
        return []
    columns = [
        one
        for one in scope.columns
        if one.table in scope.selected_sources
        and not _below(one, select, "joins", "laterals", "where")
    ]
    return _distinct(columns)


def _keys(group: exp.Group) -> Iterator[exp.Expr]:
    for one in group.expressions:
        if isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets):
            yield from one.find_all(exp.Column)
        elif not isinstance(one, exp.Literal):
            yield one


def _below(node: exp.Expr, select: exp.Select, *clauses: str) -> bool:
    """Whether a node belongs to one of these clauses of a SELECT."""
    parts = [select.args.get(name) for name in clauses]
    roots = {id(one) for part in parts for one in (part if isinstance(part, list) else [part])}
    above: exp.Expr | None = node
    while above is not None and above is not select:
        if id(above) in roots:
            return True
        above = above.parent
    return False


def _complete_extreme(call: exp.Expr) -> None:
    """MAX_BY(x, y) by y, and then by x."""
    value, by = call.this, call.expression
    if value == by or call.args.get("count") or not all(map(_has_order, (value, by))):
        return
    fields = {"place": by, "value": value}
    both = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=one.copy())
            for name, one in fields.items()
        ]
    )
    # A row whose y is NULL does not count.
    missing = exp.Is(this=by.copy(), expression=exp.null())
    call.set("expression", exp.func("IF", missing, exp.null(), both))


def _complete_list(call: exp.GroupConcat) -> None:
    """LISTAGG(x) WITHIN GROUP (ORDER BY y) by y, and then by x."""
    order = call.this
    if not isinstance(order, exp.Order) or isinstance(order.this, exp.Distinct):
        return
    if order.this not in set(_values(order.expressions)) and _has_order(order.this):
        order.append("expressions", _term(order.this.copy()))


def _complete_limit(query: exp.Query) -> None:
    names = [one.alias_or_name for one in query.selects]
    order = query.args.get("order")
    terms = order.expressions if order is not None else []
    known = {one.name for one in _values(terms) if isinstance(one, exp.Column)}
    known |= {
        query.selects[int(one.name) - 1].alias_or_name for one in _values(terms) if one.is_int
    }
    more = [
        _term(exp.column(name))
        for name, one in zip(names, query.selects, strict=True)
        if name not in known and names.count(name) == 1 and _has_order(one.unalias())
    ]
    if more:
        query.set("order", exp.Order(expressions=[*terms, *more]))


def _values(terms: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    return (one.this if isinstance(one, exp.Ordered) else one for one in terms)


def _distinct(expressions: Iterable[exp.Expr]) -> list[exp.Expr]:
    return list(dict.fromkeys(one for one in expressions if _has_order(one)))


def _has_order(value: exp.Expr) -> bool:
    """Whether Spark sorts values of its type; an unknown type may have no order."""
    kind = spark_type(value, dialect())
    return bool(kind) and not any(one in kind for one in _WITHOUT_ORDER)


def _term(value: exp.Expr) -> exp.Ordered:
    return exp.Ordered(this=value, nulls_first=True)
