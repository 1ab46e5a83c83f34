"""Adds to joins with a small, known relation in which intervals its keys are.

A scan then skips files, row groups and pages without these keys. Trino does the same while a query
runs ("dynamic filtering"); Spark prunes partitions only. The condition follows from the join's own,
so it changes no result of any kind of join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import conjuncts
from spark_jobs.graph.sql import Query

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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


def _implied(part: exp.Expr, sources: Mapping[str, exp.Expr], known: Known) -> Iterator[exp.Expr]:
    """Conditions on one side of ``a = b`` or ``a <=> b`` that the values of the other imply."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return
    for one, other in ((part.this, part.expression), (part.expression, part.this)):
        if not isinstance(one, exp.Column) or not isinstance(other, exp.Column):
            continue
        alias, where = _owner(one, sources, known), _owner(other, sources, known)
        if alias is None or where is None or alias == where:
            continue
        step, scan = (
            _origin(*pair, known) for pair in ((sources[alias], one), (sources[where], other))
        )
        values = known.values(step.table, step.column) if step else None
        safe = isinstance(part, exp.NullSafeEQ)
        if step is None or scan is None or values is None or (safe and not step.direct):
            continue
        if values.intervals and known.skips(scan.table, scan.column, values):
            yield _within(other, values, or_null=safe and values.nulls)


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
