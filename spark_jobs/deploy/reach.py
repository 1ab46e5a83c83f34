"""Follows a change of tables through downstream views, by column lineage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_jobs.graph.columns_read import read_of_tables
from spark_jobs.graph.lineage import lineage_of
from spark_jobs.graph.manifest import GoldEntry, Manifest

# The columns of a table whose readers are affected, in lower case; None: all.
Noticed = frozenset[str] | None


@dataclass(frozen=True)
class Reach:
    """The effect on the readers of one table, direct and indirect.

    Attributes:
        affected: views whose content changes, in the order of refreshes.
        untouched: readers that read none of the changed columns.
    """

    affected: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()


def reach(manifest: Manifest, table: str, noticed: Noticed) -> Reach:
    """Follow a change of some columns of a table to downstream views.

    Args:
        manifest: the new project.
        table: name of the table in SQL, such as ``silver.orders``.
        noticed: columns that differ, in lower case, without added ones; None: rows differ.
    """
    changed: dict[str, Noticed] = {table: noticed}
    untouched = []
    for tier in manifest.gold_by_tier():
        for view in tier:
            moved = {name: changed[name] for name in view.inputs if name in changed}
            if not moved:
                continue
            columns = _columns_touched(view, moved)
            if columns is not None and not columns:
                untouched.append(str(view.table_name))
            else:
                changed[str(view.table_name)] = columns
    affected = tuple(name for name in changed if name != table)
    return Reach(affected, tuple(untouched))


def _columns_touched(view: GoldEntry, moved: Mapping[str, Noticed]) -> Noticed:
    """The columns of a view that change; empty if it reads nothing that changed."""
    read = read_of_tables(view.query)
    hit = {table for table, columns in moved.items() if _reads(read.get(table), columns)}
    if not hit:
        return frozenset()
    if any(moved[table] is None for table in hit):
        return None
    lineage = lineage_of(view.query)

    def touches(table: str, column: str) -> bool:
        columns = moved.get(table)
        return table in hit and columns is not None and column.lower() in columns

    if any(touches(one.table, one.column) for one in lineage.rows):
        return None
    found = frozenset(
        name.lower()
        for name, sources in lineage.columns.items()
        if any(touches(one.table, one.column) for one in sources)
    )
    # Lineage does not show how it reads the column, as for DISTINCT: all may change.
    return found or None


def _reads(read: frozenset[str] | None, columns: Noticed) -> bool:
    return read is None or columns is None or bool(read & columns)
