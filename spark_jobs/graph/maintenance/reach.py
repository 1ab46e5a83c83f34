"""How many rows of a view a change deletes and inserts at most, from its SQL alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Constant,
    Filter,
    LeftJoin,
    Node,
    Project,
    Scan,
    Side,
    TopK,
    Union,
    children,
)
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.reasons import NotIncrementalError


@dataclass(frozen=True)
class RowsMoved:
    """Rows deleted from a table or a result, and rows inserted; an update is one of each."""

    leave: int
    enter: int

    @property
    def total(self) -> int:
        return self.leave + self.enter

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {"leave": self.leave, "enter": self.enter}


NO_ROWS = RowsMoved(0, 0)


def reach(query: str, moved: Mapping[str, RowsMoved | None]) -> RowsMoved | None:
    """At most so many rows of a view are deleted and inserted; None where its SQL sets no limit.

    Args:
        query: qualified Spark SQL, as in ``GoldEntry.query``.
        moved: of the tables that it reads, by ``layer.name``; one that is absent did not change,
            of one with None nobody knows how much did.
    """
    try:
        root, _ = build(query)
    except NotIncrementalError:
        return None
    return _reach(root, moved)


def _reach(  # noqa: PLR0911 - one case for each operator
    node: Node, moved: Mapping[str, RowsMoved | None]
) -> RowsMoved | None:
    below = [_reach(child, moved) for child in children(node)]
    if below and all(one == NO_ROWS for one in below):
        return NO_ROWS
    match node:
        case Scan():
            return moved.get(node.table, NO_ROWS)
        case Constant():
            return NO_ROWS
        case Filter():
            return below[0]
        case Project():
            return None if node.multiplies else below[0]
        case Aggregate():
            # Each row belongs to one group; a group has one row before and one after.
            groups = 1 if not node.keys else None if below[0] is None else below[0].total
            return None if groups is None or node.sessions else RowsMoved(groups, groups)
        case Union():
            known = [one for one in below if one is not None]
            whole = len(known) == len(below)
            return (
                RowsMoved(sum(k.leave for k in known), sum(k.enter for k in known))
                if whole
                else None
            )
        case LeftJoin():
            # Rows of the left side stand or fall by themselves while the right one stays.
            return below[0] if node.side is not Side.OUTER and below[1] == NO_ROWS else None
        case TopK():
            limit = node.limit
            rows = int(limit.name) if isinstance(limit, exp.Literal) and limit.is_int else None
            return None if rows is None else RowsMoved(rows, rows)
        case _:
            return None
