"""PIVOT as aggregates with FILTER, and UNPIVOT as rows that a generator makes.

The columns that either groups by, or keeps, are those that it does not name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

# Columns with their Spark SQL types.
Kinds = Mapping[str, str]
# Names of relations.
_LABELS, _ROWS = "unpivoted_labels", "unpivoted"
ColumnsOf = Callable[[exp.Query], Kinds | None]

_NULL_OVER_NOTHING = (exp.Sum, exp.Avg, exp.Min, exp.Max)
_WHOLE = re.compile(r"tinyint|smallint|int|bigint")
# If all aggregates are of these types, Spark aggregates by the values first. Then COUNT of a value
# that does not occur is NULL, and otherwise 0.
_BY_VALUE = re.compile(_WHOLE.pattern + r"|float|double|boolean|decimal\(.*\)")


def without_pivots(tree: exp.Query, columns_of: ColumnsOf) -> exp.Query:
    """A query without PIVOT and UNPIVOT of the first relation of FROM.

    Those stay whose columns, names or values only Spark knows.

    Args:
        tree: as written.
        columns_of: the columns of a query, lower case; None if not all are known.
    """
    if not tree.find(exp.Pivot):
        return tree
    found = tree.copy()
    for clause in found.find_all(exp.From, bfs=False):
        relation = clause.this
        pivots = relation.args.get("pivots") or []
        if len(pivots) != 1 or relation.args.get("joins") or len(pivots[0].args["fields"]) != 1:
            continue
        bare, [pivot] = relation.copy(), pivots
        bare.set("pivots", None)
        kinds = columns_of(_everything(bare, found, clause))
        made = (_unpivoted if pivot.unpivot else _pivoted)(pivot, bare, kinds) if kinds else None
        if made is not None:
            alias = pivot.args.get("alias") or relation.alias_or_name
            clause.set("this", made.subquery(alias or _ROWS))
    return found


def _everything(relation: exp.Expr, tree: exp.Query, clause: exp.From) -> exp.Select:
    """All columns of a relation, with the common table expressions in front of it."""
    made = exp.select("*").from_(relation)
    around = {id(clause)}
    node: exp.Expr | None = clause
    while node is not None:
        around.add(id(node))
        node = node.parent
    known = tree.args.get("with_")
    for cte in known.expressions if known is not None else ():
        if id(cte) in around:
            break
        made = made.with_(cte.args["alias"], cte.this)
    return made


def _pivoted(pivot: exp.Pivot, relation: exp.Expr, kinds: Kinds) -> exp.Select | None:
    """The groups of the other columns, with each aggregate of the rows with each value."""
    calls = [one.unalias() for one in pivot.expressions]
    names = [one.alias for one in pivot.expressions]
    by_value = _is_by_value(calls, kinds)
    field = pivot.args["fields"][0]
    over = _columns(field.this, relation, kinds)
    read = [_columns(call, relation, kinds) for call in calls]
    if by_value is None or over is None or None in read or (len(calls) > 1 and not all(names)):
        return None
    used = {*over, *(one for found in read for one in found or ())}
    by = [exp.column(one) for one in kinds if one not in used]
    outputs: list[exp.Expr] = [one.copy() for one in by]
    for value in field.expressions:
        test = _test(value.unalias(), over, kinds)
        name = value.alias or _text(value)
        if test is None or name is None:
            return None
        for call, own in zip(calls, names, strict=True):
            found = _where(call, test)
            if by_value and isinstance(call, exp.Count):
                rows = _where(exp.Count(this=exp.Star(), big_int=True), test)
                some = exp.GT(this=rows, expression=exp.Literal.number(0))
                found = exp.func("IF", some, found, exp.null())
            output = f"{name}_{own}" if len(calls) > 1 else name
            outputs.append(exp.alias_(found, output, quoted=True))
    if _repeats([one.alias_or_name for one in outputs]):
        return None
    made = exp.select(*outputs).from_(relation)
    return made.group_by(*by) if by else made


def _is_by_value(calls: list[exp.Expr], kinds: Kinds) -> bool | None:
    """Whether Spark aggregates by the values first; None if that matters and is not known."""
    if any(not isinstance(one, (exp.Count, *_NULL_OVER_NOTHING)) for one in calls):
        return None
    others = [one.this for one in calls if not isinstance(one, exp.Count)]
    if len(others) == len(calls):
        return False
    found = [
        kinds.get(one.name.lower(), "") if isinstance(one, exp.Column) else "" for one in others
    ]
    return None if "" in found else all(map(_BY_VALUE.fullmatch, found))


def _columns(node: exp.Expr, relation: exp.Expr, kinds: Kinds) -> list[str] | None:
    """The columns of a relation that an expression reads; None if one is not known."""
    found = []
    for column in node.find_all(exp.Column):
        parts = [one.name.lower() for one in column.parts]
        if len(parts) > 1 and parts[0] == relation.alias_or_name.lower():
            parts = parts[1:]
        if len(parts) > 1 or parts[0] not in kinds:
            return None
        found.append(parts[0])
    return found


def _test(value: exp.Expr, over: list[str], kinds: Kinds) -> exp.Expr | None:
    """Whether a row has a value; None if Spark would convert it first."""
    values = value.expressions if isinstance(value, exp.Tuple) else [value]
    if len(values) != len(over):
        return None
    for name, one in zip(over, values, strict=True):
        text = one.is_string and kinds[name] == "string"
        if not (text or (one.is_int and _WHOLE.fullmatch(kinds[name]))):
            return None
    pairs = zip(over, values, strict=True)
    return exp.and_(*(exp.EQ(this=exp.column(a), expression=b.copy()) for a, b in pairs))


def _text(value: exp.Expr) -> str | None:
    """The name that a value without an alias gives to its column; None if only Spark knows it."""
    plain = isinstance(value, exp.Literal) and value.is_int and str(int(value.name)) == value.name
    return value.name if value.is_string or plain else None


def _where(call: exp.Expr, test: exp.Expr) -> exp.Expr:
    return exp.Filter(this=call.copy(), expression=exp.Where(this=test.copy()))


def _unpivoted(pivot: exp.Pivot, relation: exp.Expr, kinds: Kinds) -> exp.Select | None:
    """Each row once for each group of columns, with the group's name and its values."""
    field = pivot.args["fields"][0]
    groups = [_columns(one.unalias(), relation, kinds) or [] for one in field.expressions]
    labels = [
        one.alias or "_".join(column.name for column in one.find_all(exp.Column))
        for one in field.expressions
    ]
    values = [one.name for each in pivot.expressions for one in _parts(each)]
    nulls = bool(pivot.args.get("include_nulls"))
    used = {name for group in groups for name in group}
    kept = [name for name in kinds if name not in used]
    names = [*kept, field.this.name, *values]
    if (
        any(len(group) != len(values) for group in groups)
        or not _is_alike(groups, kinds, all_values=not nulls)
        or len({*labels}) < len(labels)
        or _repeats(names)
    ):
        return None
    if not relation.alias_or_name:
        relation.set("alias", exp.TableAlias(this=exp.to_identifier(_ROWS)))
    table = relation.alias_or_name
    label = exp.column(field.this.name, _LABELS)
    rows = [exp.Tuple(expressions=[exp.Literal.string(one)]) for one in labels]
    alias = exp.TableAlias(this=exp.to_identifier(_LABELS), columns=[label.this.copy()])
    outputs: list[exp.Expr] = [*(exp.column(one, table) for one in kept), label.copy()]
    for at, name in enumerate(values):
        case = exp.Case(this=label.copy())
        for text, group in zip(labels, groups, strict=True):
            case = case.when(exp.Literal.string(text), exp.column(group[at], table), copy=False)
        outputs.append(exp.alias_(case, name))
    made = exp.select(*outputs).from_(relation)
    made = made.join(exp.Values(expressions=rows, alias=alias), join_type="cross")
    if nulls:
        return made
    filled = [exp.Is(this=exp.column(one), expression=exp.null()).not_() for one in values]
    columns = map(exp.column, names)
    return exp.select(*columns).from_(made.subquery(_ROWS)).where(exp.or_(*filled))


def _is_alike(groups: list[list[str]], kinds: Kinds, *, all_values: bool) -> bool:
    """Whether the columns of each value, or of all, have one type; Spark would convert others.

    For NULLs that are left out, Spark looks at all values of a row together.
    """
    found = [*zip(*groups, strict=True)]
    types = [{kinds[name] for name in names} for names in found]
    whole = [set().union(*types)] if all_values else types
    return all(len(one) == 1 and "" not in one for one in whole)


def _repeats(names: list[str]) -> bool:
    return len({one.lower() for one in names}) < len(names)


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return node.expressions if isinstance(node, exp.Tuple) else [node]
