"""The columns of a view's aggregate state, as SQL."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.relation import COUNT
from spark_jobs.graph.maintenance.states import Cutter
from spark_jobs.graph.maintenance.terms import Stored


def state_columns(
    query: str, types: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """For each table of aggregate state, in order of computation: its columns.

    Args:
        query: of a view with aggregate state, as in ``GoldEntry.query``.
        types: column types of its inputs, by table and lower-case column name.

    Returns:
        pairs of a column's name and its SQL, by ``state.N``.

    Raises:
        NotIncrementalError: an operator has no rule.
    """
    cutter = Cutter(types)
    root, _ = build(query)
    cutter.cut(root)
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for state in cutter.states:
        keys = zip(state.keys, (to_sql(value) for _, value in state.node.keys), strict=True)
        columns = [*keys, (COUNT, "COUNT(*)")]
        for term in state.terms:
            argument = to_sql(term.argument)
            columns.append((term.present, f"COUNT({argument})"))
            columns += [
                (term.column(one), f"{one.upper()}({argument})")
                for one in Stored
                if one in term.stored
            ]
        found[state.table] = tuple(columns)
    return found
