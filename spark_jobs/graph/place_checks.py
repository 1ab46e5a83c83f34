"""Checks the places of generators and positions, and the names of WITH."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.functions import GENERATORS, called_name
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import (
    DuplicateCteError,
    GeneratorError,
    PositionError,
)
from spark_jobs.graph.shown import shown

_SETS: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)
_CLAUSES: Final = {
    exp.Where: "WHERE",
    exp.Having: "HAVING",
    exp.Group: "GROUP BY",
    exp.Order: "ORDER BY",
}


def check_places(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report misplaced generators and positions, and duplicate names of WITH.

    Args:
        tree: a parsed query, in which positions are still numbers.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for query in tree.find_all(exp.Query):
        yield from _repeated_names(query, source, subject)
        yield from _low_positions(query, source, subject)
        if isinstance(query, exp.Select):
            yield from _generators(query, source, subject)


def _repeated_names(query: exp.Query, source: SqlText, subject: str) -> Iterator[DuplicateCteError]:
    with_ = query.args.get("with_")
    seen: set[str] = set()
    for one in with_.expressions if with_ is not None else ():
        # Spark compares them as written.
        name = one.alias
        if name in seen:
            yield DuplicateCteError(subject, one.alias, location=source.of(one.args["alias"]))
        seen.add(name)


def with_bare_positions(tree: exp.Query) -> exp.Query:
    """The same tree without parentheses around positions, which Spark ignores.

    A position in ROLLUP, CUBE or GROUPING SETS, which sqlglot does not know, becomes its column.
    """
    for query in tree.find_all(exp.Query):
        for _, node, _ in [*_named_positions(query)]:
            node.replace(node.unnest())
        for node, position in [*_positions_of_sets(query)]:
            selected = query.selects
            if 0 < position <= len(selected) and not any(one.is_star for one in selected):
                node.replace(selected[position - 1].unalias().copy())
    return tree


def position_of_star(tree: exp.Query, source: SqlText, subject: str) -> PositionError | None:
    """The error for a position of a star that could not be expanded; None if there is none.

    Args:
        tree: the parsed query.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for query in tree.find_all(exp.Query):
        selected = query.selects
        for clause, node, position in _named_positions(query):
            if 0 < position <= len(selected) and selected[position - 1].is_star:
                return PositionError(subject, clause, position, None, location=source.of(node))
    return None


def _positions_of_sets(query: exp.Query) -> Iterator[tuple[exp.Expr, int]]:
    """The whole numbers in ROLLUP, CUBE and GROUPING SETS."""
    group = query.args.get("group")
    for sets in group.find_all(*_SETS) if group is not None else ():
        for number in sets.find_all(exp.Literal):
            within = number.parent
            while isinstance(within, exp.Paren | exp.Tuple):
                within = within.parent
            if within is sets and number.is_int:
                yield number, int(number.this)


def wrong_position(
    tree: exp.Query, name: str, source: SqlText, subject: str
) -> PositionError | None:
    """The error for a position that does not exist.

    Args:
        tree: the parsed query.
        name: the name that qualifying did not find; if it is not a number, None is returned.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for query in tree.find_all(exp.Query):
        for clause, node, position in _named_positions(query):
            if str(position) == name and position > len(query.selects):
                count = len(query.selects)
                return PositionError(subject, clause, position, count, location=source.of(node))
    return None


def _low_positions(query: exp.Query, source: SqlText, subject: str) -> Iterator[PositionError]:
    """Positions below 1, which sqlglot accepts as constants."""
    for clause, node, position in _named_positions(query):
        if position < 1:
            place = source.of(node)
            yield PositionError(subject, clause, position, len(query.selects), location=place)


def _named_positions(query: exp.Query) -> Iterator[tuple[str, exp.Expr, int]]:
    """The whole numbers in ORDER BY and GROUP BY, with the clause."""
    order, group = query.args.get("order"), query.args.get("group")
    named: list[tuple[str, exp.Expr]] = []
    named += [("ORDER BY", one.this) for one in (order.expressions if order else ())]
    named += [("GROUP BY", one) for one in (group.expressions if group else ())]
    for clause, node in named:
        literal = node.unnest()
        # For Spark a sign is part of the number, except before a parenthesis.
        sign, number = (-1, literal.this) if isinstance(literal, exp.Neg) else (1, literal)
        if isinstance(number, exp.Literal) and number.is_int:
            yield clause, node, sign * int(number.this)


def _generators(select: exp.Select, source: SqlText, subject: str) -> Iterator[GeneratorError]:
    """Generators that are not a selected column by themselves."""
    for call in select.find_all(exp.Func):
        if called_name(call) not in GENERATORS or call.parent_select is not select:
            continue
        if problem := _misplaced(call, select):
            yield GeneratorError(subject, shown(call), problem, location=source.of(call))


def _misplaced(call: exp.Expr, select: exp.Select) -> str:
    """What is wrong with a generator's place; "" if nothing is."""
    node, nested = call, False
    while node.parent is not None and node.parent is not select:
        around = node.parent
        if isinstance(around, exp.From | exp.Lateral | exp.Table):
            return ""
        if isinstance(around, exp.Join):
            return "is not allowed in the condition of a join" if node.arg_key == "on" else ""
        clause = next((word for kind, word in _CLAUSES.items() if isinstance(around, kind)), None)
        if clause is not None:
            return f"is not allowed in {clause}"
        nested = nested or not isinstance(around, exp.Alias | exp.Aliases | exp.Paren)
        node = around
    return "is not allowed within an expression" if nested else ""
