"""Correlated subqueries with groups, windows or LIMIT, as plain ones over the groups of all rows.

``(SELECT t.x FROM t WHERE t.k = o.k ORDER BY t.at LIMIT 1)`` is the row for ``o.k`` among the first
rows of all keys, which ``QUALIFY ROW_NUMBER() OVER (PARTITION BY t.k ORDER BY t.at) <= 1`` finds.
The idea is Kim's, "On Optimizing an SQL-like Nested Query", 1982.
"""

from __future__ import annotations

from collections.abc import Set

from sqlglot import exp

from spark_jobs.graph.dialect import parse
from spark_jobs.graph.functions import aggregates, generates
from spark_jobs.graph.maintenance.algebra import conjuncts

# Ends the names of columns that are compared with the row around; no other name is made so.
KEY = "__0"
_RELATIONS = (exp.Table, exp.Subquery, exp.Values, exp.Lateral)
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_LIMITS = ("limit", "offset")
# The subquery's side of an equality, None if the condition has none, and what the rest is.
_Sides = list[tuple[exp.Expr | None, exp.Expr]]


def over_groups(tree: exp.Expr) -> None:
    """Rewrite the correlated subqueries of a query in place.

    Args:
        tree: qualified; each alias is that of one relation.
    """
    # The inner ones first: parts of those around are copied.
    for at, select in enumerate([*tree.find_all(exp.Select)][::-1]):
        if not sees_groups(select):
            continue
        if _is_one_row(select):
            _as_value(select)
        else:
            _apart(select, f"by_{at}")


def sees_groups(select: exp.Select) -> bool:
    """Whether a subquery computes with all rows for a row around, and is rewritten for that."""
    _, sides = _correlation(select)
    if not sides or any(map(generates, select.selects)):
        return False
    if _is_one_row(select):
        return bool(select.args.get("having")) or not _is_scalar(select)
    clauses = ("group", "qualify", *_LIMITS, *(["distinct"] if _is_scalar(select) else []))
    found = _has_windows(select) or any(select.args.get(one) for one in clauses)
    return found and _is_followed(select)


def _correlation(select: exp.Select) -> tuple[list[exp.Expr], _Sides]:
    """The conditions on a subquery's own rows, and those on the row around.

    There are none of the latter if one is neither an equality nor about the row around alone.
    """
    own = {one.alias_or_name.lower() for one in select.find_all(*_RELATIONS)}
    where = select.args.get("where")
    alone: list[exp.Expr] = []
    sides: _Sides = []
    for one in conjuncts(where.this if where is not None else None):
        if _tables(one) <= own:
            alone.append(one)
        elif not one.find(exp.Query) and (found := _sides(one, own)):
            sides.append(found)
        else:
            return [], []
    return alone, sides


def _tables(expression: exp.Expr) -> set[str]:
    return {one.table.lower() for one in expression.find_all(exp.Column) if one.table}


def _sides(condition: exp.Expr, own: Set[str]) -> tuple[exp.Expr | None, exp.Expr] | None:
    if not _tables(condition) & own:
        return None, condition
    if isinstance(condition, exp.EQ):
        both = (condition.this, condition.expression)
        for inside, outside in (both, both[::-1]):
            if _tables(inside) and _tables(inside) <= own and not _tables(outside) & own:
                return inside, outside
    return None


def _is_scalar(select: exp.Select) -> bool:
    above = select.parent
    return isinstance(above, exp.Subquery) and not isinstance(above.parent, exp.In)


def _is_one_row(select: exp.Select) -> bool:
    """Whether a subquery is an aggregate of all of its rows."""
    others = ("group", "qualify", "distinct", *_LIMITS)
    found = select.args.get("having") or any(map(aggregates, select.selects))
    return bool(found) and not any(select.args.get(one) for one in others)


def _has_windows(select: exp.Select) -> bool:
    return any(one.find(exp.Window) for one in select.selects)


def _is_followed(select: exp.Select) -> bool:
    """Whether the clauses mean the same for each group of a larger query."""
    group = select.args.get("group")
    if group is not None and (group.args.get("all") or group.find(*_SETS)):
        return False
    limits = [found for one in _LIMITS if (found := select.args.get(one))]
    # These come before LIMIT and after, or beside, the number of a row.
    between = select.args.get("distinct") or select.args.get("qualify") or _has_windows(select)
    return not limits or (not between and all(one.expression.is_int for one in limits))


