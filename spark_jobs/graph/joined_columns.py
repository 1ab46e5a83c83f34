"""Corrects what sqlglot makes of the columns of USING and NATURAL JOIN.

The column of ``a LEFT JOIN b USING (k)`` is that of a, with its type, that of a right join is that
of b, and only that of a full join is the first of both that is not NULL. sqlglot takes the last for
all joins, and joins a further table to the column of the first table alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

# Key of a join's metadata.
_NAMED = "joined_by_name"


def note_joins_by_name(tree: exp.Query) -> exp.Query:
    """The same tree with its joins by USING and NATURAL marked, which qualifying gives an ON."""
    for join in tree.find_all(exp.Join):
        if join.args.get("using") or join.method == "NATURAL":
            join.meta[_NAMED] = True
    return tree


def joins_by_name(select: exp.Select) -> bool:
    """Whether a SELECT that is not qualified has a join by the names of columns of its own."""
    return any(one.args.get("using") or one.method for one in select.args.get("joins") or ())


def correct_joined_columns(tree: exp.Query) -> None:
    """Replace the columns of joins by name, in a query that ``qualify`` changed."""
    for select in tree.find_all(exp.Select):
        if any(join.meta.get(_NAMED) for join in _joins(select)):
            _correct(select)


def hides(select: exp.Select, column: exp.Column) -> bool:
    """Whether a join by name hides a column of one of its sides.

    Args:
        select: a query that ``correct_joined_columns`` changed.
        column: of a relation of the query.
    """
    for join in _joins(select):
        on = join.args.get("on")
        if on is None or not join.meta.get(_NAMED) or join.kind in {"SEMI", "ANTI"}:
            continue
        for pair in on.find_all(exp.EQ):
            left = {one.table for one in pair.this.find_all(exp.Column)}
            hidden = left if join.side in {"RIGHT", "FULL"} else set()
            hidden = hidden | ({pair.expression.table} if join.side != "RIGHT" else set())
            if pair.expression.name == column.name and column.table in hidden:
                return True
    return False


def _correct(select: exp.Select) -> None:
    # The expression of each column, and the relations that have it.
    found: dict[str, exp.Expr] = {}
    holders: dict[str, set[str]] = {}
    for join in _joins(select):
        on = join.args.get("on")
        if on is None:
            continue
        if not join.meta.get(_NAMED):
            _replace(on, select, found, holders)
            continue
        for pair in [*on.find_all(exp.EQ)]:
            name, of_join = pair.expression.name, pair.expression
            left = found.get(name, pair.this).copy()
            pair.set("this", left.copy())
            if join.kind in {"SEMI", "ANTI"}:
                continue
            holders.setdefault(name, {one.table for one in left.find_all(exp.Column)})
            holders[name].add(of_join.table)
            if join.side == "RIGHT":
                found[name] = of_join.copy()
            elif join.side == "FULL":
                found[name] = exp.func("coalesce", left, of_join.copy())
            else:
                found[name] = left
    _replace(select, select, found, holders)


def _joins(select: exp.Select) -> Iterator[exp.Join]:
    """The joins of FROM in their order, those in parentheses first."""
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from _inner_joins(from_.this)
    yield from select.args.get("joins") or ()


def _inner_joins(relation: exp.Expr) -> Iterator[exp.Join]:
    if isinstance(relation, exp.Subquery | exp.Paren) and not isinstance(relation.this, exp.Query):
        yield from _inner_joins(relation.this)
    yield from relation.args.get("joins") or ()


def _replace(
    part: exp.Expr, select: exp.Select, found: dict[str, exp.Expr], holders: dict[str, set[str]]
) -> None:
    """Replace the columns without a relation, and those of subqueries, by the joined ones."""
    within = [one for join in _joins(select) if (one := join.args.get("on")) is not None]
    for call in [*part.find_all(exp.Coalesce)]:
        parts = [call.this, *call.expressions]
        # sqlglot made it: a written call has its place.
        made = not call.meta and all(isinstance(one, exp.Column) for one in parts)
        names, tables = {one.name for one in parts}, {one.args.get("table") for one in parts}
        name = names.pop()
        if not made or names or len(tables) < 2 or name not in found:
            continue
        of_join = part is select and any(contains(one, call) for one in within)
        if call.parent_select is select and not of_join:
            call.replace(found[name].copy())
    for column in [*part.find_all(exp.Column)]:
        table = column.args.get("table")
        if (
            column.parent_select is not select
            and table is not None
            and table.meta.get("start") is None
            and table.name in holders.get(column.name, ())
            and not _hidden(column, table.name, select)
        ):
            column.replace(found[column.name].copy())


def contains(node: exp.Expr, inner: exp.Expr) -> bool:
    """Whether a node is another one, or within it."""
    around: exp.Expr | None = inner
    while around is not None and around is not node:
        around = around.parent
    return around is node


def _hidden(column: exp.Column, table: str, select: exp.Select) -> bool:
    """Whether a query between a column and a SELECT has a relation of this name."""
    inner = column.parent_select
    while inner is not None and inner is not select:
        relations = [inner.args.get("from_"), *(inner.args.get("joins") or ())]
        names = [one.this.alias_or_name for one in relations if one is not None]
        laterals = [one.alias_or_name for one in inner.args.get("laterals") or ()]
        if table in (*names, *laterals):
            return True
        inner = inner.parent_select
    return False
