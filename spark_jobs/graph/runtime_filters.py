"""Adds to joins with a small, known relation in which intervals its keys are.

A scan then skips files, row groups and pages without these keys. Trino does the same while a query
runs ("dynamic filtering"); Spark prunes partitions only. The condition follows from the join's own,
so it changes no result of any kind of join.

Of some joins it also follows that rows with other keys are not needed at all (``needed_values``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import conjuncts
from spark_jobs.graph.sql import Query

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Clauses that make rows depend on each other. DISTINCT does not: rows with other values are others.
_NOT_BY_ROW: Final = ("joins", "laterals", "group", "having", "qualify", "limit", "offset")


@dataclass(frozen=True)
class Values:
    """The values of a column as numbers: days of dates, microseconds of times.

    Attributes:
        kind: their type in Spark SQL.
        nulls: whether NULL is among them.
        intervals: the first and the last value of each interval that has some.
        lists: for each interval, a list that has its values; None if they are too many.
    """

    kind: str
    nulls: bool
    intervals: Sequence[tuple[int, int]]
    lists: Sequence[Sequence[int]] | None = None


class Known(Protocol):
    """What is known of relations before a query runs."""

    def columns(self, relation: str) -> Sequence[str] | None:
        """The lower-case names of a relation's columns; None if its rows are not known."""

    def values(self, relation: str, column: str) -> Values | None:
        """What values a column has; None if its rows are not known, or it has no numbers."""

    def skips(self, relation: str, column: str, values: Values) -> bool:
        """Whether a scan for these values probably reads much less than the whole table."""


def with_runtime_filters(query: Query, known: Known) -> Query:
    """A copy of a query whose joins also state where the keys of known relations are.

    Args:
        query: refers to relations by name; columns without a qualifier have unique names.
        known: some of the relations.
    """
    found = query.copy()
    for select in found.find_all(exp.Select):
        sources = _sources(select)
        for join in select.args.get("joins") or ():
            on = join.args.get("on")
            more = [one for part in conjuncts(on) for one in _implied(part, sources, known)]
            if more:
                join.set("on", exp.and_(on, *more, copy=False))
    return found


# For each reference to a relation, columns and the values that its needed rows have.
Needed = Sequence[Mapping[str, Values]]


def needed_values(query: Query, known: Known) -> Mapping[str, Needed]:
    """Which values the rows have that a query needs of a relation; other rows change no result.

    Args:
        query: refers to relations by name; columns without a qualifier have unique names.
        known: some of the relations.

    Returns:
        by relation: for each reference to it, values by lower-case column. A relation is left out
        if some reference may need any row.
    """
    found: dict[int, dict[str, Values]] = {}
    for select in query.find_all(exp.Select):
        sources = _sources(select)
        for join in select.args.get("joins") or ():
            removed = _removes_unmatched(join, list(sources))
            for part in conjuncts(join.args.get("on")):
                for one in _matches(part, sources, known):
                    scan = _scan(sources[one.alias], one.column) if one.alias in removed else None
                    if scan is not None and not one.or_null:
                        table, column = scan
                        found.setdefault(id(table), {})[column] = one.values
    references: dict[str, list[Mapping[str, Values]]] = {}
    for table in query.find_all(exp.Table):
        references.setdefault(table.name, []).append(found.get(id(table), {}))
    return {name: needed for name, needed in references.items() if all(needed)}


@dataclass(frozen=True)
class _Match:
    """One side of ``a = b`` or ``a <=> b`` where the values of the other side are known.

    Attributes:
        column: as the condition has it.
        alias: of its relation.
        values: of the other side; its rows have no other.
        or_null: whether NULL matches too.
    """

    column: exp.Column
    alias: str
    values: Values
    or_null: bool


def _matches(part: exp.Expr, sources: Mapping[str, exp.Expr], known: Known) -> Iterator[_Match]:
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return
    for one, other in ((part.this, part.expression), (part.expression, part.this)):
        if not isinstance(one, exp.Column) or not isinstance(other, exp.Column):
            continue
        alias, where = _owner(one, sources, known), _owner(other, sources, known)
        if alias is None or where is None or alias == where:
            continue
        step = _origin(sources[alias], one, known)
        values = known.values(step.table, step.column) if step else None
        safe = isinstance(part, exp.NullSafeEQ)
        if step is not None and values is not None and (step.direct or not safe):
            yield _Match(other, where, values, or_null=safe and values.nulls)


def _implied(part: exp.Expr, sources: Mapping[str, exp.Expr], known: Known) -> Iterator[exp.Expr]:
    """Conditions on one side of an equality that the values of the other imply."""
    for one in _matches(part, sources, known):
        scan = _origin(sources[one.alias], one.column, known)
        if scan is None or not one.values.intervals:
            continue
        if known.skips(scan.table, scan.column, one.values):
            yield _within(one.column, one.values, or_null=one.or_null)