def _apart(select: exp.Select, alias: str) -> None:
    """Put a subquery into FROM of a plain one that is compared with the row around."""
    alone, sides = _correlation(select)
    keys = [inside for inside, _ in sides if inside is not None]
    select.set("where", exp.Where(this=exp.and_(*alone)) if alone else None)
    for window in select.find_all(exp.Window):
        if window.parent_select is select:
            _append(window, "partition_by", keys)
    if group := select.args.get("group"):
        _append(group, "expressions", keys)
    _number(select, keys)
    names = [f"c{at}" for at, _ in enumerate(select.selects)]
    plain = exp.Select(expressions=[exp.column(name, alias) for name in names])
    for at, (inside, condition) in enumerate(sides):
        if inside is None:
            plain.where(condition, copy=False)
            continue
        names.append(f"key{at}")
        key = exp.column(names[-1], alias)
        plain.where(exp.EQ(this=key, expression=_closed(condition)), copy=False)
        name = inside.name if isinstance(inside, exp.Column) else "key"
        select.append("expressions", exp.alias_(inside.copy(), name + KEY))
    select.replace(plain)
    columns = exp.TableAlias(
        this=exp.to_identifier(alias), columns=[exp.to_identifier(name) for name in names]
    )
    plain.from_(exp.Subquery(this=select, alias=columns), copy=False)


def _closed(value: exp.Expr) -> exp.Expr:
    """A side of an equality; equal columns restrict what is read."""
    return value if isinstance(value, exp.Column) else exp.paren(value)


def _append(node: exp.Expr, part: str, keys: list[exp.Expr]) -> None:
    for key in keys:
        node.append(part, key.copy())


def _number(select: exp.Select, keys: list[exp.Expr]) -> None:
    """Replace LIMIT and OFFSET by a condition on the place of a row among those of its keys."""
    limit, offset = (select.args.get(one) for one in _LIMITS)
    order = select.args.get("order")
    for clause in (*_LIMITS, "order"):
        select.set(clause, None)
    if not (limit or offset):
        return
    for term in order.expressions if order is not None else ():
        # In Spark integers are positions.
        if term.this.is_int:
            term.set("this", select.selects[int(term.this.name) - 1].unalias().copy())
    place = parse("ROW_NUMBER() OVER (PARTITION BY 1)")
    place.set("partition_by", [key.copy() for key in keys])
    place.set("order", order)
    skipped = int(offset.expression.name) if offset else 0
    found: list[exp.Expr] = []
    if offset:
        found.append(exp.GT(this=place.copy(), expression=exp.Literal.number(skipped)))
    if limit:
        last = exp.Literal.number(skipped + int(limit.expression.name))
        found.append(exp.LTE(this=place, expression=last))
    select.set("qualify", exp.Qualify(this=exp.and_(*found)))


def _as_value(select: exp.Select) -> None:
    """Write what is asked of the only row of an aggregate as a value that it computes."""
    above, having = select.parent, select.args.get("having")
    test = above.parent if isinstance(above, exp.Subquery) else above
    if having is not None and not aggregates(having.this):
        return
    if isinstance(above, exp.Exists):
        if having is None:
            above.replace(exp.true())
            return
        _give(select, having.this)
        found = exp.Coalesce(this=exp.Subquery(this=select), expressions=[exp.false()])
        above.replace(exp.Paren(this=found))
    elif isinstance(test, exp.In):
        if having is None and _is_in_where(test) and len(select.selects) == 1:
            value = exp.Subquery(this=select)
            test.replace(exp.Paren(this=exp.EQ(this=_closed(test.this), expression=value)))
    elif having is not None:
        # A row that HAVING drops is no row, and no row is NULL.
        _give(select, exp.func("IF", having.this, select.selects[0].unalias(), exp.null()))


def _give(select: exp.Select, value: exp.Expr) -> None:
    """Let an aggregate without GROUP BY return another value of its row, whatever it is."""
    select.set("having", None)
    select.set("expressions", [exp.alias_(value, "value")])


def _is_in_where(test: exp.Expr) -> bool:
    """Whether WHERE keeps a row only if a test is true, or only if it is false."""
    node = test
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    if isinstance(node.parent, exp.Not):
        node = node.parent
    while isinstance(node.parent, exp.Paren | exp.And):
        node = node.parent
    return isinstance(node.parent, exp.Where)
