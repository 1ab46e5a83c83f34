"""The canonical query of a view, with the maintenance that it allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.maintenance.describe import (
    maintenance_of,
    refused,
    window_name,
    with_broken_ties,
)
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.manifest import Maintenance
from spark_jobs.graph.spark_groups import suit_groups
from spark_jobs.graph.tie_breakers import unbroken_ties, with_tie_breakers


@dataclass(frozen=True, kw_only=True)
class MaintainedQuery:
    """A query that all computations of a view share.

    Attributes:
        tree: the query, with tie breakers if its orders may leave ties.
        text: the same as Spark SQL.
        breaks_ties: whether it has tie breakers.
        maintenance: how it is maintained.
        obstacle: the error if it cannot be maintained incrementally.
    """

    tree: exp.Query
    text: str
    breaks_ties: bool
    maintenance: Maintenance
    obstacle: NotIncrementalError | None


def maintained_query(
    canonical: exp.Query,
    *,
    types: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, frozenset[str]] | None = None,
) -> MaintainedQuery:
    """Complete the orders of a query where ties would matter, and say how it is maintained.

    Args:
        canonical: as from ``canonical_query``.
        types: column types, by table and lower-case column name.
        keys: columns that identify a table's rows, by table, if known.
    """
    text = to_sql(canonical)
    found, obstacle = maintenance_of(text, types=types, keys=keys)
    tree, breaks_ties = canonical, any(one.note for one in found.operators)
    if breaks_ties:
        tree, written = with_tie_breakers(canonical), found
        suit_groups(tree)
        text = to_sql(tree)
        found, obstacle = maintenance_of(text, types=types, keys=keys)
        chance = _left_to_chance(tree, found)
        if chance is not None:
            tree, text, breaks_ties = canonical, to_sql(canonical), False
            found, obstacle = refused(chance), chance
        found = with_broken_ties(found, written)
    return MaintainedQuery(
        tree=tree, text=text, breaks_ties=breaks_ties, maintenance=found, obstacle=obstacle
    )


def _left_to_chance(tree: exp.Query, found: Maintenance) -> NotIncrementalError | None:
    """The error of a window function whose order may leave ties that no other column can break.

    Two computations of a change might choose differently, and leave rows that no choice gives.
    """
    windows = [one.operator for one in found.operators if one.note]
    for function in unbroken_ties(tree):
        name = window_name(function)
        if any(one.startswith("window ") and name in one for one in windows):
            text = (
                f"{name} over ORDER BY may take any of several rows in the same place; "
                "add columns of a unique key to the order, or a frame of ROWS"
            )
            return NotIncrementalError(Obstacle.ORDER_DEPENDENT, text, function)
    return None