def _removes_unmatched(join: exp.Join, aliases: Sequence[str]) -> Collection[str]:
    """The relations whose rows without a match the join's result lacks.

    Args:
        join: of one SELECT.
        aliases: the relations of that SELECT, in order.
    """
    joined = join.this.alias_or_name.lower()
    side, kind = join.side.upper(), join.kind.upper()
    before = aliases[: aliases.index(joined)]
    if join.method or kind not in {"", "INNER", "SEMI", "ANTI"}:
        return ()
    if kind == "ANTI" or (side == "LEFT" and kind != "SEMI"):
        return (joined,)
    return (joined, *before) if side in {"", "LEFT"} else ()


def _scan(node: exp.Expr, column: exp.Column) -> tuple[exp.Table, str] | None:
    """The scan and its lower-case column that a relation's column comes from.

    Returns:
        None unless each row of the relation comes from one row of the scan, so that rows with other
        values can be left out.
    """
    name = column.name.lower()
    if isinstance(node, exp.Table):
        return None if node.args.get("sample") else (node, name)
    select = node.unnest() if isinstance(node, exp.Subquery) else node
    if not isinstance(select, exp.Select) or any(select.args.get(one) for one in _NOT_BY_ROW):
        return None
    sources = list(_sources(select).values())
    output = next((one for one in select.selects if one.alias_or_name.lower() == name), None)
    value = output.unalias() if output is not None else None
    if not isinstance(value, exp.Column) or len(sources) != 1 or select.find(exp.Window):
        return None
    return _scan(sources[0], value)


def _within(column: exp.Column, values: Values, *, or_null: bool) -> exp.Expr:
    """Whether a column has one of the values, or is in one of the intervals."""
    conditions: list[exp.Expr] = [
        exp.In(this=column.copy(), expressions=[exp.Literal.number(one) for one in some])
        for some in values.lists or ()
    ]
    if values.lists is None:
        conditions = [
            exp.Between(
                this=column.copy(),
                low=exp.cast(exp.Literal.string(text_of(low, values.kind)), values.kind),
                high=exp.cast(exp.Literal.string(text_of(high, values.kind)), values.kind),
            )
            for low, high in values.intervals
        ]
    if or_null:
        conditions.append(exp.Is(this=column.copy(), expression=exp.null()))
    return exp.paren(exp.or_(*conditions, copy=False), copy=False)


def text_of(number: int, kind: str) -> str:
    """A number as text that Spark casts to a type.

    >>> text_of(20454, "date"), text_of(1, "timestamp"), text_of(7, "int")
    ('2026-01-01', '1970-01-01T00:00:00.000001+00:00', '7')

    Raises:
        OverflowError: Spark has this date or time, and Python does not.
    """
    match kind:
        case "date":
            return str(date(1970, 1, 1) + timedelta(days=number))
        case "timestamp":
            return (_EPOCH + timedelta(microseconds=number)).isoformat()
        case "timestamp_ntz":
            return (_EPOCH + timedelta(microseconds=number)).replace(tzinfo=None).isoformat()
    return str(number)


def _sources(select: exp.Select) -> dict[str, exp.Expr]:
    """The relations that a SELECT reads, by lower-case alias."""
    start = select.args.get("from_")
    nodes = [start.this] if start else []
    nodes += [join.this for join in select.args.get("joins") or ()]
    return {node.alias_or_name.lower(): node for node in nodes}


def _owner(column: exp.Column, sources: Mapping[str, exp.Expr], known: Known) -> str | None:
    """The alias of the relation that a column belongs to; None if that is not clear."""
    if column.table:
        alias = column.table.lower()
        return alias if alias in sources else None
    outputs = {alias: _outputs(node, known) for alias, node in sources.items()}
    if any(names is None for names in outputs.values()):
        return None
    found = [alias for alias, names in outputs.items() if column.name.lower() in (names or ())]
    return found[0] if len(found) == 1 else None


def _outputs(node: exp.Expr, known: Known) -> Sequence[str] | None:
    """The lower-case names of a relation's columns; None if they are not known."""
    if isinstance(node, exp.Table):
        return known.columns(node.name)
    query = node.unnest() if isinstance(node, exp.Subquery) else node
    names = query.named_selects if isinstance(query, exp.Query) else []
    return None if not names or "*" in names else [name.lower() for name in names]


@dataclass(frozen=True)
class _Origin:
    """The column of a table that a column comes from.

    Attributes:
        direct: whether no operator in between can have added a NULL.
    """

    table: str
    column: str
    direct: bool = True


def _origin(node: exp.Expr, column: exp.Column, known: Known) -> _Origin | None:
    """Where the values of a relation's column come from; None if they are computed."""
    name = column.name.lower()
    if isinstance(node, exp.Table):
        return _Origin(node.name, name)
    select = node.unnest() if isinstance(node, exp.Subquery) else node
    if not isinstance(select, exp.Select) or select.args.get("laterals"):
        return None
    output = next((one for one in select.selects if one.alias_or_name.lower() == name), None)
    value = output.unalias() if output is not None else None
    if not isinstance(value, exp.Column):
        return None
    sources = _sources(select)
    # With one relation, columns without a qualifier are its columns.
    alias = next(iter(sources)) if len(sources) == 1 else _owner(value, sources, known)
    found = None if alias is None else _origin(sources[alias], value, known)
    if found is None:
        return None
    direct = found.direct and len(sources) == 1 and not select.args.get("group")
    return _Origin(found.table, found.column, direct)
